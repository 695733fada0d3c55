package engine

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// A Request is one command about one record, and its outcome. A single Add is
// one request, a batch has one for each part, and one for each shard in it.
//
// Requests come from a pool, which keeps large and small ones: a part of a
// batch needs about a megabyte, a single Add a few hundred bytes.
type Request struct {
	Rec   *Record
	Items []string // in the order of their operations
	Call
	Sent
	Outcome
	Kept

	Pos   []uint64 // room for the positions of one item
	one   [1]string
	alone [1]*Request
}

// A Call is what the caller of an operation wants beside the answers. The zero
// value wants nothing.
type Call struct {
	Observer     Observer // learns from the answers; nil outside of a Mirror
	Clock        *Clock   // of a call about several records; or nil
	Removing     bool     // the items are removed
	CompareBirth bool     // a write reads the birth number too
}

// An Observer learns from the judged answers to the requests of a call.
type Observer interface {
	Learn(q *Request, primary bool)
	WantsPrimary() bool // no region may answer
}

// A Clock is what the requests of one call learn of the server's time: if it is
// not known, one of them asks for all. The zero value has not asked.
type Clock struct{ err error }

// Time returns the time of the server's clock. A nil Clock may ask each time.
func (k *Clock) Time(ctx context.Context, c *upstash.Client) (time.Time, error) {
	if k == nil {
		return c.ServerTime(ctx)
	}
	t, ok := c.KnownServerTime()
	if !ok && k.err == nil {
		t, k.err = c.ServerTime(ctx)
	}
	if ok {
		return t, nil
	}
	return t, k.err
}

// Sent is the command of a request.
type Sent struct {
	Cmd upstash.BitField

	// Of a look-up, and of what a write reads: the index at which the words of
	// each item, or of each area of an item, end.
	WordEnds []int
	Words    []cells.Word

	// Of a write.
	Birth         int64    // the birth number for a filter that it makes
	readsSettled  bool     // it reads bit 127
	readsBirth    bool     // it reads the birth number
	isScript      bool     // it is a script of these operations
	ScriptOps     []string // the operations of the script
	scriptOpBytes int      // their length in JSON
}

// Outcome is what came back.
type Outcome struct {
	Reply   upstash.Reply
	Err     error
	Answers []upstash.NullInt64

	KindWord  int64  // the kind's own word in the last answer
	BirthSeen int64  // by a look-up, for the observer
	Found     []bool // of a look-up, by item
	Added     []bool // of a write, by item: it was new, or it was removed
	Uncertain []bool // of a write, by item: it is in, and may have been new
	Wrote     Written
}

// Written is the outcome of a write, or of the writes of a batch.
type Written struct {
	Applied       bool // the write ran and its answers hold
	Created       bool // this very command made the filter
	MaybeRepeated bool // an earlier attempt, or an earlier command of the call, may have run
	unsettled     bool // bit 127 was read and is 0
	Uncertain     bool // one of the items is
	Birth         int64
	Items         int
	NewItems      int // how many were new, and how many of their bits were set before
	NewOnes       int
	Area          int // of a window: the pane in which they were new or not
}

// Kept is what a kind remembers between the steps of a request.
type Kept struct {
	// BuiltFor is the Window's epoch that this command was built for.
	BuiltFor   uint64
	TargetArea int     // the area in which the command sets bits
	Resends    int     // how often the command was sent again
	Tainted    bool    // an earlier command may be why an item is found
	InFilter   bool    // the items of the command before are in
	Late       bool    // the answer came too late, or the command was lost: it decides nothing
	Present    uint64  // the Window's epoch when the answer came
	Timed      bool    // of a look-up: BuiltFor is of the server's clock
	Region     bool    // of a look-up: a region is asked, because the primary refused
	Held       []uint8 // by item: bit i is 1 if area i held it before the command
	Fresh      int     // items that were new to the area in which bits are set, and
	FreshOnes  int     // how many of their bits were set there
}

