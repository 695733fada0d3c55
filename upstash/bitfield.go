package upstash

import (
	"context"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/upbloom/upbloom/internal/door"
)

// Overflow says what a SET or INCRBY does with a value out of range. It prints
// as in the command: WRAP, SAT or FAIL.
type Overflow uint8

const (
	// Wrap keeps the low bits, as C does. It is the default.
	Wrap Overflow = iota
	// Sat stops at the least or greatest value.
	Sat
	// Fail leaves the field as it is and answers null.
	Fail
)

func (o Overflow) String() string {
	switch o {
	case Wrap:
		return "WRAP"
	case Sat:
		return "SAT"
	case Fail:
		return "FAIL"
	}
	return "Overflow(" + strconv.Itoa(int(o)) + ")"
}

// BitField builds a BITFIELD command. A type is "u1" to "u63" or "i1" to "i64".
// An offset counts bits from the most significant bit of the first byte, up to
// 2^32-1. Mistakes are reported when it is sent, as [ErrArgument].
//
// It is not safe for concurrent use and must not be copied. The zero value
// cannot be sent.
type BitField struct {
	json    **hidden[bitFieldJSON]
	replies int
	ops     opTraits
	err     error
	birth   int64 // see Command
}

type bitFieldJSON struct {
	buf   []byte         // three spare bytes, then the array without its bracket
	whole hidden[[]byte] // the command as it stands; in buf
}

// Both openings end at the same place in the buffer: ReadOnly turns one into
// the other.
const (
	bitFieldOpen   = `["BITFIELD"`
	bitFieldROOpen = `["BITFIELD_RO"`
	bitFieldSpaces = "   "
	bitFieldSpare  = len(bitFieldROOpen) - len(bitFieldOpen)
)

// maxBitOffset is the last bit that BITFIELD reaches, in a string of 512 MiB.
const maxBitOffset = 1<<32 - 1

// NewBitField starts a command on key.
func NewBitField(key string) *BitField { return new(BitField).Reset(key) }

// Reset starts a new command in the same memory. Commands taken from b before
// become invalid.
func (b *BitField) Reset(key string) *BitField {
	*b = BitField{json: b.json}
	j := b.open()
	j.buf = append(j.buf[:0], bitFieldSpaces+bitFieldOpen...)
	if !utf8.ValidString(key) {
		b.err = argumentError("BITFIELD", "the key is not valid UTF-8")
		return b
	}
	j.buf = appendString(append(j.buf, ','), key)
	return b
}

// open returns the buffers for the operations.
func (b *BitField) open() *bitFieldJSON {
	if b.json == nil { // only in the zero value, which Command refuses
		b.json = hide(bitFieldJSON{})
	}
	return &(*b.json).v
}

// Get reads the integer at an offset.
func (b *BitField) Get(typ string, offset uint64) *BitField {
	b.field(`,"GET",`, typ, offset)
	return b
}

// Set writes the integer at an offset. Its answer is the old one.
func (b *BitField) Set(typ string, offset uint64, value int64) *BitField {
	b.ops.set(offset)
	b.field(`,"SET",`, typ, offset)
	if value != 1 {
		return b.value(value)
	}
	// As a JSON number, which survives a server with floats for numbers, and saves
	// two bytes a bit.
	j := b.open()
	j.buf = append(j.buf, `,1`...)
	return b
}

// IncrBy adds to the integer at an offset. Its answer is the new one.
func (b *BitField) IncrBy(typ string, offset uint64, incr int64) *BitField {
	b.ops.incrBy(typ, offset, incr)
	b.field(`,"INCRBY",`, typ, offset)
	return b.value(incr)
}

// Overflow sets the mode of later SETs and INCRBYs. It has no answer.
func (b *BitField) Overflow(mode Overflow) *BitField {
	if mode > Fail {
		b.refuse("%v: use Wrap, Sat or Fail", mode)
		return b
	}
	b.ops.fail, b.ops.writes = mode == Fail, true
	j := b.open()
	j.buf = append(append(append(j.buf, `,"OVERFLOW","`...), mode.String()...), '"')
	return b
}

// GetWords is Get(typ, base+o) for each o of offsets, but faster.
func (b *BitField) GetWords(typ string, base uint64, offsets []uint64) *BitField {
	if fieldWidth(typ) == 0 {
		b.refuse("type %.6q: use u1 to u63 or i1 to i64", typ)
		return b
	}
	var room [len(`,"GET","u63","`)]byte
	begin := append(append(append(room[:0], `,"GET","`...), typ...), `","`...)
	j := b.open()
	b.offset(base) // so that no sum wraps around
	for _, o := range offsets {
		j.buf = append(j.buf, begin...)
		j.buf = strconv.AppendUint(j.buf, b.offset(base+b.offset(o)), 10)
		j.buf = append(j.buf, '"')
	}
	b.replies += len(offsets)
	return b
}

// SetBits is Set("u1", base+p, 1) for each p of positions.
func (b *BitField) SetBits(base uint64, positions []uint64) *BitField {
	b.ops.set(base)
	j := b.open()
	b.offset(base) // so that no sum wraps around
	for _, p := range positions {
		j.buf = append(j.buf, `,"SET","u1","`...)
		j.buf = strconv.AppendUint(j.buf, b.offset(base+b.offset(p)), 10)
		j.buf = append(j.buf, `",1`...)
	}
	b.replies += len(positions)
	return b
}

// ReadOnly makes it a BITFIELD_RO, which takes only gets. A read-only token may
// run it, and a replica may answer it.
func (b *BitField) ReadOnly() *BitField {
	if buf := b.open().buf; len(buf) > 0 && buf[0] == ' ' {
		copy(buf, bitFieldROOpen)
	}
	return b
}

