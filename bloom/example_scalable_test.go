package bloom_test

import (
	"context"
	"fmt"
	"log"

	"github.com/upbloom/upbloom/bloom"
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

func ExampleNewScalable() {
	client, stop := database()
	defer stop()
	// The filter must not take more than a megabyte of the database, and the
	// program wants to know when it is full.
	urls, err := bloom.NewScalable(client, "crawler:visited", bloom.ScalableConfig{
		Capacity: 10_000, FPRate: 0.01,
		MaxBytes: 1_000_000,
		WarnFill: func(st bloom.ScalableStats) {
			log.Printf("the crawler needs another filter: %v", st)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(urls.Geometry())
	// Output:
	// 139,337 bits (17.0 KiB), k=6, blocked
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
