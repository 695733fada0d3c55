package engine

import (
	"context"
	"sync/atomic"

	"github.com/upbloom/upbloom/upstash"
)

// A shape is what a kind adds to a plain filter: a word of its own at bit 128,
// its own operations for an item, and the steps after an answer. The record of
// a plain filter has none. Batches, retries, the TTL, limits and labels are
// written once, for all kinds.
type Shape interface {
	// aim chooses what the request is for, such as the epoch of a Window, and
	// reports whether that changed a write: a look-up reads all areas. It is
	// called before the command is written and again before it is sent. After
	// an error the command is not sent.
	Aim(ctx context.Context, q *Request, write bool) (changed bool, err error)
	// word returns the kind's own word of a string made by the request.
	Word(q *Request) int64
	// loose returns how many low bits of the kind's word change during its
	// life. The others are fixed when the string is made.
	Loose() uint
	// follow does what an answer calls for, and reports whether to send the
	// command again. It may set q.err.
	Follow(ctx context.Context, q *Request, write bool) (again bool)
}

// The items of a record know how an item is written into a command, and what
// the answers say of it.
type Items interface {
	// setItem and getItem append the operations to add an item, or to look it
	// up. itemBytes is the most an item takes in a write, or in a read.
	SetItem(q *Request, item string)
	GetItem(q *Request, item string)
	ItemBytes(write bool) int
	// wrote and read take the answers about the items, and set q.added or
	// q.found. The header and the kind's word were judged before.
	Wrote(q *Request, answers []upstash.NullInt64) error
	Read(q *Request, answers []upstash.NullInt64) error
}

// The meaning of a record says what a word means that is not its own, and how
// its errors speak of it.
type meaning interface {
	OtherHeader(word int64) error
	OtherWord(word int64) error
	TooLarge(err error) error
	ReadsField() string // the field that lets a region answer, if there is one
}

// A scripted shape writes by a script of its own, with one operation and one
// answer an item. It stores an item as often as it is added: a batch sends
// equal items too.
type scripted interface {
	Shape
	// script returns the command of a request's operations, of which there are
	// at most maxItems.
	Script(q *Request) upstash.Command
	MaxItems() int
	// failed explains the error of a write.
	Failed(q *Request, err error) error
}

// ownScript returns the record's shape if it is a scripted one, else nil.
func (r *Core) OwnScript() scripted {
	s, _ := r.Shape.(scripted)
	return s
}

// kindWordOffset is where the kind's own word stands. Its first bit is 1: a
// write sets it if it is zero, as it does the header.
const KindWordOffset = 128

// compareKind judges the kind's own word of an answer.
func (r *Core) CompareKind(word int64) error {
	if r.Shape == nil {
		return nil
	}
	loose := r.Shape.Loose()
	if fixed := r.Shape.Word(nil) >> loose; word>>loose == fixed {
		return nil
	}
	return r.Meaning.OtherWord(word)
}

// learnKind is compareKind for an answer of the primary, and remembers that
// nothing may be written to another string.
func (r *Core) LearnKind(word int64) error {
	err := r.CompareKind(word)
	if err != nil {
		r.Refuse(err)
	}
	return err
}

// The part of a request for the shape of its record.
type shaped struct {
	Word   int64  // the kind's own word in the last answer
	At     uint64 // what the command is for: an epoch, or the number of layers
	Target int    // the area that the command sets bits in
	Tried  uint8  // the areas that an attempt of unknown outcome may have written
	Rounds int    // how often the command was sent again
	Clock  bool   // of a look-up: at is of the server's clock
	Region bool   // of a look-up: a region is asked, because the primary refused
	Valid  bool   // an answer has decided which items are new
	Lost   bool   // what the last command set will be cleared
	Held   []uint8

	// Of a write: its items that were new to the area, and how many of their
	// bits were set there.
	Fresh, FreshOnes int

	// Items that other requests of the handle have to know of, while this one
	// is in use.
	Underway *atomic.Int64
	Count    int64
	Grew     bool // a script ahead of them may have made the filter larger

	Removing bool // the command removes its items
}

// reset forgets the request that is over.
func (s *shaped) reset() {
	if s.Underway != nil {
		s.Underway.Add(-s.Count)
	}
	*s = shaped{Held: s.Held[:0]}
}