func (b *BitField) isReadOnly() bool {
	buf := b.open().buf
	return len(buf) > 0 && buf[0] == '['
}

// notReadOnly takes ReadOnly back.
func (b *BitField) notReadOnly() {
	if b.isReadOnly() {
		copy(b.open().buf, bitFieldSpaces+bitFieldOpen)
	}
}

// Len returns the number of answers: one for each operation but Overflow.
func (b *BitField) Len() int { return b.replies }

// Size returns the length of the JSON in bytes.
func (b *BitField) Size() int { return len(b.open().buf) + 1 - bitFieldSpare }

// Command returns the command as it stands. Do not change b until its call has
// returned.
func (b *BitField) Command() Command {
	c := Command{name: "BITFIELD", err: b.err, traits: b.ops.traits(), birth: b.birth}
	start, j := bitFieldSpare, b.open()
	if len(j.buf) == 0 || j.buf[0] == ',' { // never Reset
		c.err = argumentError(c.name, "make a BitField with NewBitField")
		return c
	}
	if b.isReadOnly() {
		c.name, start = "BITFIELD_RO", 0
		if b.ops.writes && c.err == nil {
			c.err = argumentError(c.name, "a read-only command takes only Get")
		}
	}
	whole := append(j.buf, ']')
	j.buf, j.whole.v = whole[:len(whole)-1], whole[start:]
	c.json = j.whole.pointer()
	return c
}

func (b *BitField) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "upstash.BitField(%s)", b.Command().name)
}

// BitField runs the command and returns its answers, in order. If a write may
// have run before, it returns the repetition's answers and [ErrMaybeRepeated].
// A read-only token needs [WithReadOnly].
func (c *Client) BitField(ctx context.Context, b *BitField) ([]NullInt64, error) {
	if b == nil {
		return nil, argumentError("BITFIELD", "the BitField is nil: make one with NewBitField")
	}
	if c.readOnly && !b.ops.writes && !b.isReadOnly() {
		b.ReadOnly()
		defer b.notReadOnly() // the builder is the caller's
	}
	r, err := c.Do(ctx, b.Command())
	if err != nil {
		return nil, err
	}
	if r.IsNil() {
		return nil, r.bad("null for an array")
	}
	answers, err := r.Ints(make([]NullInt64, 0, b.replies))
	if err != nil {
		return nil, err
	}
	if len(answers) != b.replies {
		return nil, r.bad("%d answers for %d operations", len(answers), b.replies)
	}
	if b.ops.writes && r.MaybeRepeated() {
		return answers, r.uncertain()
	}
	return answers, nil
}

// field begins an operation that has an answer.
func (b *BitField) field(op, typ string, offset uint64) {
	b.replies++
	if fieldWidth(typ) == 0 {
		b.refuse("type %.6q: use u1 to u63 or i1 to i64", typ)
		return
	}
	j := b.open()
	j.buf = append(append(append(append(j.buf, op...), '"'), typ...), `","`...)
	j.buf = append(strconv.AppendUint(j.buf, b.offset(offset), 10), '"')
}

func (b *BitField) offset(o uint64) uint64 {
	if o > maxBitOffset {
		b.refuse("offset %d: the last bit that BITFIELD reaches is %d", o, uint64(maxBitOffset))
	}
	return o
}

func (b *BitField) value(v int64) *BitField {
	j := b.open()
	j.buf = append(strconv.AppendInt(append(j.buf, `,"`...), v, 10), '"')
	return b
}

func (b *BitField) refuse(format string, args ...any) {
	if b.err == nil {
		b.err = argumentError("BITFIELD", format, args...)
	}
}

// fieldWidth returns the bits of a type, 0 if typ is none.
func fieldWidth(typ string) uint64 {
	if len(typ) < 2 || len(typ) > 3 || typ[0] != 'u' && typ[0] != 'i' || typ[1] == '0' {
		return 0
	}
	n := uint64(0)
	for _, c := range []byte(typ[1:]) {
		if c < '0' || c > '9' {
			return 0
		}
		n = 10*n + uint64(c-'0')
	}
	if n > 64 || n == 64 && typ[0] == 'u' {
		return 0
	}
	return n
}

// opTraits gathers what the operations of one BITFIELD do together.
type opTraits struct {
	fail, writes, unsafe bool

	guarded uint64 // the first bit after those written by "set if zero"
	sets    bool
	lowest  uint64 // the first bit of all SETs
}

func (o *opTraits) set(offset uint64) {
	o.writes = true
	if !o.sets || offset < o.lowest {
		o.sets, o.lowest = true, offset
	}
}

// incrBy notes an INCRBY. Most are unsafe to repeat. The exception is "set if
// zero", which writes a filter's header: under OVERFLOW FAIL, adding at least
// half of an unsigned range cannot succeed twice. It is repeatable if no other
// operation writes the same bits. Several are noted only in ascending order of
// their bits. Adding 0 is repeatable too, and at most makes a string longer.
func (o *opTraits) incrBy(typ string, offset uint64, incr int64) {
	o.writes = true
	width := fieldWidth(typ)
	switch {
	case incr == 0:
	case o.fail && width != 0 && typ[0] == 'u' && incr > 0 && incr>>(width-1) != 0 && offset >= o.guarded:
		o.guarded = offset + width
	default:
		o.unsafe = true
	}
}

func (o *opTraits) traits() traits {
	if o.unsafe || o.sets && o.lowest < o.guarded {
		return 0
	}
	if o.writes {
		return traitRepeatable
	}
	return traitRead | traitRepeatable
}

func init() {
	door.Numbered = func(command any, birth int64) {
		switch c := command.(type) {
		case *BitField:
			c.birth = birth
		case *Command:
			c.birth = birth
		}
	}
}
