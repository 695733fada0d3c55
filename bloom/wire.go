package bloom

import (
	"context"
	"errors"
	"fmt"

	"github.com/upbloom/upbloom/upstash"
)

// headerType is the field of the header word, at bit 0.
const headerType = "u53"

// beginWrite starts a command that creates the filter where there is none,
// verifies it, and then sets bits.
func (f *Filter) beginWrite(b *upstash.BitField) {
	b.Reset(f.key)
	if f.headed() {
		b.Overflow(upstash.Fail).IncrBy(headerType, 0, f.header).Get(headerType, 0).Overflow(upstash.Wrap)
	}
}

// beginRead starts a command that verifies the filter and then reads bits.
func (f *Filter) beginRead(b *upstash.BitField) {
	b.Reset(f.key)
	if f.headed() {
		b.Get(headerType, 0)
	}
	if f.client.ReadOnly() {
		b.ReadOnly()
	}
}

// setItem and getItem append one item's operations.
func (f *Filter) setItem(s *scratch, item string) {
	s.pos = f.geo.Positions(s.pos[:0], item)
	if s.cmd.Len() == 0 { // Bare: there is no header before the first item
		s.first = append(s.first[:0], s.pos...)
	}
	s.cmd.SetBits(f.cfg.Layout.bodyOffset(), s.pos)
}

func (f *Filter) getItem(s *scratch, item string) {
	s.pos = f.geo.Positions(s.pos[:0], item)
	s.cmd.GetBits(f.cfg.Layout.bodyOffset(), s.pos)
}

// written is the answer to a write, its header operations already judged.
type written struct {
	old           []upstash.NullInt64 // the bits before, k an item
	created       bool                // this very command made the filter
	maybeRepeated bool                // an earlier attempt may have set the bits
}

// uncertain tells whether all of it could be the work of an earlier attempt. A
// BITFIELD is atomic: one bit that was still 0, or a header that was not there,
// proves that no attempt ran before this one.
func (w written) uncertain() bool {
	if !w.maybeRepeated || w.created {
		return false
	}
	return allSet(w.old)
}

func allSet(bits []upstash.NullInt64) bool {
	for _, b := range bits {
		if b.Int64 != 1 {
			return false
		}
	}
	return true
}

// write sends the write in s and judges the header.
func (f *Filter) write(ctx context.Context, s *scratch) (written, error) {
	if err := f.mayWrite(); err != nil {
		return written{}, err
	}
	withTTL := !f.expiring.Load()
	reply, expired, err := f.sendWrite(ctx, s.cmd.Command(), withTTL)
	var w written
	if err == nil {
		w, err = f.readWrite(reply, s)
	}
	if err != nil {
		if withTTL && isForeign(err) {
			err = f.undoExpire(ctx, expired, err)
		}
		return written{}, err
	}
	if withTTL {
		return w, f.noteExpire(expired)
	}
	return w, f.renewExpire(ctx, w, s)
}

// readWrite splits the answers into the header's and the items'.
func (f *Filter) readWrite(reply upstash.Reply, s *scratch) (written, error) {
	w := written{maybeRepeated: reply.MaybeRepeated()}
	answers, err := f.answers(reply, s)
	if err != nil {
		return w, err
	}
	if !f.headed() {
		w.old = answers
		return w, checkBits(w.old)
	}
	word, err := headerWord(answers[1])
	if err != nil {
		return w, err
	}
	w.old, w.created = answers[2:], answers[0].Valid
	if w.created && word != f.header {
		// The sum did not overflow, so that what stood there was no header.
		return w, f.refuse(fmt.Errorf("%w: its first 53 bits were not zero; use a key that"+
			" holds nothing else", ErrNotFilter))
	}
	if err := f.verify(word); err != nil {
		return w, err
	}
	return w, checkBits(w.old)
}

// read sends the read in s and gives the bits, k an item. A filter that is not
// there is ErrNotFound.
func (f *Filter) read(ctx context.Context, s *scratch) ([]upstash.NullInt64, error) {
	answers, err := f.ask(ctx, s)
	if err != nil {
		return nil, err
	}
	if f.headed() {
		word, err := headerWord(answers[0])
		if err == nil {
			err = f.verify(word)
		}
		if err != nil {
			return nil, err
		}
		answers = answers[1:]
	}
	return answers, checkBits(answers)
}

