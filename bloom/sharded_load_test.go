package bloom_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Before Create a Load finds the shards missing, and uploads nothing.
func TestShardedLoadBeforeCreate(t *testing.T) {
	twoServers(t, func(t *testing.T, s [2]*upstashtest.Server) {
		f := sharded(t, shards(5), s[0].Client(), s[1].Client())
		resetBoth(s)
		_, err := f.Load(t.Context(), slices.Values(numbered("item", 5000)))
		if !errors.Is(err, bloom.ErrNotFound) || !upstash.SafeToRetry(err) {
			t.Errorf("before Create: %v, want ErrNotFound, and nothing done", err)
		}
		if n := s[0].Stats().Requests + s[1].Stats().Requests; n != 2 {
			t.Errorf("%d requests before Create, want 2", n)
		}
	})
}

// A Load adds to a filter with items, and reports its cost and its progress.
func TestShardedLoad(t *testing.T) {
	twoServers(t, func(t *testing.T, s [2]*upstashtest.Server) {
		f := sharded(t, shards(5), s[0].Client(), s[1].Client())
		items := numbered("item", 5000)
		create(t, f, true)
		if _, err := f.AddAll(t.Context(), numbered("old", 100)); err != nil {
			t.Fatal(err)
		}
		var reports []int64
		resetBoth(s)
		result, err := f.Load(t.Context(), slices.Values(items),
			bloom.MoveProgress(func(done, total int64) { reports = append(reports, done, total) }))
		if err != nil || result.Items != 5000 || result.NewBits == 0 || result.OverCapacity || result.Created {
			t.Fatalf("Load = %+v, %v, want 5,000 items in an old filter", result, err)
		}
		sent := s[0].Stats().Requests + s[1].Stats().Requests
		billed := s[0].Stats().Billed + s[1].Stats().Billed
		if result.Requests != sent || result.Commands != billed {
			t.Errorf("%d requests and %d commands, but %d and %d were sent",
				result.Requests, result.Commands, sent, billed)
		}
		if n := len(reports); n != 2*6 || reports[0] != 0 || reports[n-2] != reports[n-1] || reports[1] != reports[n-1] {
			t.Errorf("progress %v, want 12 numbers from 0 to the total", reports)
		}
		found, err := f.ExistsAll(t.Context(), append(items, numbered("old", 100)...))
		if err != nil || count(found) != 5100 {
			t.Errorf("%d of 5100 found, %v", count(found), err)
		}
	})
}

// LoadShard, one shard at a time, makes the same filter as Load.
func TestShardedLoadShard(t *testing.T) {
	twoServers(t, func(t *testing.T, s [2]*upstashtest.Server) {
		f := sharded(t, shards(5), s[0].Client(), s[1].Client())
		items := slices.Values(numbered("item", 5000))
		create(t, f, true)
		if _, err := f.Load(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		before := do(t, s[1], "GET", shardKey(3)).(string)
		f.Delete(t.Context())
		create(t, f, true)
		n := uint64(0)
		for i := range 5 {
			result, err := f.LoadShard(t.Context(), i, items)
			if err != nil {
				t.Fatal(err)
			}
			n += result.Items
		}
		if after := do(t, s[1], "GET", shardKey(3)).(string); after[24:] != before[24:] || n != 5000 {
			t.Errorf("LoadShard loaded %d items, or other cells", n)
		}
		var config *bloom.ConfigError
		if _, err := f.LoadShard(t.Context(), 5, maps.Keys(map[string]int{})); !errors.As(err, &config) {
			t.Errorf("LoadShard(5): %v, want a ConfigError", err)
		}
	})
}

func resetBoth(s [2]*upstashtest.Server) {
	for i := range s {
		s[i].ResetStats()
	}
}

// The script for the upload also checks the kind's word, because shards of
// another count have the same header.
func TestShardedLoadMeetsAnother(t *testing.T) {
	twoServers(t, func(t *testing.T, s [2]*upstashtest.Server) {
		clients := []*upstash.Client{s[0].Client(), s[1].Client()}
		f := sharded(t, bloom.ShardedConfig{Capacity: 4000, FPRate: 0.01, Shards: 4}, clients...)
		more := bloom.ShardedConfig{Capacity: 8000, FPRate: 0.01, Shards: 8}
		create(t, f, true)
		// The other filter appears after the look and before the upload.
		items := func(yield func(string) bool) {
			if _, err := f.Delete(t.Context()); err != nil {
				t.Fatal(err)
			}
			create(t, sharded(t, more, clients...), true)
			for _, item := range numbered("item", 100) {
				if !yield(item) {
					return
				}
			}
		}
		_, err := f.Load(t.Context(), items)
		var mismatch *bloom.MismatchError
		if !errors.As(err, &mismatch) || mismatch.Field != "Shards" {
			t.Errorf("Load: %v, want a MismatchError of Shards", err)
		}
		stats, err := sharded(t, more, clients...).Stats(t.Context())
		if err != nil || stats.Items != 0 {
			t.Errorf("the other filter has %d items, want 0: %v", stats.Items, err)
		}
	})
}
