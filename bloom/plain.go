package bloom

import (
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/upstash"
)

// plain is how the items of a filter by itself, or of a shard, are written and
// read.
type plain struct {
	geo  Geometry
	base uint64 // the bit at which cell 0 starts
}

func (p *plain) AppendWrite(q *engine.Request, item string) {
	q.Pos = p.geo.Positions(q.Pos[:0], item)
	q.SetBits(p.base, q.Pos)
}

func (p *plain) AppendRead(q *engine.Request, item string) {
	if p.geo.Scheme != SchemeBlocked {
		q.Pos = p.geo.Positions(q.Pos[:0], item)
		q.GetBits(p.base, q.Pos)
		return
	}
	first := len(q.Words)
	q.Words = p.geo.appendWords(q.Words, item)
	q.Pos = q.Pos[:0]
	for _, w := range q.Words[first:] {
		q.Pos = append(q.Pos, wordBits*w.Index)
	}
	q.GetWords(p.base, q.Pos)
	q.WordEnds = append(q.WordEnds, len(q.Words))
}

func (p *plain) ItemBytes(write bool) int {
	last := headerBits + p.geo.Bits
	switch {
	case write:
		return p.geo.Hashes * upstash.SizeOfSet("u1", last, 1)
	case p.geo.Scheme == SchemeBlocked:
		return p.geo.Hashes / 2 * upstash.SizeOfGet(engine.U53, last)
	}
	return p.geo.Hashes * upstash.SizeOfGet("u1", last)
}

func (*plain) JudgeWrite(q *engine.Request, answers []upstash.NullInt64) error {
	return q.JudgeSetBits(answers)
}

func (p *plain) JudgeRead(q *engine.Request, answers []upstash.NullInt64) error {
	if p.geo.Scheme == SchemeBlocked {
		return q.JudgeReadWords(answers)
	}
	return q.JudgeReadBits(answers)
}
