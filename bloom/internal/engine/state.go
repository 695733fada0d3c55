package engine

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/pttl"
	"github.com/upbloom/upbloom/upstash"
)

// ReadState reads the words before the cells and the length of the string in one
// transaction, so that they can prove what it is: a header word alone would let
// other data pass. It may be of another kind or geometry than the record's. With
// count it counts the set bits and reads the TTL as well.
func (r *Record) ReadState(ctx context.Context, count bool) (format.State, error) {
	replies, near, err := r.AtPrimary(ctx, func(readOnly bool) []upstash.Command {
		return r.StateCommands(count, readOnly)
	})
	if err != nil {
		return format.State{}, Explain(err)
	}
	return ParseState(replies, near)
}

// StateCommands is the commands of ReadState.
func (r *Record) StateCommands(count, readOnly bool) []upstash.Command {
	fields := upstash.NewBitField(r.Key).Get(U53, 0).Get("u11", format.WordBits).
		Get(U53, format.BirthOffset).Get("u10", format.BirthOffset+format.WordBits).
		Get(U53, format.KindOffset).Get("u11", format.KindOffset+format.WordBits)
	if readOnly {
		fields.ReadOnly()
	}
	cmds := []upstash.Command{fields.Command(), upstash.Cmd("STRLEN", r.Key)}
	if count {
		cmds = append(cmds, upstash.Cmd("BITCOUNT", r.Key, strconv.Itoa(format.HeaderBytes), "-1"),
			upstash.Cmd("PTTL", r.Key))
	}
	return cmds
}

// ParseState judges the replies to StateCommands, of a region if near is true.
func ParseState(replies []upstash.Reply, near bool) (format.State, error) {
	fields, err := replies[0].Ints(nil)
	if err != nil {
		return format.State{}, Explain(err)
	}
	n, err := numbersOf(replies[1:])
	if err != nil {
		return format.State{}, err
	}
	if len(fields) != 6 {
		return format.State{}, WrongCount(len(fields), 6)
	}
	word, err := FieldWord(fields[0])
	if err != nil {
		return format.State{}, err
	}
	if word == 0 && len(n) > 2 && n[2] != int64(upstash.NoKey) { // an empty string
		return format.State{}, ErrNoHeader
	}
	look := format.Look{
		Header: word, Birth: fields[2].Int64, Word: fields[4].Int64, Length: uint64(max(n[0], 0)),
		Stray: fields[1].Int64 != 0 || fields[3].Int64 != 0, StrayKind: fields[5].Int64 != 0,
	}
	if len(n) >= 3 {
		if n[1] < 0 {
			return format.State{}, ErrNegative
		}
		look.SetBits, look.TTL = uint64(n[1]), pttl.Duration(n[2])
	}
	return checkLook(look, near)
}

// checkLook judges a look at a key, of a region if near is true.
func checkLook(l format.Look, near bool) (format.State, error) {
	switch {
	case l.Header == 0 && l.Length != 0:
		return format.State{}, ErrNoHeader
	case l.Header == 0 && near:
		return format.State{}, errMissingNear
	case l.Header == 0:
		return format.State{}, ErrNotFound
	}
	return l.Check()
}

// AtPrimary runs reads as a transaction, with a BITFIELD or a BITFIELD_RO first.
// A BITFIELD brings it to the primary. If the server refuses it, because the
// token may not run BITFIELD or the database is full, the answer of the nearest
// region has to do. AtPrimary reports whether that may be one.
func (r *Record) AtPrimary(ctx context.Context, reads func(readOnly bool) []upstash.Command,
) (replies []upstash.Reply, near bool, err error) {
	near = r.Client.ReadOnly()
	replies, err = r.Client.MultiExec(ctx, reads(near)...)
	if fault.IsDenied(err) || fault.Is(err, upstash.ErrAborted) || err == nil && fault.IsDenied(replies[0].Err()) {
		near = true
		replies, err = r.together(ctx, reads(near))
	}
	return replies, near, err
}

