package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A crawler visits each URL once; in doubt it visits a URL twice.
func Example() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	visited, err := bloom.New(client, "crawler:visited", bloom.Config{
		Capacity: 1_000_000, FPRate: 0.01,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, url := range []string{"https://a.example/", "https://b.example/", "https://a.example/"} {
		isNew, err := visited.Add(ctx, url)
		switch {
		case errors.Is(err, bloom.ErrUncertain):
			fmt.Println("fetch", url, "which may have been fetched before")
		case err != nil:
			log.Fatal(err)
		case isNew:
			fmt.Println("fetch", url)
		default:
			fmt.Println("skip", url)
		}
	}
	// Output:
	// fetch https://a.example/
	// fetch https://b.example/
	// skip https://a.example/
}

func ExampleNew() {
	client, stop := database()
	defer stop()

	f, err := bloom.New(client, "usernames", bloom.Config{Capacity: 1_000_000, FPRate: 0.001})
	fmt.Println(f, err)

	_, err = bloom.New(client, "usernames", bloom.Config{FPRate: 0.001})
	fmt.Println(err)
	// Output:
	// bloom.Filter(16,120,321 bits (1.9 MiB), k=6, blocked) <nil>
	// bloom: Config.Capacity is 0: set the number of items to expect, at least 1
}

// A reader needs to know no more than the key.
func ExampleOpen() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	f, _ := bloom.New(client, "usernames", bloom.Config{Capacity: 5_000, FPRate: 0.01})
	_, _ = f.Add(ctx, "alice")

	reader, err := bloom.Open(ctx, client, "usernames")
	if err != nil {
		log.Fatal(err)
	}
	found, err := reader.Exists(ctx, "alice")
	fmt.Println(reader.Geometry(), found, err)

	_, err = bloom.Open(ctx, client, "nicknames")
	fmt.Println(errors.Is(err, bloom.ErrNotFound))
	// Output:
	// 53,742 bits (6.6 KiB), k=4, blocked true <nil>
	// true
}

func ExampleFilter_Create() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	f, _ := bloom.New(client, "usernames", bloom.Config{Capacity: 5_000, FPRate: 0.01})
	for range 2 {
		created, err := f.Create(ctx)
		fmt.Println(created, err)
	}

	other, _ := bloom.New(client, "usernames", bloom.Config{Capacity: 9_000, FPRate: 0.01})
	_, err := other.Create(ctx)
	var mismatch *bloom.MismatchError
	fmt.Println(errors.As(err, &mismatch))
	// Output:
	// true <nil>
	// false <nil>
	// true
}

func ExampleFilter_Add() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	f, _ := bloom.New(client, "crawled", bloom.Config{Capacity: 1_000_000, FPRate: 0.001})
	for _, url := range []string{"https://example.com/", "https://example.com/"} {
		added, err := f.Add(ctx, url)
		fmt.Println(added, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

// A deploy with another capacity is refused. A filter without a header
// would answer wrongly.
func ExampleFilter_Add_mismatch() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	before, _ := bloom.New(client, "crawled", bloom.Config{Capacity: 1_000, FPRate: 0.01})
	_, _ = before.Add(ctx, "https://example.com/")

	after, _ := bloom.New(client, "crawled", bloom.Config{Capacity: 2_000, FPRate: 0.01})
	_, err := after.Add(ctx, "https://example.com/")
	var mismatch *bloom.MismatchError
	if errors.As(err, &mismatch) {
		fmt.Println("stored:", mismatch.Got)
		fmt.Println("wanted:", mismatch.Want)
	}
	// Output:
	// stored: 10,759 bits (1.3 KiB), k=4, blocked
	// wanted: 21,518 bits (2.6 KiB), k=4, blocked
}

func ExampleFilter_Exists() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	f, _ := bloom.New(client, "usernames", bloom.Config{Capacity: 5_000, FPRate: 0.01})
	_, err := f.Exists(ctx, "alice")
	fmt.Println(errors.Is(err, bloom.ErrNotFound)) // no filter, and so no "no"

	_, _ = f.Add(ctx, "alice")
	for _, name := range []string{"alice", "bob"} {
		taken, err := f.Exists(ctx, name)
		fmt.Println(name, taken, err)
	}
	// Output:
	// true
	// alice true <nil>
	// bob false <nil>
}

// A worker records what it has done. It does not ask whether that was recorded
// before, so an uncertain answer is as good as any.
func ExampleInFilter() {
	server, err := upstashtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	done, _ := bloom.New(server.Client(), "done", bloom.Config{Capacity: 1000, FPRate: 0.01})
	_, _ = done.Add(context.Background(), "job-1")

	server.Inject(upstashtest.Drop(upstashtest.AfterExec)) // executed, its answer lost
	_, err = done.Add(context.Background(), "job-2")
	fmt.Println(errors.Is(err, bloom.ErrUncertain), bloom.InFilter(err))
	// Output: true true
}

// A secret seed is not in the filter: whoever opens the filter must know it.
func ExampleOpen_seed() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	const secret = 0x5eed
	f, _ := bloom.New(client, "seen", bloom.Config{Capacity: 1000, FPRate: 0.01, Seed: secret})
	_, _ = f.Create(ctx)

	_, err := bloom.Open(ctx, client, "seen")
	var mismatch *bloom.MismatchError
	fmt.Println(errors.As(err, &mismatch) && mismatch.OtherSeed)

	reader, err := bloom.Open(ctx, client, "seen", bloom.Config{Seed: secret})
	fmt.Println(reader.Geometry(), err)
	// Output:
	// true
	// 10,759 bits (1.3 KiB), k=4, blocked, seeded <nil>
}

