package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/upbloom/upbloom/bloom"
)

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

func ExampleOpenCuckoo() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	made, err := bloom.NewCuckoo(client, "usernames", bloom.CuckooConfig{Capacity: 5_000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := made.AddAll(ctx, []string{"alice", "bob"}); err != nil {
		log.Fatal(err)
	}
	names, err := bloom.OpenCuckoo(ctx, client, "usernames")
	if err != nil {
		log.Fatal(err)
	}
	stats, err := names.Stats(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats)
	fmt.Printf("%.4f at %d; seeded: %t\n", stats.FPRate, stats.Capacity, stats.Seeded)
	// Output:
	// cuckoo           56,657 bits (6.9 KiB), k=5, cuckoo
	// fill             [#...................] 0.0%
	// items            2 of 5,001
	// false positives  1 in 273,397 now, 1 in 110 at capacity
	// stored           6,577 bytes, no expiry
	// 0.0091 at 5001; seeded: false
}
