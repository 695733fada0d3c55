package bloom

import (
	"fmt"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/cells"
)

func BenchmarkPositions(b *testing.B) {
	const email = "user-123@example.com"
	for _, c := range []struct {
		g    Geometry
		item string
	}{
		{Geometry{Bits: 10_746_333, Hashes: 4}, email},
		{Geometry{Bits: 10_746_333, Hashes: 4, Seed: 42}, email},
		{Geometry{Bits: 10_746_333, Hashes: 4}, strings.Repeat("x", 1000)},
		{Geometry{Bits: 9_585_059, Hashes: 7, Scheme: SchemeXXH3}, email},
		{Geometry{Bits: 1<<32 - 192, Hashes: 30, Scheme: SchemeXXH3}, email},
		{Geometry{Bits: 9_585_059, Hashes: 7, Scheme: SchemeFNV1a}, email},
	} {
		name := fmt.Sprintf("scheme=%v/seeded=%t/m=%d/k=%d/bytes=%d",
			c.g.Scheme, c.g.Seed != 0, c.g.Bits, c.g.Hashes, len(c.item))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			dst := make([]uint64, 0, maxHashes)
			for b.Loop() {
				dst = c.g.Positions(dst[:0], c.item)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.g.Hashes), "ns/position")
		})
	}
}

func BenchmarkDigest(b *testing.B) {
	for _, seed := range []uint64{0, 42} {
		b.Run(fmt.Sprintf("seeded=%t/bytes=20", seed != 0), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cells.Digest("user-123@example.com", seed)
			}
		})
	}
}

// Config.Geometry runs once for each handle, and some programs make a handle
// for each request.
func BenchmarkConfigGeometry(b *testing.B) {
	for _, scheme := range schemes {
		b.Run("scheme="+scheme.String(), func(b *testing.B) {
			b.ReportAllocs()
			cfg := Config{Capacity: 1_000_000, FPRate: 0.01, Scheme: scheme}
			for b.Loop() {
				if _, err := cfg.Geometry(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
