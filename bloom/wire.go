package bloom

import (
	"strconv"

	"github.com/upbloom/upbloom/upstash"
)

// How a record's operations are written into a command. judge.go reads its
// answers.

// beginWrite starts a command that creates the filter if there is none, verifies
// it, and then sets bits. With compareBirth it also returns the birth number.
func (q *request) beginWrite(birth int64, compareBirth bool) {
	r, b := q.rec, &q.cmd
	q.birth, q.compareBirth = birth, compareBirth
	q.asksBirth, q.asksSettled, q.script = false, false, r.must || r.ownScript() != nil
	q.ops, q.opBytes, q.ends, q.words = q.ops[:0], 0, q.ends[:0], q.words[:0]
	b.Reset(r.key)
	if !r.headed() {
		return
	}
	q.asksBirth, q.asksSettled = compareBirth || q.observer != nil, r.ttl != 0
	if q.script {
		q.asksBirth, q.asksSettled = true, true // a script answers all
		return
	}
	b.Overflow(upstash.Fail).IncrBy(u53, 0, r.header).Get(u53, 0).
		IncrBy(u53, birthOffset, birth)
	if r.shape != nil {
		b.IncrBy(u53, kindWordOffset, r.shape.word(q)).Get(u53, kindWordOffset)
	}
	if q.asksSettled {
		b.Get("u1", settledOffset)
	}
	if q.asksBirth {
		b.Get(u53, birthOffset)
	}
	b.Overflow(upstash.Wrap)
}

// setItem appends the operations to add an item.
func (q *request) setItem(item string) {
	r := q.rec
	if r.shape != nil {
		r.shape.setItem(q, item)
		return
	}
	q.pos = r.geo.Positions(q.pos[:0], item)
	q.set(r.layout.bodyOffset(), q.pos)
}

// encode writes the command of a write again, after aim changed its purpose.
func (q *request) encode() {
	q.beginWrite(q.birth, q.compareBirth)
	for _, item := range q.items {
		q.setItem(item)
	}
}

// set appends operations that set bits, and get operations that read words.
func (q *request) set(base uint64, bits []uint64) {
	if !q.script {
		q.cmd.SetBits(base, bits)
		return
	}
	for _, p := range bits {
		q.addOp(strconv.FormatUint(base+p, 10))
	}
}

func (q *request) get(base uint64, offsets []uint64) {
	if !q.script {
		q.cmd.GetWords(u53, base, offsets)
		return
	}
	for _, o := range offsets {
		q.addOp(getMark + strconv.FormatUint(base+o, 10))
	}
}

// addOp appends an operation of a script.
func (q *request) addOp(op string) {
	q.ops = append(q.ops, op)
	q.opBytes += len(op) + len(`,""`)
}

// beginRead starts a command that verifies the filter and then reads cells.
func (q *request) beginRead() {
	q.ends, q.words, q.found = q.ends[:0], q.words[:0], q.found[:0]
	q.script, q.ops, q.opBytes = false, q.ops[:0], 0
	q.cmd.Reset(q.rec.key)
	if q.rec.headed() {
		q.cmd.Get(u53, 0)
		if q.rec.shape != nil {
			q.cmd.Get(u53, kindWordOffset)
		}
		if q.observer != nil {
			q.cmd.Get(u53, birthOffset)
		}
	}
}

// getItem appends the operations to look an item up.
func (q *request) getItem(item string) {
	if q.rec.shape != nil {
		q.rec.shape.getItem(q, item)
		return
	}
	geo, base := q.rec.geo, q.rec.layout.bodyOffset()
	if geo.Scheme != SchemeBlocked {
		q.pos = geo.Positions(q.pos[:0], item)
		q.cmd.GetBits(base, q.pos)
		q.ends = append(q.ends, (len(q.ends)+1)*geo.Hashes)
		return
	}
	first := len(q.words)
	q.words = geo.appendWords(q.words, item)
	q.pos = q.pos[:0]
	for _, w := range q.words[first:] {
		q.pos = append(q.pos, wordBits*w.Index)
	}
	q.get(base, q.pos)
	q.ends = append(q.ends, len(q.words))
}

// size is the length of the command so far, in bytes, without the text of a
// script.
func (q *request) size() int { return q.cmd.Size() + q.opBytes }

// scriptBytes is what a script adds to a write, beside its operations.
func (r *record) scriptBytes() int {
	if own := r.ownScript(); own != nil {
		return own.script(&request{rec: r, birth: newBirth()}).Size()
	}
	if !r.must {
		return 0
	}
	return r.script(mustExistScript, nil, r.kindArgs()...).Size()
}

// itemBytes is the most one item takes in a write, or in a read.
func (r *record) itemBytes(write bool) int {
	if r.shape != nil {
		return r.shape.itemBytes(r, write)
	}
	return r.plainItemBytes(write)
}

// plainItemBytes is itemBytes of a record with one area.
func (r *record) plainItemBytes(write bool) int {
	last := headerBits + r.geo.Bits
	switch {
	case write:
		return r.geo.Hashes * upstash.SizeOfSet("u1", last, 1)
	case r.geo.Scheme == SchemeBlocked:
		return r.geo.Hashes / 2 * upstash.SizeOfGet(u53, last)
	}
	return r.geo.Hashes * upstash.SizeOfGet("u1", last)
}
