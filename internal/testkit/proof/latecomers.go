package proof

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

// The first attempt at a command that makes a filter comes late: its retry made the
// filter, and that has gone. Who compares the answers to several requests, or keeps
// a copy, must not take the filter of the late attempt for the one before.

// comesLate has one request that begins with a command run late, after so many
// others have passed. Its client sends it again at once.
func comesLate(command string, after int) Call {
	return Call{Verb: Hold, From: 2, Command: command, More: after}
}

// pauses makes a call of several requests wait between two of them. Of a write the
// answer to one is late: after one that is sent again, the model allows for more. Of
// a call that only reads one is not run until its client sends it again. The other
// requests may be under way meanwhile.
func pauses(c Call, command string, after int) []Call {
	held := Call{Verb: Hold, Command: command, More: after}
	if c.Verb.is(reads) {
		held.From = 3
	}
	return []Call{held, c.aside()}
}

// drawLate draws a filter made by two attempts, the first of which is late, and calls
// across the change, the last of which pauses. clear removes the filter.
func drawLate(rng *rand.Rand, late, makes Call, clear, across []Call) []Call {
	calls := append(append(slices.Clone(clear), late, makes), across...)
	calls = append(append(calls, rest(upTo(rng, 50*time.Millisecond))), clear...)
	return append(calls, rest(500*time.Millisecond))
}

// drawLatecomers has first attempts come late in a history. A filter that is read in
// parts is Long.
func (f *Filters) drawLatecomers(rng *rand.Rand) {
	f.Latecomers, f.Parallel = pick(rng, []Verb{Snapshot, TakeBackup, AddAll, AddSeq, MirrorThrough}), 1
	if f.Latecomers == Snapshot || f.Latecomers == TakeBackup {
		f.Long, f.Bits, f.Hashes, f.Scheme = true, longBits, longHashes, bloom.SchemeBlocked
		f.Themes &^= Writers
	}
}

// drawLatecomer draws calls by which a Filter's client compares two answers.
func (f *Filters) drawLatecomer(rng *rand.Rand) []Call {
	four := items(rng, 4)
	w, x := Call{Verb: Add, Items: four[:1]}, four[1:]
	clear := []Call{{Verb: Clear}}
	late := comesLate("BITFIELD", 0)
	switch f.Latecomers {
	case Snapshot, TakeBackup:
		read := pauses(Call{Verb: Snapshot, Parts: f.Latecomers == TakeBackup}, "EVAL", rng.IntN(4))
		return drawLate(rng, late, w, clear, append([]Call{{Verb: AddAll, Items: x}}, read...))
	case AddAll, AddSeq:
		add := Call{Verb: f.Latecomers, Items: x, Parts: true}
		calls := drawLate(rng, late, w, clear, pauses(add, "BITFIELD", rng.IntN(2)))
		return append(calls, Call{Verb: ExistsAll, Items: four})
	}
	return []Call{
		{Verb: Clear},
		late, w,
		{Verb: MirrorThrough, Items: x[:1]},
		{Verb: Clear},
		rest(200 * time.Millisecond),
		{Verb: MirrorThrough, Items: x[1:2]},
		{Verb: pick(rng, []Verb{MirrorExists, MirrorAdd}), Items: x[:1]},
	}
}

// drawLatecomer draws an AddAll that needs two requests.
func (s *Scalables) drawLatecomer(rng *rand.Rand) []Call {
	three := items(rng, 3)
	add := Call{Verb: AddAll, Items: three[1:], More: bigMore, From: s.from(rng)}
	makes := Call{Verb: Add, Items: three[:1]}
	calls := drawLate(rng, comesLate("EVAL", 0), makes, []Call{{Verb: Clear}}, pauses(add, "EVAL", 0))
	return append(calls, Call{Verb: ExistsAll, Items: three})
}

// drawLatecomer draws an AddAll of one item in each request. What comes late is a
// part of a Create.
func (s *Shardeds) drawLatecomer(rng *rand.Rand) []Call {
	all := items(rng, itemCount)
	var clear []Call
	for i := range s.Shards {
		clear = append(clear, Call{Verb: Clear, Shard: i})
	}
	add := Call{Verb: AddAll, Items: all, Parts: true}
	late := comesLate("EVAL", 1+rng.IntN(4))
	calls := drawLate(rng, late, Call{Verb: Create}, clear, pauses(add, "EVAL", rng.IntN(itemCount-1)))
	return append(calls, Call{Verb: ExistsAll, Items: all})
}

// backedUp is Snapshot by a Backup, if that is of a filter of the handle's Config.
func backedUp(ctx context.Context, q ask) (*bloom.Local, error) {
	g := q.filter().Geometry()
	b, err := bloom.TakeBackup(ctx, q.s.clients[0], q.s.keys[q.Key], movePart)
	if err != nil {
		return nil, err
	}
	if l, err := b.Local(g.Seed); err == nil && l.Geometry() == g {
		return l, nil
	}
	return q.filter().Snapshot(ctx, movePart)
}
