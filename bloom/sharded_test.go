package bloom_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// shards returns a filter of n shards, so large that a false positive would be
// a surprise.
func shards(n int) bloom.ShardedConfig {
	return bloom.ShardedConfig{Capacity: 20_000, FPRate: 1e-6, Shards: n}
}

func sharded(t *testing.T, cfg bloom.ShardedConfig, clients ...*upstash.Client) *bloom.Sharded {
	t.Helper()
	f, err := bloom.NewSharded(clients, key, cfg)
	noError(t, err)
	return f
}

func shardKey(i int) string { return fmt.Sprintf("%s:%d", key, i) }

// ofShard returns n items of one shard.
func ofShard(f *bloom.Sharded, shard, n int) []string {
	var items []string
	for i := 0; len(items) < n; i++ {
		if item := fmt.Sprintf("item-%d", i); f.ShardOf(item) == shard {
			items = append(items, item)
		}
	}
	return items
}

// twoServers runs test with the backend's database and one in memory.
func twoServers(t *testing.T, test func(t *testing.T, s [2]*upstashtest.Server)) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		test(t, [2]*upstashtest.Server{s, upstashtest.NewServer(t)})
	})
}

func resetBoth(s [2]*upstashtest.Server) {
	s[0].ResetStats()
	s[1].ResetStats()
}

func flushBoth(s [2]*upstashtest.Server) {
	s[0].FlushAll()
	s[1].FlushAll()
}

func TestSharded(t *testing.T) {
	twoServers(t, func(t *testing.T, s [2]*upstashtest.Server) {
		f := sharded(t, shards(5), s[0].Client(), s[1].Client())
		wantError(t, errorOf(f.Add(t.Context(), "a")), bloom.ErrNotFound)
		wantError(t, errorOf(f.Exists(t.Context(), "a")), bloom.ErrNotFound)
		create(t, f, true)
		create(t, f, false)
		for i := range 5 {
			length := do(t, s[i%2], "STRLEN", shardKey(i))
			if want := f.Geometry().Bytes(bloom.LayoutHeaded); length != int64(want) {
				t.Errorf("shard %d has %v bytes, want %d", i, length, want)
			}
			if n := do(t, s[1-i%2], "EXISTS", shardKey(i)); n != int64(0) {
				t.Errorf("shard %d is in the other database too", i)
			}
		}
		for i := range 50 {
			item := fmt.Sprint("item-", i)
			exists(t, f, item, false)
			add(t, f, item, true)
			add(t, f, item, false)
			exists(t, f, item, true)
		}
		items := numbered("item", 1000)
		added, err := f.AddAll(t.Context(), append(items, items[:100]...))
		if err != nil || count(added[:50]) != 0 || count(added) != 950 {
			t.Errorf("AddAll: %d new, want 950 behind the first 50: %v", count(added), err)
		}
		other := sharded(t, shards(5), s[0].Client(), s[1].Client())
		found, err := other.ExistsAll(t.Context(), append(items, numbered("absent", 1000)...))
		if err != nil || count(found[:1000]) != 1000 || count(found) != 1000 {
			t.Errorf("ExistsAll: %d found, want the first 1000: %v", count(found), err)
		}
		for _, want := range []bool{true, false} {
			if deleted, err := f.Delete(t.Context()); deleted != want || err != nil {
				t.Errorf("Delete = %v, %v, want %v", deleted, err, want)
			}
		}
		for i := range s {
			if n := do(t, s[i], "DBSIZE"); n != int64(0) {
				t.Errorf("%v keys are left in database %d", n, i)
			}
		}
	})
}

