package bloom

import (
	"strconv"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

// setInArea appends the operations to add an item to one area, and to look it
// up in the others.
func setInArea(q *engine.Request, g Geometry, areas []format.Area, target int, item string) {
	x, y := cells.Digest(item, g.Seed)
	z := g.Hashes / 2
	q.Pos = cells.AppendBlocked(q.Pos[:0], x, y, areas[target].Words, z)
	q.SetBits(areas[target].Offset, q.Pos)
	for i, p := range areas {
		if i != target {
			getWords(q, p, x, y, z)
		}
	}
}

// getInAreas appends the operations to look an item up in every area.
func getInAreas(q *engine.Request, g Geometry, areas []format.Area, item string) {
	x, y := cells.Digest(item, g.Seed)
	for _, p := range areas {
		getWords(q, p, x, y, g.Hashes/2)
	}
}

func getWords(q *engine.Request, a format.Area, x, y uint64, z int) {
	first := len(q.Words)
	q.Words = cells.AppendWords(q.Words, x, y, a.Words, z)
	q.Pos = q.Pos[:0]
	for _, w := range q.Words[first:] {
		q.Pos = append(q.Pos, wordBits*w.Index)
	}
	q.GetWords(a.Offset, q.Pos)
	q.WordEnds = append(q.WordEnds, len(q.Words))
}

// inNone is the target of a look-up.
const inNone = -1

// appendHeld appends for each item which areas held it before the command: bit i
// stands for area i. The command writes to the area target.
func appendHeld(held []uint8, q *engine.Request, k, areas, target int, answers []upstash.NullInt64) ([]uint8, error) {
	group, word := 0, 0
	for range q.Items {
		var in uint8
		if target != inNone {
			ones, err := engine.CountOnes(answers[:k])
			if err != nil {
				return held, err
			}
			if ones == k {
				in = 1 << target
			}
			answers = answers[k:]
		}
		for i := range areas {
			if i == target {
				continue
			}
			all := true
			for ; word < q.WordEnds[group]; word++ {
				n, err := engine.FieldWord(answers[0])
				if err != nil {
					return held, err
				}
				all = all && n&q.Words[word].Mask == q.Words[word].Mask
				answers = answers[1:]
			}
			group++
			if all {
				in |= 1 << i
			}
		}
		held = append(held, in)
	}
	return held, nil
}

// countArea counts the set cells of an area.
func countArea(a format.Area, key string) upstash.Command {
	return upstash.Cmd("BITCOUNT", key, strconv.FormatUint(a.Offset, 10),
		strconv.FormatUint(a.Offset+a.Words*wordBits-1, 10), "BIT")
}
