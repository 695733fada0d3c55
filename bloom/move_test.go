package bloom_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func items(from, to int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for i := from; i < to; i++ {
			if !yield(fmt.Sprintf("user-%d@example.com", i)) {
				return
			}
		}
	}
}

func TestSmokeMoves(t *testing.T) {
	for _, name := range []string{"mini", "redis"} {
		t.Run(name, func(t *testing.T) {
			var opts []upstashtest.Option
			if name == "redis" {
				opts = append(opts, upstashtest.WithRedis(testenv.Redis(t)))
			}
			s := upstashtest.NewServer(t, opts...)
			ctx := context.Background()
			c := s.Client()
			mk := func(key string, ttl time.Duration) *bloom.Filter {
				f, err := bloom.New(c, key, bloom.Config{Capacity: 100_000, FPRate: 0.01, TTL: ttl})
				if err != nil {
					t.Fatal(err)
				}
				return f
			}
			f := mk("k", time.Hour)
			s.ResetStats()
			r, err := f.Load(ctx, items(0, 50_000), bloom.MovePartBytes(20_000))
			t.Logf("%+v %v %+v", r, err, s.Stats())
			r, err = f.Load(ctx, items(25_000, 75_000), bloom.MovePartBytes(20_000))
			t.Logf("%+v %v", r, err)
			t.Log(f.Stats(ctx))
			l, err := f.Snapshot(ctx)
			if err != nil {
				t.Fatal(err)
			}
			g := mk("k2", 0)
			t.Log(g.Merge(ctx, l))
			t.Log(bloom.EstimateIntersection(ctx, f, g))
			h := mk("k3", 0)
			t.Log(h.Load(ctx, items(50_000, 100_000)))
			t.Log(bloom.EstimateIntersection(ctx, f, h))
			t.Log(bloom.Union(ctx, mk("k4", time.Minute), f, h))
			t.Log(mk("k4", 0).Stats(ctx))
			t.Log(h.Replace(ctx, l))
			t.Log(h.Stats(ctx))
			t.Log(mk("k4", 0).Replace(ctx, l))
			t.Log(mk("k4", 0).Stats(ctx))
			ok, err := h.ExistsAll(ctx, []string{"user-1@example.com", "user-99999@example.com"})
			t.Log(ok, err)
			keys, _ := s.Exec("KEYS", "*")
			t.Log(keys)
		})
	}
}
