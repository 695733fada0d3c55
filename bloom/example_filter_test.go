package bloom_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/upbloom/upbloom/bloom"
)

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
		fmt.Println(err)
		return
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