// ask sends the read in s and gives one answer for each operation.
func (f *Filter) ask(ctx context.Context, s *scratch) ([]upstash.NullInt64, error) {
	reply, err := f.client.Do(ctx, s.cmd.Command())
	if errors.Is(err, upstash.ErrNoPermission) && s.cmd.Command().Name() == "BITFIELD" {
		// A read-only token, and a client that was not told so.
		reply, err = f.client.Do(ctx, s.cmd.ReadOnly().Command())
	}
	if err != nil {
		return nil, f.wrongType(err)
	}
	return f.answers(reply, s)
}

// answers checks that each operation has its answer.
func (f *Filter) answers(reply upstash.Reply, s *scratch) ([]upstash.NullInt64, error) {
	var err error
	s.answers, err = reply.Ints(s.answers[:0])
	if reply.IsNil() {
		return nil, fmt.Errorf("bloom: BITFIELD: %w: null", upstash.ErrBadResponse)
	}
	if err != nil {
		return nil, f.wrongType(err)
	}
	if len(s.answers) != s.cmd.Len() {
		return nil, fmt.Errorf("bloom: BITFIELD: %w: %d answers to %d operations",
			upstash.ErrBadResponse, len(s.answers), s.cmd.Len())
	}
	return s.answers, nil
}

// checkBits refuses what no bit can be: a wrong answer must not become a "no".
func checkBits(bits []upstash.NullInt64) error {
	for _, b := range bits {
		if !b.Valid || b.Int64>>1 != 0 {
			return fmt.Errorf("bloom: BITFIELD: %w: a bit that is neither 0 nor 1", upstash.ErrBadResponse)
		}
	}
	return nil
}

// headerWord refuses what no u53 can be, a null above all: taken for 0 it would
// be a filter that is not there.
func headerWord(a upstash.NullInt64) (int64, error) {
	if !a.Valid || a.Int64>>53 != 0 {
		return 0, fmt.Errorf("bloom: BITFIELD: %w: a header that is not a number of 53 bits",
			upstash.ErrBadResponse)
	}
	return a.Int64, nil
}

// verify compares a header word with the handle's, and remembers what it finds:
// where another filter stands, nothing is written until one that fits, or none,
// was seen there.
func (f *Filter) verify(word int64) error {
	err := f.compare(word)
	switch {
	case err == nil:
		f.verified.Store(true)
		f.refused.Store(nil)
	case errors.Is(err, ErrNotFound):
		f.forget()
	default:
		return f.refuse(err)
	}
	return err
}

// compare judges a header word.
func (f *Filter) compare(word int64) error {
	switch word {
	case f.header:
		return nil
	case 0:
		return ErrNotFound
	}
	got, err := parseHeader(uint64(word))
	if err != nil {
		return err
	}
	return newMismatchError(f.kind, f.geo, got)
}

// refuse remembers why nothing more may be written.
func (f *Filter) refuse(err error) error {
	f.refused.Store(&err)
	return err
}

// isForeign tells whether an error says that the key holds something else.
func isForeign(err error) bool {
	var m *MismatchError
	return errors.As(err, &m) || errors.Is(err, ErrNotFilter)
}

// mayWrite refuses where a write is known to fail or to do harm.
func (f *Filter) mayWrite() error {
	if err := f.refused.Load(); err != nil {
		return *err
	}
	if f.client.ReadOnly() {
		return upstash.ErrReadOnly
	}
	return nil
}

// wrongType says that a key of another type is no filter, and remembers it.
func (f *Filter) wrongType(err error) error {
	err = wrongType(err)
	if errors.Is(err, ErrNotFilter) {
		return f.refuse(err)
	}
	return err
}

func wrongType(err error) error {
	var server *upstash.Error
	if errors.As(err, &server) && server.Code() == "WRONGTYPE" {
		return fmt.Errorf("%w: use a key that holds nothing else: %w", ErrNotFilter, err)
	}
	return err
}
