package bloom

import (
	"fmt"

	"github.com/upbloom/upbloom/upstash"
)

// How the answers to a record's operations are judged.

// written is the answer to a write, its header operations already judged.
type written struct {
	ok            bool // the write ran and its answers hold
	created       bool // this very command made the filter
	maybeRepeated bool // an earlier attempt may have set the bits
	unsettled     bool // bit 127 was asked for and is 0
	doubtful      bool // "seen" may be the work of an earlier attempt
	birth         int64
	items         int
	newItems      int // how many were new, and how many of their bits were set before
	newOnes       int
	area          int // of a window: the pane in which they were new or not
}

// uncertain reports whether the items are in, but not known to be new or seen.
func (w written) uncertain() bool { return w.ok && w.doubtful }

// countOnes counts the bits that are 1, of answers that were checked.
func countOnes(bits []upstash.NullInt64) (ones int) {
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
func (q *request) judgeWrite() error {
	r := q.rec
	q.wrote = written{maybeRepeated: q.reply.MaybeRepeated() || q.earlier}
	if q.script {
		return q.judgeScript()
	}
	if err := q.decode(q.cmd.Len()); err != nil {
		return r.failed(err)
	}
	old := q.answers
	if r.headed() {
		word, err := fieldWord(old[1])
		if err != nil {
			return err
		}
		q.wrote.created = old[0].Valid
		if q.wrote.created && word != r.header {
			// The sum did not overflow: what stood there was no header.
			return r.refuse(fmt.Errorf("%w: its first 53 bits were not zero; use a key that"+
				" holds nothing else", ErrNotFilter))
		}
		if err := r.learn(word); err != nil {
			return err
		}
		if q.wrote.created && old[2].Valid {
			q.wrote.birth = q.birth
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
func (q *request) judgeScript() error {
	if err := q.decode(-1); err != nil {
		return q.rec.failed(err)
	}
	if len(q.answers) == 0 {
		return wrongCount(0, 4+len(q.ops))
	}
	word, err := fieldWord(q.answers[0])
	if err != nil {
		return err
	}
	if err := q.rec.learn(word); err != nil {
		return missed(err, q.wrote.maybeRepeated)
	}
	if len(q.answers) < 4 {
		return wrongCount(len(q.answers), 4+len(q.ops))
	}
	old, err := q.secondWord(q.answers[1:])
	if err != nil {
		return err
	}
	if q.word, err = fieldWord(old[0]); err != nil {
		return err
	}
	if err := q.rec.learnKind(q.word); err != nil {
		return err
	}
	if old = old[1:]; len(old) != len(q.ops) {
		return wrongCount(4+len(old), 4+len(q.ops))
	}
	q.wrote.unsettled = false // Create has settled it
	return q.tookItems(old)
}

// missed returns the error of a script that found no filter, or another one, and
// so changed nothing. An attempt before may have found one that has gone since,
// or find the next one later.
func missed(err error, maybeRepeated bool) error {
	if noFilterHere(err) && !maybeRepeated {
		return untouched(err)
	}
	return err
}

// thirdWord takes the answers about the kind's own word off, if there are any.
func (q *request) thirdWord(answers []upstash.NullInt64) ([]upstash.NullInt64, error) {
	if q.rec.shape == nil {
		return answers, nil
	}
	word, err := fieldWord(answers[1])
	if err != nil {
		return nil, err
	}
	if q.wrote.created && !answers[0].Valid {
		return nil, q.rec.refuse(errHeaderBits) // a word stood there without a header
	}
	q.word = word
	return answers[2:], q.rec.learnKind(word)
}

// secondWord takes the answers about bit 127 and the birth number off, if they
// were asked.
func (q *request) secondWord(answers []upstash.NullInt64) ([]upstash.NullInt64, error) {
	if q.asksSettled {
		if err := checkBits(answers[:1]); err != nil {
			return nil, err
		}
		q.wrote.unsettled = answers[0].Int64 == 0
		answers = answers[1:]
	}
	if q.asksBirth {
		birth, err := fieldWord(answers[0])
		if err != nil {
			return nil, err
		}
		q.wrote.birth = birth
		answers = answers[1:]
	}
	return answers, nil
}

// tookItems notes for each item whether it was new.
func (q *request) tookItems(old []upstash.NullInt64) error {
	if q.rec.shape != nil {
		err := q.rec.shape.wrote(q, old)
		q.wrote.ok = err == nil
		return err
	}
	return q.tookBits(old)
}

// tookBits notes for each item of a plain filter whether one of its bits was 0.
// A BITFIELD is atomic: if one bit was still 0, or the header was missing, no
// attempt ran before this one.
func (q *request) tookBits(old []upstash.NullInt64) error {
	if err := checkBits(old); err != nil {
		return err
	}
	q.added, q.wrote.ok = q.added[:0], true
	q.wrote.doubtful = q.wrote.maybeRepeated && !q.wrote.created && allSet(old)
	q.wrote.items = len(q.items)
	if len(q.items) == 0 {
		return nil
	}
	k := len(old) / len(q.items)
	for i := range q.items {
		ones := countOnes(old[i*k : (i+1)*k])
		q.added = append(q.added, ones < k)
		if ones < k {
			q.wrote.newItems++
			q.wrote.newOnes += ones
		}
	}
	return nil
}

// judgeRead judges the header and sets found. Only an answer of the primary is
// remembered.
func (q *request) judgeRead(primary bool) error {
	err := q.readFound(primary)
	if err != nil {
		q.found = q.found[:0] // what a broken answer began with is no answer
	}
	return err
}

func (q *request) readFound(primary bool) error {
	r := q.rec
	if err := q.decode(q.cmd.Len()); err != nil {
		if primary {
			return r.failed(err)
		}
		return explain(err)
	}
	cells := q.answers
	if r.headed() {
		word, err := fieldWord(cells[0])
		if err != nil {
			return err
		}
		if primary {
			err = r.learn(word)
		} else {
			err = r.compareNear(word)
		}
		if err != nil {
			return err
		}
		if cells = cells[1:]; r.shape != nil {
			if q.word, err = fieldWord(cells[0]); err != nil {
				return err
			}
			if primary {
				err = r.learnKind(q.word)
			} else {
				err = r.compareKind(q.word)
			}
			if err != nil {
				return err
			}
			cells = cells[1:]
		}
		if q.observer != nil {
			if q.birthFound, err = fieldWord(cells[0]); err != nil {
				return err
			}
			cells = cells[1:]
		}
	}
	if r.shape != nil {
		return r.shape.read(q, cells)
	}
	if r.geo.Scheme == SchemeBlocked {
		return q.judgeWords(cells)
	}
	if err := checkBits(cells); err != nil {
		return err
	}
	from := 0
	for _, end := range q.ends {
		q.found = append(q.found, allSet(cells[from:end]))
		from = end
	}
	return nil
}

func (q *request) judgeWords(answers []upstash.NullInt64) error {
	from := 0
	for _, end := range q.ends {
		all := true
		for i := from; i < end; i++ {
			word, err := fieldWord(answers[i])
			if err != nil {
				return err
			}
			all = all && word&q.words[i].Mask == q.words[i].Mask
		}
		q.found = append(q.found, all)
		from = end
	}
	return nil
}

// decode checks that each operation has its answer; want below 0 takes any
// number.
func (q *request) decode(want int) error {
	if q.reply.IsNil() {
		return errorf("bloom: %w: null for an array", upstash.ErrBadResponse)
	}
	var err error
	q.answers, err = q.reply.Ints(q.answers[:0])
	if err != nil {
		return err
	}
	if want >= 0 && len(q.answers) != want {
		return wrongCount(len(q.answers), want)
	}
	return nil
}

func wrongCount(got, want int) error {
	return errorf("bloom: %w: %d answers to %d operations", upstash.ErrBadResponse, got, want)
}

// checkBits refuses what no bit can be: a wrong answer must not become a "no".
func checkBits(bits []upstash.NullInt64) error {
	for _, b := range bits {
		if !b.Valid || b.Int64>>1 != 0 {
			return errorf("bloom: %w: a bit that is neither 0 nor 1", upstash.ErrBadResponse)
		}
	}
	return nil
}

// fieldWord refuses what no u53 can be. Above all it refuses null: as a 0 it
// would mean a missing filter, or a word without a bit.
func fieldWord(a upstash.NullInt64) (int64, error) {
	if !a.Valid || a.Int64>>wordBits != 0 {
		return 0, errorf("bloom: %w: a word that is not a number of 53 bits", upstash.ErrBadResponse)
	}
	return a.Int64, nil
}