// reset forgets the request that is over.
func (k *Kept) reset() { *k = Kept{Held: k.Held[:0]} }

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

// A Shape is what a kind adds to a plain filter: a word of its own at bit 128,
// and steps before a command and after an answer. The record of a plain filter
// has none.
type Shape interface {
	// KindWord returns the word of a string made by the request; nil is any.
	KindWord(q *Request) int64
	// MutableBits returns how many low bits of the word may differ between
	// handles, such as the epoch. The others are fixed when the string is made.
	MutableBits() uint
	// Prepare chooses what the command is for, such as the epoch of a Window,
	// and reports whether that changed for a write. It is called before the
	// command is written and again before it is sent. After an error the command
	// is not sent.
	Prepare(ctx context.Context, q *Request, write bool) (changed bool, err error)
	// Judge judges a write's answer by the time at which it came. It is called
	// before any answer of the same request is followed. It may set Err.
	Judge(ctx context.Context, q *Request)
	// Follow does what an answer calls for, and reports whether to send the
	// command again. It may set Err.
	Follow(ctx context.Context, q *Request, write bool) (again bool)
}

// A ScriptedShape writes by a script of its own, which returns one answer an
// item.
type ScriptedShape interface {
	Shape
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
	ReadsField() string // the field that lets a region answer, if there is one
}

var requestPool = sync.Pool{New: func() any { return new(Request) }}

// newRequest takes a request from the pool; its user puts it back with Free.
func newRequest(r *Record, call Call) *Request {
	q := requestPool.Get().(*Request)
	q.Rec, q.Call, q.alone[0] = r, call, q
	return q
}

// Free puts the request back. Nothing of it may be used any more.
func (q *Request) Free() {
	clear(q.Items) // the caller's strings
	q.Rec, q.Call, q.Items, q.one[0] = nil, Call{}, q.Items[:0], ""
	q.Reply, q.Err, q.Wrote, q.KindWord = upstash.Reply{}, nil, Written{}, 0
	q.Kept.reset()
	requestPool.Put(q)
}

// single makes the request one about a single item, without an allocation.
func (q *Request) single(item string) {
	q.one[0] = item
	q.Items = q.one[:]
}

// observe lets the Mirror learn from the judged request: Err says if it failed.
// primary is false if a region may have answered.
func (q *Request) observe(primary bool) {
	if q.Observer != nil {
		q.Observer.Learn(q, primary)
	}
}

// prepare has the shape choose what the request is for, and reports whether
// that changed.
func (q *Request) prepare(ctx context.Context, write bool) (changed bool) {
	if q.Rec.Shape == nil {
		return false
	}
	changed, err := q.Rec.Shape.Prepare(ctx, q, write)
	switch {
	case err != nil && q.Resends > 0:
		q.FailAfter(err, q.InFilter)
	case err != nil:
		q.Err = err
	}
	return changed
}

// prepareAll prepares the requests again, and returns those to send. encode
// writes the command of a write again that has changed; look-ups have none.
func prepareAll(ctx context.Context, reqs []*Request, encode func(*Request)) []*Request {
	var out []*Request
	for i, q := range reqs {
		if q.Rec.Shape == nil {
			continue
		}
		if q.Err == nil && q.prepare(ctx, encode != nil) {
			encode(q)
		}
		if q.Err != nil && out == nil {
			out = append(make([]*Request, 0, len(reqs)), reqs[:i]...)
		}
	}
	if out == nil {
		return reqs
	}
	for _, q := range reqs[len(out):] {
		if q.Err == nil {
			out = append(out, q)
		}
	}
	return out
}

// send runs the requests' commands in one HTTP request, and sets each one's
// reply or error. They share a client.
func send(ctx context.Context, reqs []*Request) {
	if len(reqs) == 1 {
		q := reqs[0]
		q.Reply, q.Err = q.Rec.Client.Do(ctx, q.command())
		return
	}
	cmds := make([]upstash.Command, len(reqs))
	for i, q := range reqs {
		cmds[i] = q.command()
	}
	replies, err := reqs[0].Rec.Client.Pipeline(ctx, cmds...)
	for i, q := range reqs {
		if q.Err = err; err == nil {
			q.Reply, q.Err = replies[i], replies[i].Err()
		}
	}
}

