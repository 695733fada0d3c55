package bloom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// A scalable filter expires and is renamed and deleted as a plain one.
func ExampleScalable_Rename() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	f, err := bloom.NewScalable(client, "urls", bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := f.Add(ctx, "/a"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Expire(ctx, time.Hour))
	fmt.Println(f.Persist(ctx)) // it had a TTL

	fmt.Println(f.Rename(ctx, "urls:old"))
	old, err := bloom.OpenScalable(ctx, client, "urls:old")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(old.Delete(ctx))
	// Output:
	// true <nil>
	// true <nil>
	// <nil>
	// true <nil>
}

// A sharded filter is loaded shard by shard: only one is in memory.
func ExampleSharded_LoadShard() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	cfg := bloom.ShardedConfig{Capacity: 10_000, FPRate: 0.01, Shards: 4}
	shard, err := cfg.Geometry() // without a request
	if err != nil {
		log.Fatal(err)
	}
	f, err := bloom.NewSharded([]*upstash.Client{client}, "pages", cfg)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := f.Create(ctx); err != nil {
		log.Fatal(err)
	}
	pages := []string{"/a", "/b", "/c", "/d", "/e"}
	var loaded uint64
	for i := range cfg.Shards {
		result, err := f.LoadShard(ctx, i, slices.Values(pages))
		if err != nil {
			log.Fatal(err)
		}
		loaded += result.Items
	}
	fmt.Println(f.Geometry() == shard, loaded)
	isNew, err := f.Add(ctx, "/f")
	fmt.Println("new:", isNew, err)
	fmt.Println(f.Cardinality(ctx))
	fmt.Println("in a shard:", f.ShardOf("/f") >= 0 && f.ShardOf("/f") < cfg.Shards)
	fmt.Println(f.Delete(ctx))
	// Output:
	// true 5
	// new: true <nil>
	// 6 <nil>
	// in a shard: true
	// true <nil>
}

