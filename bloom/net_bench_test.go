package bloom_test

import (
	"fmt"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// The whole way: over HTTP on loopback to the REST server of this process and back, whose
// work is in the figures too. Capacity 10,000 at 1%: a string of 12 KB, k = 7.
func BenchmarkEndToEnd(b *testing.B) {
	b.Run("backend=embedded", func(b *testing.B) { endToEnd(b, upstashtest.NewServer(b)) })
	b.Run("backend=redis", func(b *testing.B) {
		endToEnd(b, upstashtest.NewServer(b, upstashtest.WithRedis(testenv.Redis(b))))
	})
}

func endToEnd(b *testing.B, s *upstashtest.Server) {
	f, err := bloom.New(s.Client(), key, bloom.Config{Capacity: 10_000, FPRate: 0.01})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := f.Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	ctx, items := b.Context(), numbered("item", 1000)
	for _, c := range []struct {
		name  string
		items int
		call  func(i int) error
	}{
		{"op=add", 1, func(i int) error { _, err := f.Add(ctx, items[i%1000]); return err }},
		{"op=exists", 1, func(i int) error { _, err := f.Exists(ctx, items[i%1000]); return err }},
		{"op=addall", 1000, func(int) error { _, err := f.AddAll(ctx, items); return err }},
		{"op=existsall", 1000, func(int) error { _, err := f.ExistsAll(ctx, items); return err }},
	} {
		b.Run(fmt.Sprintf("%s/items=%d", c.name, c.items), func(b *testing.B) {
			b.ReportAllocs()
			s.ResetStats()
			for i := 0; b.Loop(); i++ {
				if err := c.call(i); err != nil {
					b.Fatal(err)
				}
			}
			n := s.Stats()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.items), "ns/item")
			b.ReportMetric(float64(n.BytesIn)/float64(n.Requests), "body-bytes")
			b.ReportMetric(float64(n.BytesOut)/float64(n.Requests), "reply-bytes")
		})
	}
}
