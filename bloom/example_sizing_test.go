package bloom_test

import (
	"fmt"
	"log"
	"math"

	"github.com/upbloom/upbloom/bloom"
)

func ExampleOptimalBits() {
	for _, p := range []float64{0.1, 0.01, 0.001} {
		m := bloom.OptimalBits(1_000_000, p)
		fmt.Printf("1 in %4.0f: %d bits, %.1f an item\n", 1/p, m, float64(m)/1e6)
	}
	// Output:
	// 1 in   10: 4792530 bits, 4.8 an item
	// 1 in  100: 9585059 bits, 9.6 an item
	// 1 in 1000: 14377588 bits, 14.4 an item
}

func ExampleOptimalHashes() {
	m := bloom.OptimalBits(1_000_000, 0.01)
	fmt.Println(bloom.OptimalHashes(m, 1_000_000))
	// Output: 7
}

// A filter beyond its capacity still answers, with more false positives.
func ExampleFalsePositiveRate() {
	m, k := bloom.OptimalBits(10_000, 0.01), 7
	for _, n := range []uint64{5_000, 10_000, 20_000} {
		p := bloom.FalsePositiveRate(m, k, n)
		fmt.Printf("%5d items: %.5f, 1 in %.0f\n", n, p, 1/p)
	}
	// Output:
	//  5000 items: 0.00025, 1 in 3989
	// 10000 items: 0.01004, 1 in 100
	// 20000 items: 0.15745, 1 in 6
}

func ExampleLiveFalsePositiveRate() {
	p := bloom.LiveFalsePositiveRate(95_851, 7, 47_900)
	fmt.Printf("%.4f, 1 in %.0f\n", p, 1/p)
	// Output: 0.0078, 1 in 128
}

func ExampleEstimateItems() {
	fmt.Printf("%.0f\n", bloom.EstimateItems(95_851, 7, 47_900))

	// A filter with all bits set no longer knows.
	full := bloom.EstimateItems(95_851, 7, 95_851)
	fmt.Println(math.IsInf(full, +1))
	// Output:
	// 9484
	// true
}

// How many shards are needed for 300 million items, if a record may have 100 MB?
func ExampleShardedConfig_MinShards() {
	cfg := bloom.ShardedConfig{Capacity: 300_000_000, FPRate: 0.01}
	n, err := cfg.MinShards(100_000_000)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n)
	// Output: 5
}
