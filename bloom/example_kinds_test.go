package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// Nobody knows how many users there will be. The filter begins with room for a
// thousand of them and takes 341 times as many.
func ExampleScalable() {
	client, stop := database()
	defer stop()
	names, err := bloom.NewScalable(client, "usernames", bloom.ScalableConfig{
		Capacity: 1000, FPRate: 0.001,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, name := range []string{"ada", "grace", "ada"} {
		isNew, err := names.Add(ctx, name)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name, isNew)
	}
	taken, err := names.Exists(ctx, "grace")
	fmt.Println(taken, err)
	// Output:
	// ada true
	// grace true
	// ada false
	// true <nil>
}

func ExampleScalable_Stats() {
	client, stop := database()
	defer stop()
	urls, err := bloom.NewScalable(client, "crawler:visited", bloom.ScalableConfig{
		Capacity: 1000, FPRate: 0.01,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, part := range []int{800, 1000} {
		pages := make([]string, part)
		for i := range pages {
			pages[i] = fmt.Sprintf("https://a.example/%d/%d", part, i)
		}
		if _, err := urls.AddAll(ctx, pages); err != nil {
			log.Fatal(err)
		}
	}
	stats, err := urls.Stats(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats)
	n, err := urls.Cardinality(ctx)
	fmt.Println(n, err)
	// Output:
	// layers           2 of 5
	// layer            [#######.............] 35.0%, about 1,002 of 1,000 items, 13,939 bits (1.7 KiB), k=6, blocked
	// layer            [##..................] 8.2%, about 797 of 4,000 items, 55,756 bits (6.8 KiB), k=6, blocked
	// items            about 1,799 of 341,000
	// false positives  1 in 496 now, 1 in 101 at capacity
	// stored           8,737 bytes, no expiry
	// 1799 <nil>
}

// A filter in eight records, four in each of two databases.
func ExampleSharded() {
	first, stopFirst := database()
	defer stopFirst()
	second, stopSecond := database()
	defer stopSecond()
	pages, err := bloom.NewSharded([]*upstash.Client{first, second}, "pages", bloom.ShardedConfig{
		Capacity: 1_000_000, // in all eight
		FPRate:   0.001,
		Shards:   8,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := pages.Create(ctx); err != nil { // once, when you deploy
		log.Fatal(err)
	}
	added, err := pages.AddAll(ctx, []string{"/a", "/b", "/a"})
	if err != nil {
		log.Fatal(err)
	}
	found, err := pages.Exists(ctx, "/b")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(added, found)
	// Output: [true true false] true
}

// Stats has the state of every shard, and of the whole.
func ExampleSharded_Stats() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	pages, err := bloom.NewSharded([]*upstash.Client{client}, "pages", bloom.ShardedConfig{
		Capacity: 9_000, FPRate: 0.01, Shards: 4,
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := pages.Create(ctx); err != nil {
		log.Fatal(err)
	}
	var items []string
	for i := range 9_000 {
		items = append(items, fmt.Sprint("page-", i))
	}
	if _, err := pages.AddAll(ctx, items); err != nil {
		log.Fatal(err)
	}
	stats, err := pages.Stats(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats)
	fmt.Println("over capacity:", stats.OverCapacity(), "saturated:", stats.Saturated)
	fmt.Printf("%.4f now, %.4f at %d\n", stats.LiveFPRate, stats.FPRate, stats.Capacity)
	// Output:
	// sharded          4 shards of 25,758 bits (3.1 KiB), k=4, blocked
	// fill             [######..............] 29.6% on average, 30.2% at most
	// items            about 9,052 of 9,000
	// false positives  1 in 120 now, 1 in 123 at capacity
	// stored           12,976 bytes
	// over capacity: false saturated: false
	// 0.0083 now, 0.0082 at 9000
}

// User names come back: closing an account frees its name.
func ExampleCuckoo() {
	client, stop := database()
	defer stop()
	names, err := bloom.NewCuckoo(client, "usernames", bloom.CuckooConfig{
		Capacity: 1_000_000, FPRate: 0.001,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := names.Add(ctx, "alice"); err != nil {
		log.Fatal(err)
	}
	taken, err := names.Exists(ctx, "alice")
	fmt.Println("taken:", taken, err)

	// Once for each Add, and never for a name that was not added.
	removed, err := names.Remove(ctx, "alice")
	fmt.Println("removed:", removed, err)
	taken, err = names.Exists(ctx, "alice")
	fmt.Println("taken:", taken, err)
	// Output:
	// taken: true <nil>
	// removed: true <nil>
	// taken: false <nil>
}

// A table has an end, and says so before it is damaged.
func ExampleErrFull() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	f, err := bloom.NewCuckoo(client, "seats", bloom.CuckooConfig{Capacity: 100, FPRate: 0.001})
	if err != nil {
		log.Fatal(err)
	}
	n := 0
	for ; err == nil; n++ {
		_, err = f.Add(ctx, fmt.Sprint("seat-", n))
	}
	fmt.Println(n > 100, errors.Is(err, bloom.ErrFull))
	count, err := f.Count(ctx)
	fmt.Println(count == uint64(n-1), err)
	// Output:
	// true true
	// true <nil>
}