func TestShardedCost(t *testing.T) {
	twoServers(t, func(t *testing.T, s [2]*upstashtest.Server) {
		f := sharded(t, shards(4), s[0].Client(), s[1].Client())
		items := []string{ofShard(f, 0, 1)[0], ofShard(f, 2, 1)[0], ofShard(f, 3, 1)[0]}
		type two = [2]int64 // one for each database
		ctx := t.Context()
		for _, step := range []struct {
			name             string
			do               func() error
			requests, billed two
		}{
			{"Create", func() error { return errorOf(f.Create(ctx)) }, two{4, 3}, two{14, 14}},
			{"Create again", func() error { return errorOf(f.Create(ctx)) }, two{1, 1}, two{4, 4}},
			{"Add", func() error { return errorOf(f.Add(ctx, items[0])) }, two{1, 0}, two{3, 0}},
			{"Exists", func() error { return errorOf(f.Exists(ctx, items[2])) }, two{0, 1}, two{0, 1}},
			{"AddAll", func() error { return errorOf(f.AddAll(ctx, items)) }, two{1, 1}, two{6, 3}},
			{"ExistsAll", func() error { return errorOf(f.ExistsAll(ctx, items)) }, two{1, 1}, two{2, 1}},
			{"Stats", func() error { return errorOf(f.Stats(ctx)) }, two{2, 2}, two{8, 8}},
			{"Cardinality", func() error { return errorOf(f.Cardinality(ctx)) }, two{2, 2}, two{4, 4}},
			{"Delete", func() error { return errorOf(f.Delete(ctx)) }, two{2, 1}, two{6, 6}},
		} {
			resetBoth(s)
			if err := step.do(); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			for i := range s {
				if n := s[i].Stats(); n.Requests != step.requests[i] || n.Billed != step.billed[i] {
					t.Errorf("%s, database %d: %d requests, %d billed, want %d, %d",
						step.name, i, n.Requests, n.Billed, step.requests[i], step.billed[i])
				}
			}
		}
	})
}

func TestShardedCreateCost(t *testing.T) {
	for databases := range 4 {
		var clients []*upstash.Client
		var servers []*upstashtest.Server
		for range databases + 1 {
			s := upstashtest.NewServer(t)
			servers, clients = append(servers, s), append(clients, s.Client())
		}
		f := sharded(t, shards(12), clients...)
		made := int64(6 + databases) // it asks each other database
		for _, step := range []struct {
			completes, makes bool
			billed           int64
		}{{false, true, 12 * made}, {false, false, 12 * 2}, {true, true, 11*5 + made}} {
			if step.completes {
				do(t, servers[0], "DEL", shardKey(0))
			}
			for _, s := range servers {
				s.ResetStats()
			}
			create(t, f, step.makes)
			billed := int64(0)
			for _, s := range servers {
				billed += s.Stats().Billed
			}
			if billed != step.billed {
				t.Errorf("%d other databases, %+v: %d commands billed", databases, step, billed)
			}
		}
	}
}

// One database is down, and one shard of the other is gone. The rest answers.
func TestShardedAnswersOfThoseThatAreUp(t *testing.T) {
	for _, limit := range []int{0, 8000} {
		s := [2]*upstashtest.Server{upstashtest.NewServer(t), upstashtest.NewServer(t)}
		cfg := shards(4)
		cfg.BatchBytes = limit
		f := sharded(t, cfg, once(s[0]), once(s[1]))
		create(t, f, true)
		items := numbered("item", 400)
		mustAdd(t, f, items...)
		do(t, s[0], "DEL", shardKey(2))
		bloomtest.StrikeAll(s[1], notSent)
		check := func(name string, got []bool, err error, wantDone bool) {
			t.Helper()
			var batch *bloom.BatchError
			if !errors.As(err, &batch) || !errors.Is(err, bloom.ErrNotFound) {
				t.Fatalf("limit %d: %s: %v, want a BatchError with ErrNotFound", limit, name, err)
			}
			for i, item := range items {
				shard := f.ShardOf(item)
				if done := batch.Items[i] == bloom.ItemDone; done != (shard == 0) || done && got[i] != wantDone {
					t.Fatalf("limit %d: %s: an item of shard %d is %v, answer %v",
						limit, name, shard, batch.Items[i], got[i])
				}
				if state := batch.Items[i]; shard == 2 && state != bloom.ItemNotDone {
					t.Fatalf("limit %d: %s: an item of the missing shard is %v", limit, name, state)
				}
			}
		}
		found, err := f.ExistsAll(t.Context(), items)
		check("ExistsAll", found, err, true)
		added, err := f.AddAll(t.Context(), items)
		check("AddAll", added, err, false)
		if !strings.Contains(err.Error(), "shard 2 of 4") {
			t.Errorf("the error names no shard: %v", err)
		}
		wantNoKey(t, s[0], shardKey(2))
	}
}

