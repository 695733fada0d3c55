package bloom

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// Load adds all items at once: see [Filter.Load]. It builds all shards in
// memory. If a shard is missing, it uploads nothing. If an upload fails, the
// others are still made, unless ctx has ended.
func (s *Sharded) Load(ctx context.Context, items iter.Seq[string], opts ...MoveOption) (LoadResult, error) {
	ctx = s.shards[0].rec.Label(ctx, "bloom.Sharded.Load")
	return s.load(ctx, s.all(), items, opts)
}

// LoadShard is [Sharded.Load] for one shard, numbered from 0, and skips the
// items of others. To load a filter larger than the memory, call it for each
// shard with the same items.
func (s *Sharded) LoadShard(ctx context.Context, shard int, items iter.Seq[string], opts ...MoveOption,
) (LoadResult, error) {
	if shard < 0 || shard >= len(s.shards) {
		return LoadResult{}, fault.Untouched(
			configErrorf("ShardedConfig.Shards", "is %d, and there is no shard %d", len(s.shards), shard))
	}
	ctx = s.shards[shard].rec.Label(ctx, "bloom.Sharded.LoadShard")
	return s.load(ctx, []int{shard}, items, opts)
}

func (s *Sharded) load(ctx context.Context, shards []int, items iter.Seq[string], opts []MoveOption,
) (LoadResult, error) {
	start := time.Now()
	requests, err := s.mayLoad(ctx, shards)
	if err != nil {
		return LoadResult{}, fault.Untouched(err)
	}
	gatherers := make([]*gatherer, len(s.shards))
	for _, i := range shards {
		gatherers[i] = newGatherer(newLocal(s.Geometry()))
	}
	read, n := uint64(0), uint64(0)
	for item := range items {
		if g := gatherers[s.ShardOf(item)]; g != nil {
			g.add(item)
			n++
		}
		read++
		if read%4096 == 0 && ctx.Err() != nil {
			return notLoaded(ctx, n, start)
		}
	}
	locals := make([]*Local, len(s.shards))
	for _, i := range shards {
		if gatherers[i].flush().Items > 0 {
			locals[i] = gatherers[i].l
		}
		gatherers[i] = nil // merge frees each Local when it is uploaded
	}
	result, err := s.merge(ctx, locals, opts)
	result.Requests += requests
	result.Commands += lookBilled * int64(len(shards))
	result.Items, result.Duration = n, time.Since(start)
	return result, err
}

// lookBilled is how many commands a look at a shard is billed as.
const lookBilled = 2

// mayLoad checks what can be checked before the items are read, in so many
// requests.
func (s *Sharded) mayLoad(ctx context.Context, shards []int) (requests int64, err error) {
	for _, i := range shards {
		if err := s.shards[i].rec.MayWrite(); err != nil {
			return 0, s.named(i, err)
		}
	}
	missing, requests, err := s.look(ctx, shards)
	if err == nil && len(missing) > 0 {
		err = &missingError{shards: missing, of: len(s.shards), err: ErrNotFound}
	}
	return requests, err
}

// merge uploads each shard's Local, if it has one.
func (s *Sharded) merge(ctx context.Context, locals []*Local, opts []MoveOption) (LoadResult, error) {
	var mu sync.Mutex
	var all LoadResult
	merged := false
	errs := make([]error, len(s.shards))
	progress := s.newProgress(locals, opts)
	s.eachDatabase(func(_ int, d *database) {
		for _, i := range d.shards {
			if locals[i] == nil {
				continue
			}
			one, err := s.shards[i].Merge(ctx, locals[i], append(slices.Clip(opts), progress.ofShard())...)
			locals[i] = nil // its memory is free
			mu.Lock()
			all.NewBits += one.NewBits
			all.OverCapacity = all.OverCapacity || one.OverCapacity
			all.Bytes += one.Bytes
			all.Requests += one.Requests
			all.Commands += one.Commands
			merged = merged || err == nil
			errs[i] = s.named(i, err)
			mu.Unlock()
		}
	})
	err := s.firstOfShards(errs, merged)
	all.NewBitsUnknown = err != nil && !upstash.SafeToRetry(err)
	return all, err
}

// loadProgress adds up what the shards report.
type loadProgress struct {
	mu     sync.Mutex
	report func(done, total int64)

	done, total int64
}

func (s *Sharded) newProgress(locals []*Local, opts []MoveOption) *loadProgress {
	p := &loadProgress{report: s.shards[0].moves(opts).Progress}
	for _, l := range locals {
		if l != nil {
			p.total += int64(s.Geometry().Bytes(LayoutHeaded))
		}
	}
	if p.report != nil {
		p.report(0, p.total)
	}
	return p
}

// ofShard takes the reports of one shard.
func (p *loadProgress) ofShard() MoveOption {
	if p.report == nil {
		return nil
	}
	before := int64(0)
	return WithProgress(func(done, _ int64) {
		if done == 0 { // reported at the start
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.done, before = p.done+done-before, done
		p.report(p.done, p.total)
	})
}
