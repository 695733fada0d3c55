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
		filled := fillShards(s, tt.shards, capacity)
		got := filled.rate(tt.queries)
		chi, most, worst := filled.spread(float64(tt.each))
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

// filledShards are the cells of a Sharded in memory.
type filledShards struct {
	s      *Sharded
	bodies []bitset
	held   []float64 // items, by shard
	dst    []uint64
}

// fillShards adds items up to the capacity.
func fillShards(s *Sharded, shards int, capacity uint64) *filledShards {
	f := &filledShards{s: s, bodies: make([]bitset, shards), held: make([]float64, shards)}
	for i := range f.bodies {
		f.bodies[i] = newBitset(s.Geometry().Bits)
	}
	for i := range capacity {
		shard, positions := f.place("user-" + strconv.FormatUint(i, 10))
		f.bodies[shard].set(positions)
		f.held[shard]++
	}
	return f
}

// place returns the shard of an item and its positions there.
func (f *filledShards) place(item string) (shard int, positions []uint64) {
	f.dst = f.s.Geometry().Positions(f.dst[:0], item)
	return f.s.ShardOf(item), f.dst
}

// rate returns the share of absent items that are found.
func (f *filledShards) rate(queries int) float64 {
	hits := 0
	for i := range queries {
		if shard, positions := f.place("guest-" + strconv.Itoa(i)); f.bodies[shard].has(positions) {
			hits++
		}
	}
	return float64(hits) / float64(queries)
}

// spread returns the chi square of the numbers of items, the largest number over
// the mean, and the highest rate of a shard.
func (f *filledShards) spread(mean float64) (chi, most, worst float64) {
	for i, n := range f.held {
		chi += (n - mean) * (n - mean) / mean
		most = max(most, n/mean)
		worst = max(worst, f.s.Geometry().LiveFalsePositiveRate(f.bodies[i].count()))
	}
	return chi, most, worst
}