// A function that only asks needs no more than a read-only token.
func ExampleOpen_readOnly() {
	server, err := upstashtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	f, _ := bloom.New(server.Client(), "usernames", bloom.Config{Capacity: 1000, FPRate: 0.01})
	_, _ = f.Add(ctx, "ann")

	client, err := upstash.New(server.URL, server.ReadOnlyToken, upstash.WithReadOnly())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	reader, err := bloom.Open(ctx, client, "usernames")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reader.Exists(ctx, "ann"))
	_, err = reader.Add(ctx, "bob")
	fmt.Println(err)
	// Output:
	// true <nil>
	// upstash: the client is read-only: make one without WithReadOnly and with a full token
}

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
func ExampleGeometry_FalsePositiveRate() {
	g := bloom.Geometry{Bits: bloom.OptimalBits(10_000, 0.01), Hashes: 7, Scheme: bloom.SchemeXXH3}
	for _, n := range []uint64{5_000, 10_000, 20_000} {
		p := g.FalsePositiveRate(n)
		fmt.Printf("%5d items: %.5f, 1 in %.0f\n", n, p, 1/p)
	}
	// Output:
	//  5000 items: 0.00025, 1 in 3989
	// 10000 items: 0.01004, 1 in 100
	// 20000 items: 0.15745, 1 in 6
}

func ExampleGeometry_LiveFalsePositiveRate() {
	g := bloom.Geometry{Bits: 95_851, Hashes: 7, Scheme: bloom.SchemeXXH3}
	p := g.LiveFalsePositiveRate(47_900)
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

func ExampleConfig() {
	cfg := bloom.Config{Capacity: 5_000, FPRate: 0.01, TTL: 24 * time.Hour}
	fmt.Println(cfg)
	// Output: bloom.Config{Capacity: 5000, FPRate: 0.01, Scheme: blocked, Layout: headed, TTL: 24h0m0s}
}

func ExampleConfig_Geometry() {
	g, err := bloom.Config{Capacity: 10_000, FPRate: 0.01}.Geometry()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(g)
	// Output: 107,484 bits (13.1 KiB), k=4, blocked
}

// A filter by another program: its bits and hashes are given, not worked out.
func ExampleConfig_Geometry_explicit() {
	g, err := bloom.Config{
		Bits: 95_851, Hashes: 7, Scheme: bloom.SchemeFNV1a, Layout: bloom.LayoutBare,
	}.Geometry()
	fmt.Println(g, err)
	// Output: 95,851 bits (11.7 KiB), k=7, fnv1a <nil>
}

func ExampleConfigError() {
	_, err := bloom.Config{Capacity: 10_000, FPRate: 1.5}.Geometry()
	fmt.Println(err)

	var cerr *bloom.ConfigError
	if errors.As(err, &cerr) {
		fmt.Println(cerr.Field)
	}
	// Output:
	// bloom: Config.FPRate is 1.5: it must be above 0 and below 1, e.g. 0.01
	// FPRate
}

// A program deployed with another capacity finds out, and gets no wrong answer.
func ExampleMismatchError() {
	err := error(&bloom.MismatchError{ // as a look-up returns it
		Want: bloom.Geometry{Bits: 21_518, Hashes: 4},
		Got:  bloom.Geometry{Bits: 10_759, Hashes: 4},
		// The stored filter has a seed, and it is not ours.
		OtherSeed: true, GotSeeded: true,
	})

	var mismatch *bloom.MismatchError
	if errors.As(err, &mismatch) {
		fmt.Println("stored:", mismatch.Got)
		fmt.Println("wanted:", mismatch.Want)
		fmt.Println("ask for its seed:", mismatch.GotSeeded && mismatch.OtherSeed)
	}
	// Output:
	// stored: 10,759 bits (1.3 KiB), k=4, blocked
	// wanted: 21,518 bits (2.6 KiB), k=4, blocked
	// ask for its seed: true
}

func ExampleGeometry_Positions() {
	g := bloom.Geometry{Bits: 10_751_050, Hashes: 4} // a million items at 1 in 100
	var dst []uint64                                 // only the first call allocates
	for _, item := range []string{"abc", "user-123@example.com"} {
		dst = g.Positions(dst[:0], item)
		fmt.Println(dst)
	}
	// Output:
	// [5375652 5375676 6518010 6517996]
	// [6123236 6123214 6105787 6105789]
}

func ExampleGeometry_Bytes() {
	g := bloom.Geometry{Bits: 107_484, Hashes: 4}
	fmt.Println(g.Bytes(bloom.LayoutHeaded), g.Bytes(bloom.LayoutBare))
	// Output: 13460 13436
}

func ExampleGeometry_String() {
	fmt.Println(bloom.Geometry{Bits: 107_484, Hashes: 4, Seed: 0x5eed})
	// Output: 107,484 bits (13.1 KiB), k=4, blocked, seeded
}

func ExampleGeometry_Format() {
	fmt.Printf("%#v\n", bloom.Geometry{Bits: 107_484, Hashes: 4, Seed: 0x5eed})
	// Output: 107,484 bits (13.1 KiB), k=4, blocked, seeded
}

func ExampleScheme() {
	fmt.Println(bloom.SchemeXXH3, bloom.SchemeFNV1a)
	// Output: xxh3 fnv1a
}

func ExampleLayout() {
	fmt.Println(bloom.LayoutHeaded, bloom.LayoutBare)
	// Output: headed bare
}

func ExampleKind() {
	fmt.Println(bloom.KindFilter, bloom.KindShard, bloom.KindScalable, bloom.KindWindow, bloom.KindCuckoo)
	// Output: filter shard scalable window cuckoo
}
