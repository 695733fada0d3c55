package bloom_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A Load is billed what its doc says: three commands for each part, and a few
// more, which depend on what is at the key.
func TestLoadIsBilled(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, layout := range []bloom.Layout{bloom.LayoutHeaded, bloom.LayoutBare} {
			for _, parts := range []int64{1, 2, 7} {
				for _, ttl := range []time.Duration{0, time.Hour} {
					cfg := bloom.Config{Bits: uint64(parts)*8192 - 800, Hashes: 4, Scheme: bloom.SchemeXXH3, Layout: layout}
					cfg.TTL = ttl
					s.FlushAll()
					f := handle(t, s.Client(), cfg)
					load := func(more int64) {
						t.Helper()
						s.ResetStats()
						r, err := f.Load(t.Context(), mails(0, 100), bloom.MovePartBytes(1024))
						if err != nil {
							t.Fatal(err)
						}
						n, want := s.Stats(), 3*parts+more
						if n.Billed != want || r.Commands != want || n.Requests != parts+1 {
							t.Errorf("layout %v, %d parts, TTL %v: %d commands, %d reported, in %d requests; want %d",
								layout, parts, ttl, n.Billed, r.Commands, n.Requests, want)
						}
					}
					headed := int64(1)
					if layout == bloom.LayoutBare {
						headed = 0
					}
					load(7 + headed)
					expires := int64(0)
					if ttl > 0 {
						expires = 1
					}
					load(9 + expires)
				}
			}
		}
	})
}

// A Load that finds a filter without the TTL of its first Add sets it, with two
// commands.
func TestLoadIsBilledToSettle(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg := middling()
		add(t, handle(t, s.Client(), cfg), mail(0), true)
		cfg.TTL = time.Hour
		f := handle(t, s.Client(), cfg)
		for _, more := range []int64{9 + 2, 10} {
			s.ResetStats()
			if _, err := f.Load(t.Context(), mails(0, 100)); err != nil {
				t.Fatal(err)
			}
			if n := s.Stats().Billed; n != 3+more {
				t.Errorf("%d commands, want %d", n, 3+more)
			}
		}
	})
}

// A Sharded's Load is billed two commands a shard more, in a request to each
// database.
func TestShardedLoadIsBilled(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, shards := range []int{1, 3} {
			name := "shards-" + strconv.Itoa(shards)
			f, err := bloom.NewSharded([]*upstash.Client{s.Client()}, name,
				bloom.ShardedConfig{Capacity: 1000, FPRate: 0.01, Shards: shards})
			if err == nil {
				_, err = f.Create(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			s.ResetStats()
			r, err := f.Load(t.Context(), mails(0, 100))
			n, want := s.Stats(), int64(shards)*(3+9+2)
			if err != nil || n.Billed != want || r.Commands != want || n.Requests != int64(2*shards+1) {
				t.Errorf("%d shards: %d commands, %d reported, in %d requests, %v; want %d", shards, n.Billed, r.Commands,
					n.Requests, err, want)
			}
		}
	})
}
