package bloom

import (
	"context"
	"sync/atomic"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/upstash"
)

// A shape is what a kind adds to a plain filter: a word of its own at bit 128,
// its own operations for an item, and the steps after an answer. The record of
// a plain filter has none. Batches, retries, the TTL, limits and labels are
// written once, for all kinds.
type shape interface {
	// aim chooses what the request is for, such as the epoch of a Window, and
	// reports whether that changed a write: a look-up reads all areas. It is
	// called before the command is written and again before it is sent. After
	// an error the command is not sent.
	aim(ctx context.Context, q *request, write bool) (changed bool, err error)
	// word returns the kind's own word of a string made by the request.
	word(q *request) int64
	// loose returns how many low bits of the kind's word change during its
	// life. The others are fixed when the string is made.
	loose() uint
	// differs names the field of the Config whose other value explains the
	// word, which differs from the handle's in a fixed bit.
	differs(word int64) (field string)
	// length returns how many bytes the string has at most. shorter says what
	// to do if that is too long.
	length(r *record) uint64
	shorter() string

	// setItem and getItem append the operations to add an item, or to look it
	// up. itemBytes is the most an item takes in a write, or in a read.
	setItem(q *request, item string)
	getItem(q *request, item string)
	itemBytes(r *record, write bool) int
	// wrote and read take the answers about the items, and set q.added or
	// q.found. The header and the kind's word were judged before.
	wrote(q *request, answers []upstash.NullInt64) error
	read(q *request, answers []upstash.NullInt64) error
	// follow does what an answer calls for, and reports whether to send the
	// command again. It may set q.err.
	follow(ctx context.Context, q *request, write bool) (again bool)
}

// A scripted shape writes by a script of its own, with one operation and one
// answer an item. It stores an item as often as it is added: a batch sends
// equal items too.
type scripted interface {
	shape
	// script returns the command of a request's operations, of which there are
	// at most maxItems.
	script(q *request) upstash.Command
	maxItems() int
	// failed explains the error of a write.
	failed(q *request, err error) error
}

// ownScript returns the record's shape if it is a scripted one, else nil.
func (r *record) ownScript() scripted {
	s, _ := r.shape.(scripted)
	return s
}

// kindWordOffset is where the kind's own word stands. Its first bit is 1: a
// write sets it if it is zero, as it does the header.
const kindWordOffset = 128

// compareKind judges the kind's own word of an answer.
func (r *record) compareKind(word int64) error {
	if r.shape == nil {
		return nil
	}
	loose := r.shape.loose()
	if fixed := r.shape.word(nil) >> loose; word>>loose == fixed {
		return nil
	}
	if word>>(wordBits-1) != 1 {
		return errHeaderBits
	}
	e := newMismatchError(r.kind, r.geo, r.geo.info())
	e.GotKind = r.kind
	e.Field = r.shape.differs(word)
	return e
}

// learnKind is compareKind for an answer of the primary, and remembers that
// nothing may be written to another string.
func (r *record) learnKind(word int64) error {
	err := r.compareKind(word)
	if err != nil {
		r.refuse(err)
	}
	return err
}

// The part of a request for the shape of its record.
type shaped struct {
	word   int64  // the kind's own word in the last answer
	at     uint64 // what the command is for: an epoch, or the number of layers
	target int    // the area that the command sets bits in
	tried  uint8  // the areas that an attempt of unknown outcome may have written
	rounds int    // how often the command was sent again
	clock  bool   // of a look-up: at is of the server's clock
	region bool   // of a look-up: a region is asked, because the primary refused
	valid  bool   // an answer has decided which items are new
	lost   bool   // what the last command set will be cleared
	held   []uint8

	// Of a write: its items that were new to the area, and how many of their
	// bits were set there.
	fresh, freshOnes int

	// Items that other requests of the handle have to know of, while this one
	// is in use.
	underway *atomic.Int64
	count    int64
	grew     bool // a script ahead of them may have made the filter larger

	removing bool // the command removes its items
}

// reset forgets the request that is over.
func (s *shaped) reset() {
	if s.underway != nil {
		s.underway.Add(-s.count)
	}
	*s = shaped{held: s.held[:0]}
}

// An area is a part of a string and a filter by itself: a pane, or a layer.
type area struct {
	offset uint64 // of its first cell, in bits
	words  uint64
}

// end returns the bit behind the area, the first of a byte.
func (a area) end() uint64 { return a.offset + (a.words*wordBits+7)/8*8 }

// setInArea appends the operations to add an item to one area, and to look it
// up in the others.
func (q *request) setInArea(areas []area, target int, item string) {
	x, y := cells.Digest(item, q.rec.geo.Seed)
	z := q.rec.geo.Hashes / 2
	q.target = target
	q.pos = cells.AppendBlocked(q.pos[:0], x, y, areas[target].words, z)
	q.set(areas[target].offset, q.pos)
	for i, p := range areas {
		if i != target {
			q.getWords(p, x, y, z)
		}
	}
}

// getInAreas appends the operations to look an item up in every area.
func (q *request) getInAreas(areas []area, item string) {
	x, y := cells.Digest(item, q.rec.geo.Seed)
	for _, p := range areas {
		q.getWords(p, x, y, q.rec.geo.Hashes/2)
	}
}

func (q *request) getWords(a area, x, y uint64, z int) {
	first := len(q.words)
	q.words = cells.AppendWords(q.words, x, y, a.words, z)
	q.pos = q.pos[:0]
	for _, w := range q.words[first:] {
		q.pos = append(q.pos, wordBits*w.Index)
	}
	q.get(a.offset, q.pos)
	q.ends = append(q.ends, len(q.words))
}

// takeHeld finds out, for each item, which areas held it before the command: bit
// i of q.held stands for area i.
func (q *request) takeHeld(areas int, write bool, answers []upstash.NullInt64) error {
	q.held, q.fresh, q.freshOnes = q.held[:0], 0, 0
	k, group, word := q.rec.geo.Hashes, 0, 0
	for range q.items {
		var held uint8
		for i := range areas {
			if write && i == 0 {
				if err := checkBits(answers[:k]); err != nil {
					return err
				}
				if ones := countOnes(answers[:k]); ones == k {
					held |= 1 << q.target
				} else {
					q.fresh++
					q.freshOnes += ones
				}
				answers = answers[k:]
				continue
			}
			at := i
			if write && i <= q.target {
				at = i - 1
			}
			all := true
			for ; word < q.ends[group]; word++ {
				n, err := fieldWord(answers[0])
				if err != nil {
					return err
				}
				all = all && n&q.words[word].Mask == q.words[word].Mask
				answers = answers[1:]
			}
			if group++; all {
				held |= 1 << at
			}
		}
		q.held = append(q.held, held)
	}
	return nil
}

// judgeHeld decides which items are new: those in no counting area. The others
// are certainly seen, unless an earlier attempt of this call may have run. Then
// any area may hold them because of it: other clients found its bits, were told
// "seen", and set theirs in another area.
//
// A command is atomic and sets the bits of all its items. So if an area lacks one
// of them, no earlier attempt wrote to it.
func (q *request) judgeHeld(counts uint8) {
	tried := q.tried
	for _, held := range q.held {
		tried &= held
	}
	q.added, q.wrote.doubtful = q.added[:0], false
	for _, held := range q.held {
		held &= counts
		q.added = append(q.added, held == 0)
		q.wrote.doubtful = q.wrote.doubtful || held != 0 && tried != 0
		if held == 0 {
			q.wrote.newItems++
		}
	}
}