// together runs reads as a transaction, because their answers must be about one
// filter. A server may refuse: a full Redis queues no command at all. Then the
// reads go without one, between two looks at the header and the birth number,
// which must agree. A Bare record has neither, and its reads go as they are.
func (r *Record) together(ctx context.Context, cmds []upstash.Command) ([]upstash.Reply, error) {
	replies, err := r.Client.MultiExec(ctx, cmds...)
	if !fault.Is(err, upstash.ErrAborted) {
		return replies, err
	}
	if !r.Headed() {
		return r.Client.Pipeline(ctx, cmds...)
	}
	look := []upstash.Command{r.Identity().ReadOnly().Command()}
	replies, err = r.Client.Pipeline(ctx, slices.Concat(look, cmds, look)...)
	if err != nil {
		return nil, err
	}
	last := len(replies) - 1
	before, err := ParseIdentity(replies[0])
	if err != nil {
		return nil, err
	}
	after, err := ParseIdentity(replies[last])
	if err != nil {
		return nil, err
	}
	if before != after {
		return nil, ErrRecreated
	}
	return replies[1:last], nil
}

// Words are a string's birth number and its kind's own word.
type Words struct{ Birth, Kind int64 }

// Counts are answers that count something of a string.
type Counts struct {
	Words
	N   []uint64
	TTL time.Duration // if it was asked for
}

// ReadCounts runs reads that count something of the record's own string, and
// reads the TTL if withTTL is true. It returns the second and third word of a
// headed string too. It remembers nothing: the answers may be a replica's, from
// before the last write.
func (r *Record) ReadCounts(ctx context.Context, withTTL bool, reads ...upstash.Command) (c Counts, err error) {
	var cmds []upstash.Command
	if r.Headed() {
		// BITFIELD_RO in any case: a token that may not write would have the
		// whole transaction refused for a BITFIELD.
		look := r.Identity().Get(U53, format.KindOffset)
		cmds = append(cmds, look.ReadOnly().Command())
	}
	cmds = append(cmds, reads...)
	if withTTL {
		cmds = append(cmds, upstash.Cmd("PTTL", r.Key))
	}
	replies, err := r.together(ctx, cmds)
	if err != nil {
		return Counts{}, Explain(err)
	}
	if r.Headed() {
		if c.Words, err = r.compareReply(replies[0]); err != nil {
			return Counts{}, err
		}
		replies = replies[1:]
	}
	n, err := numbersOf(replies)
	if err == nil {
		c.N, err = countsOf(n[:len(reads)])
	}
	if err == nil && withTTL {
		c.TTL, err = r.parseTTL(n[len(reads)])
	}
	if err != nil {
		return Counts{}, err
	}
	return c, nil
}

// parseTTL judges the answer to a PTTL.
func (r *Record) parseTTL(left int64) (time.Duration, error) {
	switch {
	case left != int64(upstash.NoKey):
		return pttl.Duration(left), nil
	case r.Headed():
		return 0, ErrNotFound
	}
	return 0, ErrBareMissing
}

// compareReply judges the answer to a BITFIELD_RO of all three words.
func (r *Record) compareReply(reply upstash.Reply) (own Words, err error) {
	all, err := fieldWords(reply, 3)
	if err == nil {
		err = r.compareNear(all[0])
	}
	if err == nil {
		err = r.CompareKind(all[2])
	}
	if err != nil {
		return Words{}, err
	}
	return Words{Birth: all[1], Kind: all[2]}, nil
}

// Identity asks for the header and the birth number.
func (r *Record) Identity() *upstash.BitField {
	return upstash.NewBitField(r.Key).Get(U53, 0).Get(U53, format.BirthOffset)
}

// ParseIdentity judges the answer to Identity.
func ParseIdentity(reply upstash.Reply) (id [2]int64, err error) {
	words, err := fieldWords(reply, len(id))
	copy(id[:], words)
	return id, err
}
