//go:build !race

package bloom

import (
	"math"
	"strconv"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// At Capacity, the rate of the whole filter is at most a tenth above the
// promise, for any number of shards. Items spread over the shards as chance
// would have it.
func TestShardedRates(t *testing.T) {
	c := upstashtest.NewServer(t).Client()
	for _, tt := range []struct {
		shards  int
		each    uint64 // items a shard
		rate    float64
		queries int
	}{
		{2, 1000, 0.01, 400_000},
		{3, 1000, 0.01, 400_000},
		{4, 100_000, 0.01, 400_000},
		{16, 1000, 0.01, 400_000},
		{16, 10_000, 0.001, 2_000_000},
		{100, 1000, 0.01, 400_000},
		{256, 1000, 0.01, 400_000},
		{256, 100, 0.01, 400_000},
	} {
		if tt.each >= 10_000 && !testenv.Long() {
			continue
		}
		capacity := tt.each * uint64(tt.shards)
		cfg := ShardedConfig{Capacity: capacity, FPRate: tt.rate, Shards: tt.shards, Seed: 7}
		s, err := NewSharded([]*upstash.Client{c}, "k", cfg)
		if err != nil {
			t.Fatal(err)
		}
		bodies, held := make([]bitset, tt.shards), make([]float64, tt.shards)
		for i := range bodies {
			bodies[i] = newBitset(s.Geometry().Bits)
		}
		dst := make([]uint64, 0, maxHashes)
		for i := range capacity {
			item := "user-" + strconv.FormatUint(i, 10)
			shard := s.ShardOf(item)
			bodies[shard].set(s.Geometry().Positions(dst[:0], item))
			held[shard]++
		}
		hits := 0
		for i := range tt.queries {
			item := "guest-" + strconv.Itoa(i)
			if bodies[s.ShardOf(item)].has(s.Geometry().Positions(dst[:0], item)) {
				hits++
			}
		}
		got := float64(hits) / float64(tt.queries)
		chi, most, worst := 0.0, 0.0, 0.0
		for i, n := range held {
			chi += (n - float64(tt.each)) * (n - float64(tt.each)) / float64(tt.each)
			most = max(most, n/float64(tt.each))
			worst = max(worst, s.Geometry().LiveFalsePositiveRate(bodies[i].count()))
		}
		t.Logf("%3d shards of %6d at %v: rate %.3f of the promise, worst shard %.3f; the fullest has"+
			" %.4f of the mean, chi square %.1f", tt.shards, tt.each, tt.rate, got/tt.rate, worst/tt.rate, most, chi)
		if got > 1.1*tt.rate || got < 0.2*tt.rate {
			t.Errorf("%d shards of %d: rate %v, promised %v", tt.shards, tt.each, got, tt.rate)
		}
		// Chi square has a mean of shards-1, and twice that as variance.
		if free := float64(tt.shards - 1); math.Abs(chi-free) > 5*math.Sqrt(2*free) {
			t.Errorf("%d shards of %d: chi square %.1f, want about %v", tt.shards, tt.each, chi, free)
		}
	}
}