// A filter in memory is copied, and kept in any store of bytes.
func ExampleLocal_WriteTo() {
	cfg := bloom.Config{Capacity: 1000, FPRate: 0.01}
	g, err := cfg.Geometry()
	if err != nil {
		log.Fatal(err)
	}
	l := bloom.NewLocal(g)
	l.Add("a")
	before := l.Clone()
	l.Add("b")

	var stream bytes.Buffer
	if _, err := l.WriteTo(&stream); err != nil {
		log.Fatal(err)
	}
	back, err := bloom.ReadLocal(&stream, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(before.Exists("b"), back.Exists("b"), bytes.Equal(back.Bytes(), l.Bytes()))
	// Output: false true true
}

// A batch through a Mirror asks only for what its copy cannot prove.
func ExampleMirror_ExistsAll() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	f, err := bloom.New(client, "names", bloom.Config{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	m, err := bloom.NewMirror(f, bloom.MirrorConfig{MaxStale: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.AddAll(ctx, []string{"ann", "bob", "ann"}))
	fmt.Println(m.ExistsAll(ctx, []string{"ann", "zoe"}))
	// Output:
	// [true true false] <nil>
	// [true false] <nil>
}

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

func ExampleNewScalable() {
	client, stop := database()
	defer stop()
	// The filter must not take more than a megabyte of the database. Now and then
	// the program asks whether it holds too much.
	urls, err := bloom.NewScalable(client, "crawler:visited", bloom.ScalableConfig{
		Capacity: 10_000, FPRate: 0.01,
		MaxBytes: 1_000_000,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := urls.Add(ctx, "https://example.com/"); err != nil {
		log.Fatal(err)
	}
	stats, err := urls.Stats(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if stats.OverCapacity() {
		log.Println("the crawler needs another filter")
	}
	fmt.Println(stats.Items, "of", stats.Capacity)
	// Output:
	// 1 of 210000
}

func ExampleScalable_AddAll() {
	client, stop := database()
	defer stop()
	urls, err := bloom.NewScalable(client, "crawler:visited", bloom.ScalableConfig{
		Capacity: 1000, FPRate: 0.01,
	})
	if err != nil {
		log.Fatal(err)
	}
	// 3,000 items have no room in the first layer: a larger one is made for
	// them at once.
	ctx := context.Background()
	pages := make([]string, 3000)
	for i := range pages {
		pages[i] = fmt.Sprintf("https://a.example/%d", i)
	}
	if _, err := urls.AddAll(ctx, pages); err != nil {
		log.Fatal(err)
	}
	isNew, err := urls.AddAll(ctx, []string{"https://a.example/7", "https://b.example/"})
	fmt.Println(isNew, err)
	found, err := urls.ExistsAll(ctx, []string{"https://a.example/2999", "https://c.example/"})
	fmt.Println(found, err)
	// Output:
	// [false true] <nil>
	// [true false] <nil>
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

// A reader needs the key alone.
func ExampleOpenScalable() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	writer, err := bloom.NewScalable(client, "usernames", bloom.ScalableConfig{
		Capacity: 1000, FPRate: 0.001,
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := writer.Create(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := writer.Add(ctx, "ada"); err != nil {
		log.Fatal(err)
	}

	names, err := bloom.OpenScalable(ctx, client, "usernames")
	if err != nil {
		log.Fatal(err)
	}
	taken, err := names.Exists(ctx, "ada")
	fmt.Println(taken, err)
	// Output:
	// true <nil>
}

// A scalable filter in a database whose plan allows longer records than most.
func ExampleOpenScalable_maxBytes() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	cfg := bloom.ScalableConfig{Capacity: 5000, FPRate: 0.01, MaxBytes: 400_000_000}
	first, err := cfg.Geometry()
	if err != nil {
		log.Fatal(err)
	}
	made, err := bloom.NewScalable(client, "urls", cfg)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := made.Create(ctx); err != nil {
		log.Fatal(err)
	}
	f, err := bloom.OpenScalable(ctx, client, "urls", bloom.ScalableConfig{MaxBytes: 400_000_000})
	if err != nil {
		log.Fatal(err)
	}
	stats, err := f.Stats(ctx)
	fmt.Println(f.Geometry() == first, stats.OverCapacity(), err)
	// Output: true false <nil>
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

func ExampleNewCuckoo() {
	client, stop := database()
	defer stop()
	f, err := bloom.NewCuckoo(client, "usernames", bloom.CuckooConfig{Capacity: 5_000, FPRate: 0.01})
	fmt.Println(f, err)

	_, err = bloom.NewCuckoo(client, "usernames", bloom.CuckooConfig{Capacity: 5_000, FPRate: 1e-9})
	fmt.Println(err)
	// Output:
	// bloom.Cuckoo(56,657 bits (6.9 KiB), k=5, cuckoo) <nil>
	// bloom: CuckooConfig.FPRate is 1e-09: a cuckoo filter reaches 6e-8, 1 in 16.7 million; use that
}

// A batch, of which each request adds all of its items or none.
func ExampleCuckoo_AddAll() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	seats, err := bloom.NewCuckoo(client, "seats", bloom.CuckooConfig{Capacity: 1000, FPRate: 0.001})
	if err != nil {
		log.Fatal(err)
	}
	isNew, err := seats.AddAll(ctx, []string{"12A", "12B", "12A"})
	fmt.Println(isNew, err)
	n, err := seats.Count(ctx)
	fmt.Println(n, err) // 12A was stored twice

	removed, err := seats.RemoveAll(ctx, []string{"12A", "12B"})
	fmt.Println(removed, err)
	found, err := seats.ExistsAll(ctx, []string{"12A", "12B"})
	fmt.Println(found, err)
	// Output:
	// [true true false] <nil>
	// 3 <nil>
	// [true true] <nil>
	// [true false] <nil>
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

// A cuckoo filter is renamed, and opened by its new name without its Config.
func ExampleOpenCuckoo() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	cfg := bloom.CuckooConfig{Capacity: 5_000, FPRate: 0.01}
	g, err := cfg.Geometry() // without a request
	if err != nil {
		log.Fatal(err)
	}
	made, err := bloom.NewCuckoo(client, "usernames", cfg)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := made.AddAll(ctx, numbered("name", 5000)); err != nil {
		log.Fatal(err)
	}
	if err := made.Rename(ctx, "usernames:old"); err != nil {
		log.Fatal(err)
	}
	names, err := bloom.OpenCuckoo(ctx, client, "usernames:old")
	if err != nil {
		log.Fatal(err)
	}
	stats, err := names.Stats(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats)
	fmt.Println(stats.Geometry.Hashes, "slots a bucket, as configured:", names.Geometry() == g)
	fmt.Printf("%.4f at %d; seeded: %t\n", stats.FPRate, stats.Capacity, stats.Seeded)
	fmt.Println(names.Delete(ctx))
	// Output:
	// cuckoo           56,657 bits (6.9 KiB), k=5, cuckoo
	// fill             [###################.] 93.5%
	// items            5,000 of 5,001
	// false positives  1 in 110 now, 1 in 110 at capacity
	// stored           7,107 bytes, no expiry
	// 5 slots a bucket, as configured: true
	// 0.0091 at 5001; seeded: false
	// true <nil>
}
