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

// wantFound checks that all items are found.
func wantFound(t *testing.T, f bloomtest.Set, items []string) {
	t.Helper()
	if found, err := f.ExistsAll(t.Context(), items); err != nil || count(found) != len(items) {
		t.Errorf("%d of %d items are found, %v", count(found), len(items), err)
	}
}

// wantUntouched checks that an error is the wanted one, and that the call has changed
// nothing.
func wantUntouched(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || !upstash.SafeToRetry(err) {
		t.Errorf("%v, want %v, safe to retry", err, want)
	}
}

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
		costs := func(step string, do func() error, requests, billed two) {
			t.Helper()
			resetBoth(s)
			if err := do(); err != nil {
				t.Fatalf("%s: %v", step, err)
			}
			for i := range s {
				if n := s[i].Stats(); n.Requests != requests[i] || n.Billed != billed[i] {
					t.Errorf("%s, database %d: %d requests, %d billed, want %d, %d",
						step, i, n.Requests, n.Billed, requests[i], billed[i])
				}
			}
		}
		costs("Create", func() error { return errorOf(f.Create(ctx)) }, two{4, 3}, two{14, 14})
		costs("Create again", func() error { return errorOf(f.Create(ctx)) }, two{1, 1}, two{4, 4})
		costs("Add", func() error { return errorOf(f.Add(ctx, items[0])) }, two{1, 0}, two{3, 0})
		costs("Exists", func() error { return errorOf(f.Exists(ctx, items[2])) }, two{0, 1}, two{0, 1})
		costs("AddAll", func() error { return errorOf(f.AddAll(ctx, items)) }, two{1, 1}, two{6, 3})
		costs("ExistsAll", func() error { return errorOf(f.ExistsAll(ctx, items)) }, two{1, 1}, two{2, 1})
		costs("Stats", func() error { return errorOf(f.Stats(ctx)) }, two{2, 2}, two{6, 6})
		costs("Cardinality", func() error { return errorOf(f.Cardinality(ctx)) }, two{2, 2}, two{4, 4})
		costs("Delete", func() error { return errorOf(f.Delete(ctx)) }, two{2, 1}, two{6, 6})
	})
}

