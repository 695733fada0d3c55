package bloom

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

var (
	// lookScript reads the words of a string that is the shard's.
	lookScript = upstash.NewScript(engine.LuaCheckHeader + `return w`)
	// emptyScript returns the first set bit of the cells, -1 for none.
	emptyScript = upstash.NewScript(engine.LuaCheckHeader + `w[5] = redis.call('BITPOS', KEYS[1], '1', '24')
return w`)
)

// Create makes all shards with their whole strings, and reports whether it made
// the filter. Add items only after a Create has returned. If one was
// interrupted, the next completes it.
//
// If some shards are missing and others hold items, the error is [ErrNotFound]
// and says which: they were lost with their items. It is an error too if a
// shard is in the database of another client: their order has changed. If the
// only shard with items was lost, nothing shows that, and Create makes it
// again.
func (s *Sharded) Create(ctx context.Context) (created bool, err error) {
	ctx = s.shards[0].rec.Label(ctx, "bloom.Sharded.Create")
	for i := range s.shards {
		if s.shards[i].rec.Client.ReadOnly() {
			return false, upstash.ErrReadOnly
		}
	}
	missing, _, err := s.look(ctx, s.all())
	if err != nil || len(missing) == 0 {
		return false, err
	}
	if missing, err = s.unfinished(ctx, missing); err != nil || len(missing) == 0 {
		return false, err
	}
	if err := s.elsewhere(ctx, missing); err != nil {
		return false, s.withMissing(err, missing)
	}
	// Whoever makes the last one has made the filter.
	last, rest := missing[:1], missing[1:]
	if len(rest) > 0 {
		if _, failed, err := s.makeShards(ctx, rest); err != nil {
			return false, s.withMissing(err, append(failed, last...))
		}
	}
	made, failed, err := s.makeShards(ctx, last)
	return made > 0, s.withMissing(firstOf([]error{err}, len(rest) > 0), failed)
}

// unfinished tells an unfinished Create from the loss of shards. It returns
// which of them are to be made, in order.
func (s *Sharded) unfinished(ctx context.Context, missing []int) ([]int, error) {
	there := slices.DeleteFunc(s.all(), func(i int) bool { return slices.Contains(missing, i) })
	lost, filled, err := s.survey(ctx, there)
	missing = append(missing, lost...)
	slices.Sort(missing)
	if err != nil || !filled {
		return missing, s.withMissing(err, missing)
	}
	// Once more: another Create may have completed them, and then items were
	// added.
	if missing, _, err = s.look(ctx, missing); err != nil || len(missing) == 0 {
		return nil, err
	}
	return nil, &missingError{shards: missing, of: len(s.shards), filled: true, err: fault.Untouched(ErrNotFound)}
}

// survey reports whether one of the shards holds an item, and returns which of
// them have gone meanwhile, also beside an error.
func (s *Sharded) survey(ctx context.Context, shards []int) (lost []int, filled bool, err error) {
	answers, _ := s.runOn(ctx, shards, func(i int) upstash.Command {
		return s.shards[i].rec.Script(emptyScript, nil).Repeatable(true)
	})
	for n, i := range shards {
		first, failed := answers[n].Numbers(1)
		switch {
		case fault.Is(failed, ErrNotFound):
			lost = append(lost, i)
		case failed == nil:
			filled = filled || first[0] >= 0
		case err == nil:
			err = s.named(i, failed)
		}
	}
	return lost, filled, err
}

func (s *Sharded) all() []int {
	all := make([]int, len(s.shards))
	for i := range all {
		all[i] = i
	}
	return all
}

// look returns which of some shards are missing, and in how many requests it
// asked. It asks the primaries, also in a full database.
func (s *Sharded) look(ctx context.Context, shards []int) (missing []int, requests int64, err error) {
	answers, requests := s.runOn(ctx, shards, func(i int) upstash.Command {
		return s.shards[i].rec.Script(lookScript, nil).Repeatable(true)
	})
	for n, i := range shards {
		_, failed := answers[n].Numbers(0)
		if fault.Is(failed, ErrNotFound) {
			missing = append(missing, i)
		} else if failed != nil && err == nil {
			err = s.named(i, failed)
		}
	}
	return missing, requests, s.withMissing(err, missing)
}