// No request of a batch is longer than BatchBytes, and only the first of equal
// items is new.
func TestShardedBatchBytes(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c, w := watch(t, s)
		cfg := shards(5)
		cfg.BatchBytes = 20_000
		f := sharded(t, cfg, c)
		create(t, f, true)
		items := append(numbered("item", 1500), numbered("item", 300)...)
		w.Bodies = nil
		added, err := f.AddAll(t.Context(), items)
		if err != nil || count(added[:1500]) != 1500 || count(added) != 1500 {
			t.Errorf("%d new, want the first 1500: %v", count(added), err)
		}
		sent := len(w.Bodies)
		found, err := f.ExistsAll(t.Context(), items)
		if err != nil || count(found) != len(items) {
			t.Errorf("%d of %d found, %v", count(found), len(items), err)
		}
		for i, body := range w.Bodies {
			if len(body) > cfg.BatchBytes {
				t.Errorf("request %d has %d bytes, want at most %d", i, len(body), cfg.BatchBytes)
			}
		}
		// The operations take 160 and 320 KB.
		if sent > 14 || len(w.Bodies)-sent > 20 {
			t.Errorf("%d and %d requests, want about 12 and 18", sent, len(w.Bodies)-sent)
		}
	})
}

func BenchmarkNewSharded(b *testing.B) {
	c, err := upstash.New("https://example.com", "token")
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{4, 256} {
		b.Run(fmt.Sprint("shards=", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bloom.NewSharded([]*upstash.Client{c}, key, shards(n)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestShardedStats(t *testing.T) {
	twoServers(t, func(t *testing.T, s [2]*upstashtest.Server) {
		cfg := bloom.ShardedConfig{Capacity: 8000, FPRate: 0.01, Shards: 4}
		f := sharded(t, cfg, s[0].Client(), s[1].Client())
		wantError(t, errorOf(f.Stats(t.Context())), bloom.ErrNotFound)
		create(t, f, true)
		mustAdd(t, f, numbered("item", 8000)...)
		stats, err := f.Stats(t.Context())
		noError(t, err)
		sum := uint64(0)
		for _, one := range stats.Shards {
			sum += one.Items
			if one.Kind != bloom.KindShard || one.Items < 1800 || one.Items > 2200 {
				t.Errorf("a shard has %v, want kind shard and about 2000 items", one)
			}
		}
		if sum != stats.Items || math.Abs(float64(sum)-8000) > 160 || stats.LiveFPRate > 0.0101 ||
			stats.LiveFPRate < 0.007 || stats.FPRate > 0.01 || stats.OverCapacity() || stats.Saturated {
			t.Errorf("%+v, want 8,000 items in 4 shards", stats)
		}
		n, err := f.Cardinality(t.Context())
		if err != nil || n != stats.Items {
			t.Errorf("Cardinality = %d, %v, want %d", n, err, stats.Items)
		}
		if text := stats.String(); !strings.Contains(text, "4 shards") || strings.Contains(text, key) {
			t.Errorf("String:\n%v", text)
		}
		do(t, s[1], "DEL", shardKey(3))
		if _, err := f.Stats(t.Context()); !errors.Is(err, bloom.ErrNotFound) || !strings.Contains(err.Error(), "shard 3 of 4") {
			t.Errorf("without shard 3: %v, want ErrNotFound of it", err)
		}
		wantError(t, errorOf(f.Cardinality(t.Context())), bloom.ErrNotFound)
	})
}

// A handle with another number of shards, or with its clients in another order,
// is refused. It must not find empty shards.
func TestShardedMeetsAnother(t *testing.T) {
	twoServers(t, func(t *testing.T, s [2]*upstashtest.Server) {
		ctx, a, b := t.Context(), s[0].Client(), s[1].Client()
		cfg := bloom.ShardedConfig{Capacity: 4000, FPRate: 0.01, Shards: 4}
		f := sharded(t, cfg, a, b)
		create(t, f, true)
		mustAdd(t, f, numbered("item", 100)...)
		bodies := func() (all string) {
			for i := range 4 {
				all += storedAt(t, s[i%2], shardKey(i))
			}
			return all
		}
		before := bodies()
		more := sharded(t, bloom.ShardedConfig{Capacity: 8000, FPRate: 0.01, Shards: 8}, a, b)
		items := ofShard(more, 1, 5)
		for name, err := range map[string]error{
			"Add": errorOf(more.Add(ctx, items[0])), "AddAll": errorOf(more.AddAll(ctx, items)),
			"Exists": errorOf(more.Exists(ctx, items[0])), "ExistsAll": errorOf(more.ExistsAll(ctx, items)),
			"Create": errorOf(more.Create(ctx)), "Delete": errorOf(more.Delete(ctx)),
		} {
			var mismatch *bloom.MismatchError
			if !errors.As(err, &mismatch) || mismatch.Field != "Shards" || mismatch.GotKind != bloom.KindShard {
				t.Errorf("8 shards: %s: %v, want a MismatchError of Shards", name, err)
			}
		}
		turned := sharded(t, cfg, b, a)
		wantError(t, errorOf(turned.Exists(ctx, "item-1")), bloom.ErrNotFound)
		wantError(t, errorOf(turned.Add(ctx, "item-1")), bloom.ErrNotFound)
		_, err := bloom.OpenSharded(ctx, []*upstash.Client{b, a}, key)
		if !errors.Is(err, bloom.ErrNotFound) || !strings.HasPrefix(err.Error(), "bloom: shard 0 not found: never created, ") ||
			!strings.Contains(err.Error(), "or the clients have another order") {
			t.Errorf("another order: OpenSharded: %v, want ErrNotFound about the order", err)
		}
		if bodies() != before {
			t.Error("the shards have changed")
		}
	})
}

func TestOpenSharded(t *testing.T) {
	twoServers(t, func(t *testing.T, s [2]*upstashtest.Server) {
		clients := []*upstash.Client{s[0].Client(), s[1].Client()}
		wantError(t, errorOf(bloom.OpenSharded(t.Context(), clients, key)), bloom.ErrNotFound)
		cfg := shards(7)
		cfg.Seed = 42
		f := sharded(t, cfg, clients...)
		create(t, f, true)
		items := numbered("item", 100)
		mustAdd(t, f, items...)
		s[0].ResetStats()
		g, err := bloom.OpenSharded(t.Context(), clients, key, bloom.ShardedConfig{Seed: 42})
		noError(t, err)
		if n := s[0].Stats(); n.Requests != 1 || n.Billed != 2 {
			t.Errorf("%d requests, %d billed, want 1, 2", n.Requests, n.Billed)
		}
		found, err := g.ExistsAll(t.Context(), items)
		if err != nil || count(found) != len(items) || g.Geometry() != f.Geometry() {
			t.Errorf("%d found, %v, geometry %v, want %v", count(found), err, g.Geometry(), f.Geometry())
		}
		var mismatch *bloom.MismatchError
		if _, err := bloom.OpenSharded(t.Context(), clients, key); !errors.As(err, &mismatch) || !mismatch.OtherSeed {
			t.Errorf("without the seed: %v, want a MismatchError", err)
		}
		wantMismatch(t, errorOf(bloom.Open(t.Context(), clients[0], shardKey(0), bloom.Config{Seed: 42})))
	})
}

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
		mustAdd(t, f, numbered("old", 100)...)
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
		noError(t, errorOf(f.Load(t.Context(), items)))
		before := do(t, s[1], "GET", shardKey(3)).(string)
		f.Delete(t.Context())
		create(t, f, true)
		n := uint64(0)
		for i := range 5 {
			result, err := f.LoadShard(t.Context(), i, items)
			noError(t, err)
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
			noError(t, errorOf(f.Delete(t.Context())))
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
