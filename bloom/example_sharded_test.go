package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

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

// A reader needs the clients, in their order, and the key.
func ExampleOpenSharded() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	clients := []*upstash.Client{client}
	_, err := bloom.OpenSharded(ctx, clients, "pages")
	fmt.Println("missing:", errors.Is(err, bloom.ErrNotFound))

	writer, err := bloom.NewSharded(clients, "pages", bloom.ShardedConfig{
		Capacity: 10_000, FPRate: 0.001, Shards: 4,
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := writer.Create(ctx); err != nil {
		log.Fatal(err)
	}
	result, err := writer.Load(ctx, slices.Values([]string{"/a", "/b"}))
	if err != nil {
		log.Fatal(err)
	}
	reader, err := bloom.OpenSharded(ctx, clients, "pages")
	if err != nil {
		log.Fatal(err)
	}
	found, err := reader.ExistsAll(ctx, []string{"/a", "/c"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Items, found, reader)
	// Output:
	// missing: true
	// 2 [true false] bloom.Sharded(4 shards, each 42,771 bits (5.2 KiB), k=6, blocked)
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