// elsewhere returns an error if one of the shards is in the database of another
// client.
func (s *Sharded) elsewhere(ctx context.Context, shards []int) error {
	errs := make([]error, len(s.databases))
	s.eachDatabase(func(n int, d *database) {
		var cmds []upstash.Command
		var asked []int
		for _, i := range shards {
			if r := &s.shards[i].rec; r.Client != d.client {
				cmds = append(cmds, r.Identity().Command())
				asked = append(asked, i)
			}
		}
		replies, err := engine.Pipeline(ctx, d.client, cmds)
		if err != nil {
			errs[n] = fault.Untouched(err)
			return
		}
		for m, i := range asked {
			errs[n] = s.isElsewhere(i, replies[m])
			if errs[n] != nil {
				return
			}
		}
	})
	return firstOf(errs, false)
}

// isElsewhere judges what another database said of a shard's key.
func (s *Sharded) isElsewhere(shard int, reply upstash.Reply) error {
	id, err := engine.ParseIdentity(reply)
	if err != nil {
		if fault.Is(engine.Explain(err), ErrNotFilter) { // a list, say
			return nil
		}
		return fault.Untouched(s.named(shard, err))
	}
	if h, err := format.ParseHeader(uint64(id[0])); err != nil || Kind(h.Kind) != KindShard {
		return nil
	}
	return fault.Untouched(fault.Errorf("bloom: %w: shard %d of %d is missing, and is in the database of another"+
		" client: pass the clients in the order in which the filter was created, or Delete it"+
		" with those first", upstash.ErrArgument, shard, len(s.shards)))
}

// makeShards makes the missing ones of the shards, and returns how many it made,
// and which may still be missing.
func (s *Sharded) makeShards(ctx context.Context, shards []int) (made int, failed []int, err error) {
	births := map[int]int64{}
	for _, i := range shards {
		births[i] = s.shards[i].rec.NewBirth()
	}
	answers, _ := s.runOn(ctx, shards, func(i int) upstash.Command {
		f := &s.shards[i]
		return f.rec.CreateCommand(format.HeaderBits+f.rec.geo.Bits, f.rec.Shape.KindWord(nil), births[i])
	})
	errs := make([]error, len(shards))
	for n, i := range shards {
		created, err := s.shards[i].rec.JudgeCreate(answers[n], births[i])
		errs[n] = s.named(i, err)
		if created {
			made++
		} else if err != nil && !engine.IsForeign(err) {
			failed = append(failed, i)
		}
	}
	return made, failed, firstOf(errs, made > 0)
}

// Delete removes all shards and reports whether there were any. If it is
// interrupted, the rest is not taken for a filter, and the next Delete removes
// it. An attempt of an earlier Create that comes late makes some empty shards
// again.
func (s *Sharded) Delete(ctx context.Context) (deleted bool, err error) {
	ctx = s.shards[0].rec.Label(ctx, "bloom.Sharded.Delete")
	deleted, err = s.deleteSome(ctx, []int{0})
	if err != nil || len(s.shards) == 1 {
		return deleted, err
	}
	rest, err := s.deleteSome(ctx, s.all()[1:])
	return deleted || rest, firstOf([]error{err}, deleted)
}

func (s *Sharded) deleteSome(ctx context.Context, shards []int) (deleted bool, err error) {
	answers, _ := s.runOn(ctx, shards, func(i int) upstash.Command { return s.shards[i].rec.DeleteCommand() })
	errs := make([]error, len(shards))
	for n, i := range shards {
		_, err := answers[n].Numbers(1)
		if fault.Is(err, ErrNotFound) {
			continue
		}
		errs[n] = s.named(i, err)
		if err == nil {
			s.shards[i].rec.Forget()
			deleted = true
		}
	}
	return deleted, firstOf(errs, deleted)
}

// runOn is RunScript for several shards: one request for each database, or as many
// as upstash.WithMaxRequest asks for, all databases at once. It returns how many
// these were.
func (s *Sharded) runOn(ctx context.Context, shards []int, cmd func(shard int) upstash.Command,
) (out []engine.ScriptAnswer, requests int64) {
	out = make([]engine.ScriptAnswer, len(shards))
	var all atomic.Int64
	s.eachDatabase(func(_ int, d *database) {
		var cmds []upstash.Command
		var asked []int
		for n, i := range shards {
			if s.shards[i].rec.Client == d.client {
				cmds = append(cmds, cmd(i).AllOrNothing())
				asked = append(asked, n)
			}
		}
		all.Add(engine.InParts(ctx, d.client, cmds, func(m int, reply upstash.Reply, err error) {
			n := asked[m]
			out[n] = s.shards[shards[n]].rec.JudgeScript(reply, err)
		}))
	})
	return out, all.Load()
}
