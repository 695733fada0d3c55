package engine

import (
	"context"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/upstash"
)

// A Request is one command about one record, and its outcome.
type Request struct {
	Rec   *Record
	Items []string // in the order of their operations
	Options

	Cmd upstash.BitField
	// WordEnds has, for each item (or each area of an item), the index in Words
	// behind its last word. Look-ups have them, and writes that read.
	WordEnds []int
	Words    []cells.Word

	// Of a write.
	Birth         int64    // the birth number for a filter that it makes
	readsSettled  bool     // it reads bit 127
	readsBirth    bool     // it reads the birth number
	isScript      bool     // it is a script of these operations
	ScriptOps     []string // the operations of the script
	scriptOpBytes int      // their length in JSON

	// What came back.
	Reply     upstash.Reply
	Err       error
	NoTTL     error // of a write that is in place: its TTL may not be set
	Answers   []upstash.NullInt64
	KindWord  int64  // the kind's own word in the last answer
	BirthSeen int64  // by a look-up, for the observer
	Found     []bool // of a look-up, by item
	Added     []bool // of a write, by item: it was new, or it was removed
	Uncertain []bool // of a write, by item: it may have been new, and is in, but for a Cuckoo
	Wrote     Written

	Resends  int  // how often the command was sent again, for a Window
	inFilter bool // the items of the command before are in
	// Kept is what the kind remembers between the steps of a request. At the first
	// it may be of an earlier request.
	Kept any

	Pos     []uint64    // room for the positions of one item
	oneItem [1]string   // room for Items, of a single Write or Read
	itself  [1]*Request // the list that WriteAll or ReadAll takes then
}

// Options are what the caller of an operation wants beside the answers. The zero
// value wants nothing.
type Options struct {
	Observer     Observer // learns from the answers; nil outside of a Mirror
	Clock        *Clock   // of a call about several records; or nil
	Removing     bool     // the items are removed
	CompareBirth bool     // a write reads the birth number too
}

// An Observer learns from the judged answers to the requests of a call.
type Observer interface {
	Learn(ctx context.Context, q *Request, primary bool)
	Shown(ctx context.Context, a ScriptAnswer) // to what follows an answer: a TTL, a turn
	WantsPrimary() bool                        // no region may answer
}

// A Clock is what the requests of one call learn of the server's time: if it is
// not known, one of them asks for all. The zero value has not asked.
type Clock struct{ err error }

// Time returns the time of the server's clock. A nil Clock may ask each time.
func (k *Clock) Time(ctx context.Context, c *upstash.Client) (time.Time, error) {
	if k == nil {
		return c.ServerTime(ctx)
	}
	t, ok := door.KnownServerTime(c)
	if ok {
		return t, nil
	}
	if k.err == nil {
		t, k.err = c.ServerTime(ctx)
	}
	return t, k.err
}

// Written is the outcome of a write, or of the writes of a batch.
type Written struct {
	Applied       bool // the write ran and its answers hold
	Created       bool // this very command made the filter
	MaybeRepeated bool // an earlier attempt, or an earlier command of the call, may have run
	lacksTTL      bool // bit 127 was read and is 0
	Uncertain     bool // one of the items is
	Birth         Birth
	found         Birth // of the filter that was there when the TTL was to be set
	hasTTL        bool  // that filter has it now
}

// A Birth is a birth number, of which 0 is one like others, or not known.
type Birth struct {
	Number  int64
	IsKnown bool
}

// Items is how a kind writes an item into a command, and reads what the answers
// say of it.
type Items interface {
	// AppendWrite and AppendRead append the operations to add an item, or to
	// look it up. ItemBytes is the most an item takes in a write, or in a read.
	AppendWrite(q *Request, item string)
	AppendRead(q *Request, item string)
	ItemBytes(write bool) int
	// JudgeWrite and JudgeRead take the answers about the items, and set Added
	// and Uncertain, or Found. The header and the kind's word were judged before.
	JudgeWrite(q *Request, answers []upstash.NullInt64) error
	JudgeRead(q *Request, answers []upstash.NullInt64) error
}

// A Shape is what a kind adds to a plain filter: a word of its own at bit 128.
// The record of a plain filter has none.
type Shape interface {
	// KindWord returns the word of a string made by the request; nil is any.
	KindWord(q *Request) int64
	// MutableBits returns how many low bits of the word may differ between
	// handles, such as the epoch. The others are fixed when the string is made.
	MutableBits() uint
}

// Timed is what a Window adds: steps before a command and after an answer. See
// [WriteAll].
type Timed interface {
	// Prepare chooses the epoch that the command is for, and reports whether that
	// changed for a write. After an error the command is not sent.
	Prepare(ctx context.Context, q *Request, write bool) (changed bool, err error)
	// Judge judges a write's answer by the time at which it came. It may set Err.
	Judge(ctx context.Context, q *Request)
	// Follow does what a write's answer calls for. It reports whether to send the
	// command again, and whether its items are in the filter until that is answered.
	// It may set Err.
	Follow(ctx context.Context, q *Request) (again, in bool)
	// FollowRead does what the answer to a look-up calls for. It may set Err.
	FollowRead(ctx context.Context, q *Request)
}

// Scripted is a kind that writes by a script of its own, which returns one
// answer an item.
type Scripted interface {
	// Script returns the command of a request's operations, about MaxItems items
	// at most.
	Script(q *Request) upstash.Command
	MaxItems() int
	// StoresCopies reports whether an item is stored as often as it is added: a
	// batch sends equal items too.
	StoresCopies() bool
	// Failed explains the error of a write.
	Failed(q *Request, err error) error
}

// Meaning explains a word that is not the record's, and how its errors speak of
// it.
type Meaning interface {
	OtherHeader(word int64) error
	OtherWord(word int64) error
	TooLarge(err error) error
}

// reset empties the command.
func (q *Request) reset(isScript bool) {
	q.Cmd.Reset(q.Rec.Key)
	q.WordEnds, q.Words = q.WordEnds[:0], q.Words[:0]
	q.isScript, q.ScriptOps, q.scriptOpBytes = isScript, q.ScriptOps[:0], 0
	q.readsSettled, q.readsBirth = false, false
}

// Size is the length of the command so far, in bytes, without the text of a
// script.
func (q *Request) Size() int { return q.Cmd.Size() + q.scriptOpBytes }

// SetBits appends operations that set bits of the string.
func (q *Request) SetBits(base uint64, bits []uint64) {
	if !q.isScript {
		q.Cmd.SetBits(base, bits)
		return
	}
	for _, p := range bits {
		q.AppendOp(strconv.FormatUint(base+p, 10))
	}
}

// AppendOp appends an operation of a script.
func (q *Request) AppendOp(op string) {
	q.ScriptOps = append(q.ScriptOps, op)
	q.scriptOpBytes += len(op) + len(`,""`)
}

// GetWords appends operations that read words of the string. In a script, a "g"
// tells a word to read from a bit to set.
func (q *Request) GetWords(base uint64, offsets []uint64) {
	if !q.isScript {
		q.Cmd.GetWords(U53, base, offsets)
		return
	}
	for _, o := range offsets {
		q.AppendOp("g" + strconv.FormatUint(base+o, 10))
	}
}

// GetBits appends operations that read the bits of one item.
func (q *Request) GetBits(base uint64, bits []uint64) {
	q.Cmd.GetWords("u1", base, bits)
	q.WordEnds = append(q.WordEnds, len(bits)*(len(q.WordEnds)+1))
}
