package bloom_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
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
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func create(t *testing.T, f *bloom.Sharded, want bool) {
	t.Helper()
	if created, err := f.Create(t.Context()); err != nil || created != want {
		t.Fatalf("Create = %v, %v, want %v", created, err, want)
	}
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

func TestSharded(t *testing.T) {
	twoServers(t, func(t *testing.T, s [2]*upstashtest.Server) {
		f := sharded(t, shards(5), s[0].Client(), s[1].Client())
		if _, err := f.Add(t.Context(), "a"); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("Add before Create: %v, want ErrNotFound", err)
		}
		if _, err := f.Exists(t.Context(), "a"); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("Exists before Create: %v, want ErrNotFound", err)
		}
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
			if found, err := f.Exists(t.Context(), item); found || err != nil {
				t.Fatalf("Exists = %v, %v before the Add, want false", found, err)
			}
			if added, err := f.Add(t.Context(), item); !added || err != nil {
				t.Fatalf("Add = %v, %v, want true", added, err)
			}
			if added, err := f.Add(t.Context(), item); added || err != nil {
				t.Fatalf("Add again = %v, %v, want false", added, err)
			}
			if found, err := f.Exists(t.Context(), item); !found || err != nil {
				t.Fatalf("Exists = %v, %v, want true", found, err)
			}
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
		if deleted, err := f.Delete(t.Context()); !deleted || err != nil {
			t.Errorf("Delete = %v, %v, want true", deleted, err)
		}
		if deleted, err := f.Delete(t.Context()); deleted || err != nil {
			t.Errorf("Delete again = %v, %v, want false", deleted, err)
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
			{"Create", func() error { _, err := f.Create(ctx); return err }, two{4, 3}, two{14, 14}},
			{"Create again", func() error { _, err := f.Create(ctx); return err }, two{1, 1}, two{4, 4}},
			{"Add", func() error { _, err := f.Add(ctx, items[0]); return err }, two{1, 0}, two{3, 0}},
			{"Exists", func() error { _, err := f.Exists(ctx, items[2]); return err }, two{0, 1}, two{0, 1}},
			{"AddAll", func() error { _, err := f.AddAll(ctx, items); return err }, two{1, 1}, two{6, 3}},
			{"ExistsAll", func() error { _, err := f.ExistsAll(ctx, items); return err }, two{1, 1}, two{2, 1}},
			{"Stats", func() error { _, err := f.Stats(ctx); return err }, two{2, 2}, two{8, 8}},
			{"Cardinality", func() error { _, err := f.Cardinality(ctx); return err }, two{2, 2}, two{4, 4}},
			{"Delete", func() error { _, err := f.Delete(ctx); return err }, two{2, 1}, two{6, 6}},
		} {
			for i := range s {
				s[i].ResetStats()
			}
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
	for _, databases := range []int{1, 2, 3, 4} {
		clients := make([]*upstash.Client, databases)
		servers := make([]*upstashtest.Server, databases)
		for i := range clients {
			servers[i] = upstashtest.NewServer(t)
			clients[i] = servers[i].Client()
		}
		wantBilled := func(want int64) {
			t.Helper()
			billed := int64(0)
			for _, s := range servers {
				billed += s.Stats().Billed
				s.ResetStats()
			}
			if billed != want {
				t.Errorf("%d databases: %d commands billed, want %d", databases, billed, want)
			}
		}
		f := sharded(t, shards(12), clients...)
		create(t, f, true)
		wantBilled(12 * int64(6+databases-1))
		create(t, f, false)
		wantBilled(12 * 2)
		do(t, servers[0], "DEL", shardKey(0))
		for _, s := range servers {
			s.ResetStats()
		}
		create(t, f, true) // completes it
		wantBilled(11*5 + int64(6+databases-1))
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
		if _, err := f.AddAll(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		do(t, s[0], "DEL", shardKey(2))
		s[1].InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
			return upstashtest.Drop(upstashtest.BeforeExec)
		})
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
		if n := do(t, s[0], "EXISTS", shardKey(2)); n != int64(0) {
			t.Error("a missing shard was made by an Add")
		}
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