// command is a BITFIELD or a script.
func (q *Request) command() upstash.Command {
	if !q.isScript {
		return q.Cmd.Command()
	}
	if own := q.Rec.Scripted(); own != nil {
		return own.Script(q)
	}
	return q.mustExistCommand()
}

func (q *Request) mustExistCommand() upstash.Command {
	c := q.Rec.Script(mustExistScript, nil, append(q.Rec.KindArgs(), q.ScriptOps...)...).Repeatable(true)
	if len(q.ScriptOps) <= scriptOps {
		return c.AllOrNothing()
	}
	return c
}

// mustExistScript runs the operations ARGV[4] and on, if the string is there
// and of the record's kind. An operation is the offset of a bit to set, or "g"
// and the offset of a word to read. The script returns the header, bit 127, the
// birth number, the kind's word and the old values. Lua unpacks no more than
// some thousands of values at once, so it runs scriptOps operations at a time.
// It may fail between two of these writes, if the string grows beyond a limit.
var mustExistScript = upstash.NewScript(LuaCheckHeader + LuaCheckKind + `local out, ops = w, {}
for i = 4, #ARGV do
  local o = ARGV[i]
  if string.byte(o) == 103 then
    ops[#ops + 1] = 'GET'
    ops[#ops + 1] = 'u53'
    ops[#ops + 1] = string.sub(o, 2)
  else
    ops[#ops + 1] = 'SET'
    ops[#ops + 1] = 'u1'
    ops[#ops + 1] = o
    ops[#ops + 1] = '1'
  end
  if #ops >= 3997 or i == #ARGV then
    local old = redis.call('BITFIELD', KEYS[1], unpack(ops))
    for j = 1, #old do out[#out + 1] = old[j] end
    ops = {}
  end
end
return out`)

const (
	// scriptOps is how many operations mustExistScript certainly runs at once.
	// The 3997 in the script is four words for each.
	scriptOps = 999
	// getMark tells a word to read from a bit to set.
	getMark = "g"
)

// ScriptBytes is what a script adds to a write, beside its operations.
func (r *Record) ScriptBytes() int {
	if own := r.Scripted(); own != nil {
		q := Request{Rec: r}
		q.Birth = r.NewBirth()
		return own.Script(&q).Size()
	}
	if !r.MustExist {
		return 0
	}
	return r.Script(mustExistScript, nil, r.KindArgs()...).Size()
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

// GetWords appends operations that read words of the string.
func (q *Request) GetWords(base uint64, offsets []uint64) {
	if !q.isScript {
		q.Cmd.GetWords(U53, base, offsets)
		return
	}
	for _, o := range offsets {
		q.appendGet(base + o)
	}
}

// GetBits appends operations that read the bits of one item.
func (q *Request) GetBits(base uint64, bits []uint64) {
	q.Cmd.GetBits(base, bits)
	q.WordEnds = append(q.WordEnds, len(bits)*(len(q.WordEnds)+1))
}

// appendGet appends an operation that reads a word.
func (q *Request) appendGet(offset uint64) {
	q.AppendOp(getMark + strconv.FormatUint(offset, 10))
}

// decode reads the answers of a request, and checks that each operation has
// one. A want below 0 takes any number.
func (q *Request) decode(want int) error {
	if q.Reply.IsNil() {
		return fault.Errorf("bloom: %w: null for an array", upstash.ErrBadResponse)
	}
	var err error
	q.Answers, err = q.Reply.Ints(q.Answers[:0])
	if err != nil {
		return err
	}
	if want >= 0 && len(q.Answers) != want {
		return WrongCount(len(q.Answers), want)
	}
	return nil
}
