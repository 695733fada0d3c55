package bloom_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A handle with another number of shards, or with its clients in another order,
// is refused. It must not find empty shards.
func TestShardedMeetsAnother(t *testing.T) {
	twoServers(t, func(t *testing.T, s [2]*upstashtest.Server) {
		a, b := s[0].Client(), s[1].Client()
		cfg := bloom.ShardedConfig{Capacity: 4000, FPRate: 0.01, Shards: 4}
		f := sharded(t, cfg, a, b)
		create(t, f, true)
		items := numbered("item", 100)
		if _, err := f.AddAll(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		bodies := func() (all string) {
			for i := range 4 {
				all += do(t, s[i%2], "GET", shardKey(i)).(string)
			}
			return all
		}
		before := bodies()
		more := sharded(t, bloom.ShardedConfig{Capacity: 8000, FPRate: 0.01, Shards: 8}, a, b)
		for name, call := range map[string]func() error{
			"Add":       func() error { _, err := more.Add(t.Context(), ofShard(more, 1, 1)[0]); return err },
			"Exists":    func() error { _, err := more.Exists(t.Context(), ofShard(more, 1, 1)[0]); return err },
			"AddAll":    func() error { _, err := more.AddAll(t.Context(), ofShard(more, 1, 5)); return err },
			"ExistsAll": func() error { _, err := more.ExistsAll(t.Context(), ofShard(more, 1, 5)); return err },
			"Create":    func() error { _, err := more.Create(t.Context()); return err },
			"Delete":    func() error { _, err := more.Delete(t.Context()); return err },
		} {
			err := call()
			var mismatch *bloom.MismatchError
			if !errors.As(err, &mismatch) || mismatch.Field != "Shards" || mismatch.GotKind != bloom.KindShard {
				t.Errorf("8 shards: %s: %v, want a MismatchError of Shards", name, err)
			}
		}
		turned := sharded(t, cfg, b, a)
		if _, err := turned.Exists(t.Context(), "item-1"); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("another order: Exists: %v, want ErrNotFound", err)
		}
		if _, err := turned.Add(t.Context(), "item-1"); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("another order: Add: %v, want ErrNotFound", err)
		}
		if created, err := turned.Create(t.Context()); created || err == nil || !strings.Contains(err.Error(), "order") {
			t.Errorf("another order: Create = %v, %v, want an error about the order", created, err)
		}
		_, err := bloom.OpenSharded(t.Context(), []*upstash.Client{b, a}, key)
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
		if _, err := bloom.OpenSharded(t.Context(), clients, key); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("before Create: %v, want ErrNotFound", err)
		}
		cfg := shards(7)
		cfg.Seed = 42
		f := sharded(t, cfg, clients...)
		create(t, f, true)
		items := numbered("item", 100)
		if _, err := f.AddAll(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		s[0].ResetStats()
		g, err := bloom.OpenSharded(t.Context(), clients, key, bloom.ShardedConfig{Seed: 42})
		if err != nil {
			t.Fatal(err)
		}
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
		if _, err := bloom.Open(t.Context(), clients[0], shardKey(0), bloom.Config{Seed: 42}); !errors.As(err, &mismatch) {
			t.Errorf("Open of a shard: %v, want a MismatchError", err)
		}
	})
}

// A read-only client looks up, and writes nothing.
func TestShardedReadOnly(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := sharded(t, shards(3), s.Client())
	create(t, f, true)
	if _, err := f.Add(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	reader := sharded(t, shards(3), s.Client(upstash.WithReadOnly()))
	s.ResetStats()
	for name, call := range map[string]func() error{
		"Create": func() error { _, err := reader.Create(t.Context()); return err },
		"Add":    func() error { _, err := reader.Add(t.Context(), "b"); return err },
		"AddAll": func() error { _, err := reader.AddAll(t.Context(), []string{"b", "c"}); return err },
		"Load":   func() error { _, err := reader.Load(t.Context(), slices.Values([]string{"b"})); return err },
	} {
		if err := call(); !errors.Is(err, upstash.ErrReadOnly) || !upstash.SafeToRetry(err) {
			t.Errorf("%s: %v, want ErrReadOnly", name, err)
		}
	}
	if n := s.Stats().Requests; n != 0 {
		t.Errorf("%d requests, want none", n)
	}
	if found, err := reader.ExistsAll(t.Context(), []string{"a", "b"}); err != nil || !found[0] || found[1] {
		t.Errorf("ExistsAll = %v, %v, want [true false]", found, err)
	}
	if n, err := reader.Cardinality(t.Context()); err != nil || n != 1 {
		t.Errorf("Cardinality = %d, %v, want 1", n, err)
	}
}
