package bloom_test

import (
	"context"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestSmoke(t *testing.T) {
	for _, name := range []string{"mini", "redis"} {
		t.Run(name, func(t *testing.T) {
			var opts []upstashtest.Option
			if name == "redis" {
				opts = append(opts, upstashtest.WithRedis(testenv.Redis(t)))
			}
			s := upstashtest.NewServer(t, opts...)
			ctx := context.Background()
			f, err := bloom.New(s.Client(), "k", bloom.Config{Capacity: 1000, FPRate: 0.01, TTL: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			t.Log(f.Geometry())
			t.Log(f.Exists(ctx, "a"))
			t.Log(f.Add(ctx, "a"))
			t.Log(f.Add(ctx, "a"))
			t.Log(f.Exists(ctx, "a"))
			t.Log(f.Exists(ctx, "b"))
			t.Log(f.Stats(ctx))
			t.Log(f.Persist(ctx))
			t.Log(f.Add(ctx, "b"))
			t.Log(f.Stats(ctx))
			t.Log(f.Expire(ctx, time.Minute))
			t.Log(f.Create(ctx))
			t.Log(f.Rename(ctx, "k2"))
			t.Log(f.Create(ctx))
			t.Log(f.Create(ctx))
			t.Log(f.Stats(ctx))
			t.Log(bloom.Inspect(ctx, s.Client(), "k2"))
			o, err := bloom.Open(ctx, s.Client(), "k2", bloom.OpenMustExist())
			t.Log(o, err)
			t.Log(o.Add(ctx, "xyz"))
			t.Log(o.Add(ctx, "xyz"))
			t.Log(bloom.ExistsIn(ctx, "xyz", f, o))
			t.Log(bloom.AddIn(ctx, "xyz", f, o))
			t.Log(o.Delete(ctx))
			t.Log(o.Add(ctx, "xyz"))
			t.Log(o.Delete(ctx))
			t.Log(o.AddAll(ctx, []string{"a", "b", "a"}))
			t.Log(f.AddAll(ctx, []string{"a", "b", "a"}))
			t.Log(f.ExistsAll(ctx, []string{"a", "b", "c"}))
		})
	}
}