// One database is down, and one shard of the other is gone. The rest answers.
func TestShardedAnswersOfThoseThatAreUp(t *testing.T) {
	for _, limit := range []int{0, 8000} {
		s := [2]*upstashtest.Server{upstashtest.NewServer(t), upstashtest.NewServer(t)}
		cfg := shards(4)
		f := batched(sharded(t, cfg, once(s[0]), once(s[1])), limit, 0)
		create(t, f, true)
		items := numbered("item", 400)
		mustAdd(t, f, items...)
		do(t, s[0], "DEL", shardKey(2))
		bloomtest.StrikeAll(s[1], notSent)
		check := func(name string, got []bool, err error, wantDone bool) {
			t.Helper()
			var batch *bloom.BatchError
			missing, _ := bloom.MissingShards(err)
			if !errors.As(err, &batch) || !slices.Equal(missing, []int{2}) {
				t.Fatalf("limit %d: %s: %v, shards %v missing; want a BatchError, and shard 2", limit, name, err, missing)
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
		if !strings.Contains(err.Error(), "shard 3 of 4") && !strings.Contains(err.Error(), "shard 1 of 4") {
			t.Errorf("the error names no shard that may have been written to: %v", err)
		}
		wantNoKey(t, s[0], shardKey(2))
	}
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
		f := sharded(t, cfg, s[0].Client(patient), s[1].Client(patient))
		wantError(t, errorOf(f.Stats(t.Context())), bloom.ErrNotFound)
		create(t, f, true)
		mustAdd(t, f, numbered("item", 8000)...)
		stats, err := f.Stats(t.Context())
		noError(t, err)
		sum := uint64(0)
		for i, one := range stats.Parts {
			sum += one.Items
			in, err := bloom.Inspect(t.Context(), s[i%2].Client(), shardKey(i))
			if err != nil || one.Items < 1800 || one.Items > 2200 || in.Kind != bloom.KindShard || in.Parts != nil ||
				in.Items != one.Items || in.SetBits != one.SetBits || in.Bytes != one.Bytes || in.Fill != one.Fill ||
				!isAbout(in.Capacity, one.Capacity) || in.Geometry.Bits != one.Bits {
				t.Errorf("shard %d has %+v, want about 2,000 items, and what Inspect says: %+v, %v", i, one, in, err)
			}
		}
		if stats.Kind != bloom.KindShard || stats.MaxParts != 4 || math.Abs(stats.Fill-0.25*(stats.Parts[0].Fill+
			stats.Parts[1].Fill+stats.Parts[2].Fill+stats.Parts[3].Fill)) > 1e-12 {
			t.Errorf("%+v, want the mean fill of 4 shards", stats)
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

// The errors of a Sharded say which shards are missing.
func TestMissingShards(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := sharded(t, shards(4), s.Client())
	want := func(err error, missing []int, of int) {
		t.Helper()
		if got, n := bloom.MissingShards(err); !slices.Equal(got, missing) || n != of {
			t.Errorf("of %v: shards %v of %d, want %v of %d", err, got, n, missing, of)
		}
	}
	want(errorOf(bloom.OpenSharded(t.Context(), []*upstash.Client{s.Client()}, key)), []int{0}, 0)
	want(errorOf(f.Load(t.Context(), slices.Values([]string{"a"}))), []int{0, 1, 2, 3}, 4)
	want(errorOf(f.AddAll(t.Context(), ofShard(f, 2, 1))), []int{2}, 4)
	of := sharded(t, shards(6), s.Client(), upstashtest.NewServer(t).Client())
	err := errorOf(of.AddAll(t.Context(), numbered("item", 400)))
	want(err, []int{0, 1, 2, 3, 4, 5}, 6)
	if !errors.Is(err, bloom.ErrNotFound) || !strings.Contains(err.Error(), "shard 0, 1, 2, 3, 4, 5 of 6") {
		t.Errorf("%v, want ErrNotFound of six shards", err)
	}
	want(nil, nil, 0)
	want(bloom.ErrNotFound, nil, 0)

	// Another error is graver, or met first.
	denyShard := func(shard int, script string) {
		s.DenyFunc(func(command []string) bool {
			return slices.Contains(command, shardKey(shard)) && strings.Contains(strings.Join(command, " "), script)
		})
	}
	create(t, f, true)
	do(t, s, "DEL", shardKey(0), shardKey(2))
	for _, script := range []string{"", "BITPOS"} {
		denyShard(1, script)
		want(errorOf(f.Create(t.Context())), []int{0, 2}, 4)
	}
	denyShard(1, "")
	want(errorOf(f.Load(t.Context(), slices.Values([]string{"a"}))), []int{0, 2}, 4)
	denyShard(0, "PEXPIRE")
	want(errorOf(f.Create(t.Context())), []int{0}, 4)
	s.DenyFunc(nil)
	create(t, f, true)

	// They go away during a Load.
	items := numbered("item", 100)
	r, err := f.Load(t.Context(), func(yield func(string) bool) {
		do(t, s, "DEL", shardKey(1), shardKey(2), shardKey(3))
		slices.Values(items)(yield)
	})
	want(err, []int{1, 2, 3}, 4)
	if upstash.SafeToRetry(err) || !r.NewBitsUnknown || r.NewBits == 0 {
		t.Errorf("Load = %+v, %v, want that shard 0 was loaded", r, err)
	}
}

// The shards that are in the database of another client are missing in their own.
func TestMissingShardsElsewhere(t *testing.T) {
	a, b := upstashtest.NewServer(t).Client(), upstashtest.NewServer(t).Client()
	create(t, sharded(t, shards(4), a, b), true)
	if got, _ := bloom.MissingShards(errorOf(sharded(t, shards(4), b, a).Create(t.Context()))); len(got) != 4 {
		t.Errorf("shards %v are missing, want all four", got)
	}
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
			bloom.WithProgress(func(done, total int64) { reports = append(reports, done, total) }))
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
		wantFound(t, f, append(items, numbered("old", 100)...))
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
		if mismatch, is := errors.AsType[*bloom.MismatchError](err); !is || mismatch.Field != "Shards" {
			t.Errorf("Load: %v, want a MismatchError of Shards", err)
		}
		stats, err := sharded(t, more, clients...).Stats(t.Context())
		if err != nil || stats.Items != 0 {
			t.Errorf("the other filter has %d items, want 0: %v", stats.Items, err)
		}
	})
}

// Whichever answer is lost, its request is repeated. Only a Load may not know
// then whether its upload was taken.
func TestShardedAfterALostAnswer(t *testing.T) {
	for name, op := range map[string]func(f *bloom.Sharded) error{
		"Create":    func(f *bloom.Sharded) error { return errorOf(f.Create(t.Context())) },
		"Load":      func(f *bloom.Sharded) error { return errorOf(f.Load(t.Context(), mails(0, 50))) },
		"LoadShard": func(f *bloom.Sharded) error { return errorOf(f.LoadShard(t.Context(), 0, mails(0, 50))) },
		"Stats":     func(f *bloom.Sharded) error { return errorOf(f.Stats(t.Context())) },
		"ExistsAll": func(f *bloom.Sharded) error { return errorOf(f.ExistsAll(t.Context(), []string{"a", "b", "c"})) },
	} {
		for _, fault := range []upstashtest.Fault{noReply, notSent} {
			for lost, of := int64(1), int64(1); lost <= of; lost++ {
				s := [2]*upstashtest.Server{upstashtest.NewServer(t), upstashtest.NewServer(t)}
				f := sharded(t, shards(4), impatient(s[0]), impatient(s[1]))
				if name != "Create" {
					create(t, f, true)
				}
				s[0].ResetStats()
				strikeAt(s[0], lost, fault)
				err := op(f)
				if err != nil && !(strings.HasPrefix(name, "Load") && errors.Is(err, bloom.ErrUncertain)) {
					t.Errorf("%s, %v of request %d: %v", name, fault, lost, err)
				}
				of = s[0].Stats().Requests - 1 // without the repeated one
			}
		}
	}
}

// MinShards returns the least number that fits: one fewer does not.
func TestMinShards(t *testing.T) {
	for _, capacity := range []uint64{1, 1000, 74_000_000, 300_000_000, 5_000_000_000} {
		cfg := bloom.ShardedConfig{Capacity: capacity, FPRate: 0.01}
		n, err := cfg.MinShards(100_000_000)
		noError(t, err)
		for _, shards := range []int{n, n - 1} {
			if cfg.Shards = shards; shards == 0 {
				continue
			}
			g, err := cfg.Geometry()
			if fits := err == nil && g.Bytes(bloom.LayoutHeaded) <= 100_000_000; fits != (shards == n) {
				t.Errorf("%d items: MinShards = %d, and %d fit: %v", capacity, n, shards, fits)
			}
		}
	}
	for _, cfg := range []bloom.ShardedConfig{
		{Capacity: 1 << 36, FPRate: 0.01}, {FPRate: 0.01}, {Capacity: 1000},
	} {
		var config *bloom.ConfigError
		if n, err := cfg.MinShards(100_000_000); !errors.As(err, &config) {
			t.Errorf("%v: %d, %v, want a ConfigError", cfg, n, err)
		}
	}
}
