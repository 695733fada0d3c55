package engine

import (
	"strconv"

	"github.com/upbloom/upbloom/upstash"
)

// How a record's operations are written into a command. judge.go reads its
// answers.

// beginWrite starts a command that creates the filter if there is none, verifies
// it, and then sets bits. With compareBirth it also returns the birth number.
func (q *Request) BeginWrite(birth int64, compareBirth bool) {
	r, b := q.Rec, &q.Cmd
	q.Birth, q.compareBirth = birth, compareBirth
	q.asksBirth, q.asksSettled, q.script = false, false, r.Must || r.OwnScript() != nil
	q.Ops, q.opBytes, q.Ends, q.Words = q.Ops[:0], 0, q.Ends[:0], q.Words[:0]
	b.Reset(r.Key)
	if !r.Headed() {
		return
	}
	q.asksBirth, q.asksSettled = compareBirth || q.Observer != nil, r.Ttl != 0
	if q.script {
		q.asksBirth, q.asksSettled = true, true // a script answers all
		return
	}
	b.Overflow(upstash.Fail).IncrBy(U53, 0, r.Header).Get(U53, 0).
		IncrBy(U53, BirthOffset, birth)
	if r.Shape != nil {
		b.IncrBy(U53, KindWordOffset, r.Shape.Word(q)).Get(U53, KindWordOffset)
	}
	if q.asksSettled {
		b.Get("u1", SettledOffset)
	}
	if q.asksBirth {
		b.Get(U53, BirthOffset)
	}
	b.Overflow(upstash.Wrap)
}

// setItem appends the operations to add an item, getItem those to look it up.
func (q *Request) SetItem(item string) { q.Rec.Items.SetItem(q, item) }
func (q *Request) GetItem(item string) { q.Rec.Items.GetItem(q, item) }

// encode writes the command of a write again, after aim changed its purpose.
func (q *Request) encode() {
	q.BeginWrite(q.Birth, q.compareBirth)
	for _, item := range q.Items {
		q.SetItem(item)
	}
}

// set appends operations that set bits, and get operations that read words.
func (q *Request) Set(base uint64, bits []uint64) {
	if !q.script {
		q.Cmd.SetBits(base, bits)
		return
	}
	for _, p := range bits {
		q.AddOp(strconv.FormatUint(base+p, 10))
	}
}

func (q *Request) Get(base uint64, offsets []uint64) {
	if !q.script {
		q.Cmd.GetWords(U53, base, offsets)
		return
	}
	for _, o := range offsets {
		q.AddOp(getMark + strconv.FormatUint(base+o, 10))
	}
}

// getBits appends operations that read the bits of one item.
func (q *Request) GetBits(base uint64, bits []uint64) {
	q.Cmd.GetBits(base, bits)
	q.Ends = append(q.Ends, len(bits)*(len(q.Ends)+1))
}

// addOp appends an operation of a script.
func (q *Request) AddOp(op string) {
	q.Ops = append(q.Ops, op)
	q.opBytes += len(op) + len(`,""`)
}

// beginRead starts a command that verifies the filter and then reads cells.
func (q *Request) BeginRead() {
	q.Ends, q.Words, q.Found = q.Ends[:0], q.Words[:0], q.Found[:0]
	q.script, q.Ops, q.opBytes = false, q.Ops[:0], 0
	q.Cmd.Reset(q.Rec.Key)
	if q.Rec.Headed() {
		q.Cmd.Get(U53, 0)
		if q.Rec.Shape != nil {
			q.Cmd.Get(U53, KindWordOffset)
		}
		if q.Observer != nil {
			q.Cmd.Get(U53, BirthOffset)
		}
	}
}

// size is the length of the command so far, in bytes, without the text of a
// script.
func (q *Request) Size() int { return q.Cmd.Size() + q.opBytes }

// scriptBytes is what a script adds to a write, beside its operations.
func (r *Core) ScriptBytes() int {
	if own := r.OwnScript(); own != nil {
		return own.Script(&Request{Rec: r, Birth: NewBirth()}).Size()
	}
	if !r.Must {
		return 0
	}
	return r.Script(mustExistScript, nil, r.KindArgs()...).Size()
}
