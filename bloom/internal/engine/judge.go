package engine

import (
	"fmt"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// How the answers to a record's operations are judged.

// written is the answer to a write, its header operations already judged.
type Written struct {
	Ok            bool // the write ran and its answers hold
	Created       bool // this very command made the filter
	MaybeRepeated bool // an earlier attempt may have set the bits
	unsettled     bool // bit 127 was asked for and is 0
	Doubtful      bool // "seen" may be the work of an earlier attempt
	Birth         int64
	Items         int
	NewItems      int // how many were new, and how many of their bits were set before
	NewOnes       int
	Area          int // of a window: the pane in which they were new or not
}

// uncertain reports whether the items are in, but not known to be new or seen.
func (w Written) Uncertain() bool { return w.Ok && w.Doubtful }

// countOnes counts the bits that are 1, of answers that were checked.
func CountOnes(bits []upstash.NullInt64) (ones int) {
	for _, b := range bits {
		ones += int(b.Int64)
	}
	return ones
}

func allSet(bits []upstash.NullInt64) bool {
	for _, b := range bits {
		if b.Int64 != 1 {
			return false
		}
	}
	return true
}

// judgeWrite splits the answers into the header's and the items'. A write to a
// filter with a header begins with three operations:
//
//	old[0]  INCRBY u53 0 header   the header if there was none, else null
//	old[1]  GET u53 0             the header now
//	old[2]  INCRBY u53 64 birth   this call's birth number, null if there was one
//
// Header and birth number have their top bit set: under OVERFLOW FAIL a second
// INCRBY overflows and changes nothing. So one BITFIELD both creates a filter
// and verifies it. The kind's word and bit 127 follow, if they were asked for.
func (q *Request) JudgeWrite() error {
	r := q.Rec
	q.Wrote = Written{MaybeRepeated: q.Reply.MaybeRepeated() || q.earlier}
	if q.script {
		return q.judgeScript()
	}
	if err := q.decode(q.Cmd.Len()); err != nil {
		return r.Failed(err)
	}
	old := q.Answers
	if r.Headed() {
		word, err := FieldWord(old[1])
		if err != nil {
			return err
		}
		q.Wrote.Created = old[0].Valid
		if q.Wrote.Created && word != r.Header {
			// The sum did not overflow: what stood there was no header.
			return r.Refuse(fmt.Errorf("%w: its first 53 bits were not zero; use a key that"+
				" holds nothing else", ErrNotFilter))
		}
		if err := r.Learn(word); err != nil {
			return err
		}
		if q.Wrote.Created && old[2].Valid {
			q.Wrote.Birth = q.Birth
		}
		if old, err = q.thirdWord(old[3:]); err != nil {
			return err
		}
		if old, err = q.secondWord(old); err != nil {
			return err
		}
	}
	return q.tookItems(old)
}

// judgeScript judges the answers of a script that writes: the header, and if it
// is ours, bit 127, the birth number, the kind's word and an answer to each
// operation.
func (q *Request) judgeScript() error {
	if err := q.decode(-1); err != nil {
		return q.Rec.Failed(err)
	}
	if len(q.Answers) == 0 {
		return WrongCount(0, 4+len(q.Ops))
	}
	word, err := FieldWord(q.Answers[0])
	if err != nil {
		return err
	}
	if err := q.Rec.Learn(word); err != nil {
		return Missed(err, q.Wrote.MaybeRepeated)
	}
	if len(q.Answers) < 4 {
		return WrongCount(len(q.Answers), 4+len(q.Ops))
	}
	old, err := q.secondWord(q.Answers[1:])
	if err != nil {
		return err
	}
	if q.Word, err = FieldWord(old[0]); err != nil {
		return err
	}
	if err := q.Rec.LearnKind(q.Word); err != nil {
		return err
	}
	if old = old[1:]; len(old) != len(q.Ops) {
		return WrongCount(4+len(old), 4+len(q.Ops))
	}
	q.Wrote.unsettled = false // Create has settled it
	return q.tookItems(old)
}

// missed returns the error of a script that found no filter, or another one, and
// so changed nothing. An attempt before may have found one that has gone since,
// or find the next one later.
func Missed(err error, maybeRepeated bool) error {
	if NoFilterHere(err) && !maybeRepeated {
		return fault.Untouched(err)
	}
	return err
}

// thirdWord takes the answers about the kind's own word off, if there are any.
func (q *Request) thirdWord(answers []upstash.NullInt64) ([]upstash.NullInt64, error) {
	if q.Rec.Shape == nil {
		return answers, nil
	}
	word, err := FieldWord(answers[1])
	if err != nil {
		return nil, err
	}
	if q.Wrote.Created && !answers[0].Valid {
		return nil, q.Rec.Refuse(ErrHeaderBits) // a word stood there without a header
	}
	q.Word = word
	return answers[2:], q.Rec.LearnKind(word)
}

// secondWord takes the answers about bit 127 and the birth number off, if they
// were asked.
func (q *Request) secondWord(answers []upstash.NullInt64) ([]upstash.NullInt64, error) {
	if q.asksSettled {
		if err := CheckBits(answers[:1]); err != nil {
			return nil, err
		}
		q.Wrote.unsettled = answers[0].Int64 == 0
		answers = answers[1:]
	}
	if q.asksBirth {
		birth, err := FieldWord(answers[0])
		if err != nil {
			return nil, err
		}
		q.Wrote.Birth = birth
		answers = answers[1:]
	}
	return answers, nil
}

// tookItems notes for each item whether it was new.
func (q *Request) tookItems(old []upstash.NullInt64) error {
	err := q.Rec.Items.Wrote(q, old)
	q.Wrote.Ok = err == nil
	return err
}

// tookBits notes for each item of a plain filter whether one of its bits was 0.
// A BITFIELD is atomic: if one bit was still 0, or the header was missing, no
// attempt ran before this one.
func (q *Request) TookBits(old []upstash.NullInt64) error {
	if err := CheckBits(old); err != nil {
		return err
	}
	q.Added = q.Added[:0]
	q.Wrote.Doubtful = q.Wrote.MaybeRepeated && !q.Wrote.Created && allSet(old)
	q.Wrote.Items = len(q.Items)
	if len(q.Items) == 0 {
		return nil
	}
	k := len(old) / len(q.Items)
	for i := range q.Items {
		ones := CountOnes(old[i*k : (i+1)*k])
		q.Added = append(q.Added, ones < k)
		if ones < k {
			q.Wrote.NewItems++
			q.Wrote.NewOnes += ones
		}
	}
	return nil
}

// judgeRead judges the header and sets found. Only an answer of the primary is
// remembered.
func (q *Request) JudgeRead(primary bool) error {
	err := q.readFound(primary)
	if err != nil {
		q.Found = q.Found[:0] // what a broken answer began with is no answer
	}
	return err
}

func (q *Request) readFound(primary bool) error {
	r := q.Rec
	if err := q.decode(q.Cmd.Len()); err != nil {
		if primary {
			return r.Failed(err)
		}
		return Explain(err)
	}
	cells := q.Answers
	if r.Headed() {
		word, err := FieldWord(cells[0])
		if err != nil {
			return err
		}
		if primary {
			err = r.Learn(word)
		} else {
			err = r.CompareNear(word)
		}
		if err != nil {
			return err
		}
		if cells = cells[1:]; r.Shape != nil {
			if q.Word, err = FieldWord(cells[0]); err != nil {
				return err
			}
			if primary {
				err = r.LearnKind(q.Word)
			} else {
				err = r.CompareKind(q.Word)
			}
			if err != nil {
				return err
			}
			cells = cells[1:]
		}
		if q.Observer != nil {
			if q.BirthFound, err = FieldWord(cells[0]); err != nil {
				return err
			}
			cells = cells[1:]
		}
	}
	return r.Items.Read(q, cells)
}

// judgeBits finds the items all of whose bits are set.
func (q *Request) JudgeBits(answers []upstash.NullInt64) error {
	if err := CheckBits(answers); err != nil {
		return err
	}
	from := 0
	for _, end := range q.Ends {
		q.Found = append(q.Found, allSet(answers[from:end]))
		from = end
	}
	return nil
}

// judgeWords finds the items all of whose words have the item's bits.
func (q *Request) JudgeWords(answers []upstash.NullInt64) error {
	from := 0
	for _, end := range q.Ends {
		all := true
		for i := from; i < end; i++ {
			word, err := FieldWord(answers[i])
			if err != nil {
				return err
			}
			all = all && word&q.Words[i].Mask == q.Words[i].Mask
		}
		q.Found = append(q.Found, all)
		from = end
	}
	return nil
}

// decode checks that each operation has its answer; want below 0 takes any
// number.
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

func WrongCount(got, want int) error {
	return fault.Errorf("bloom: %w: %d answers to %d operations", upstash.ErrBadResponse, got, want)
}

// checkBits refuses what no bit can be: a wrong answer must not become a "no".
func CheckBits(bits []upstash.NullInt64) error {
	for _, b := range bits {
		if !b.Valid || b.Int64>>1 != 0 {
			return fault.Errorf("bloom: %w: a bit that is neither 0 nor 1", upstash.ErrBadResponse)
		}
	}
	return nil
}

// fieldWord refuses what no u53 can be. Above all it refuses null: as a 0 it
// would mean a missing filter, or a word without a bit.
func FieldWord(a upstash.NullInt64) (int64, error) {
	if !a.Valid || a.Int64>>cells.WordBits != 0 {
		return 0, fault.Errorf("bloom: %w: a word that is not a number of 53 bits", upstash.ErrBadResponse)
	}
	return a.Int64, nil
}
