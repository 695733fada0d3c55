package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

func ExampleFilter_Cardinality() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	f, _ := bloom.New(client, "visitors", bloom.Config{Capacity: 5_000, FPRate: 0.01})
	_, _ = f.AddAll(ctx, numbered("visitor", 1000))
	n, err := f.Cardinality(ctx)
	fmt.Println("about", n, err)
	// Output: about 1005 <nil>
}

func ExampleFilter_Stats() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	f, _ := bloom.New(client, "visitors", bloom.Config{Capacity: 5_000, FPRate: 0.01})
	_, _ = f.Create(ctx)
	_, _ = f.AddAll(ctx, numbered("visitor", 4000))
	st, err := f.Stats(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(st)
	fmt.Printf("%v, %d part, at %d items wrong at %.3f\n", st.Layout, st.Parts, st.Capacity, st.FPRate)
	// Output:
	// filter           53,742 bits (6.6 KiB), k=4, blocked
	// fill             [#####...............] 25.7%
	// items            about 3,994 of 5,000
	// false positives  1 in 208 now, 1 in 100 at capacity
	// stored           6,742 bytes, no expiry
	// headed, 1 part, at 5000 items wrong at 0.010
}

func ExampleFilter_Expire() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	f, _ := bloom.New(client, "visitors", bloom.Config{Capacity: 5_000, FPRate: 0.01})
	_, _ = f.Add(ctx, "alice")
	found, err := f.Expire(ctx, time.Hour)
	fmt.Println(found, err)
	// Output: true <nil>
}

func ExampleFilter_Persist() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	f, _ := bloom.New(client, "visitors", bloom.Config{Capacity: 5_000, FPRate: 0.01})
	_, _ = f.Add(ctx, "alice")
	_, _ = f.Expire(ctx, time.Hour)
	for range 2 {
		had, err := f.Persist(ctx)
		fmt.Println(had, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

// Keep yesterday's filter under another name.
func ExampleFilter_Rename() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	f, _ := bloom.New(client, "visitors", bloom.Config{Capacity: 5_000, FPRate: 0.01})
	_, _ = f.Add(ctx, "alice")
	fmt.Println(f.Rename(ctx, "visitors:yesterday"))

	_, _ = f.Add(ctx, "bob")
	fmt.Println(f.Rename(ctx, "visitors:yesterday"))
	// Output:
	// <nil>
	// bloom: the key to rename to holds something: choose another key, or delete it first
}

func ExampleFilter_Delete() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	f, _ := bloom.New(client, "visitors", bloom.Config{Capacity: 5_000, FPRate: 0.01})
	_, _ = f.Add(ctx, "alice")
	for range 2 {
		deleted, err := f.Delete(ctx)
		fmt.Println(deleted, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

// Look at several filters at once.
func ExampleInspectAll() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	f, _ := bloom.New(client, "visitors", bloom.Config{Capacity: 5_000, FPRate: 0.01})
	_, _ = f.AddAll(ctx, []string{"alice", "bob"})

	keys := []string{"visitors", "buyers"}
	found, err := bloom.InspectAll(ctx, client, keys)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, key := range keys {
		if found[i].Err != nil {
			fmt.Println(key, "is not there:", errors.Is(found[i].Err, bloom.ErrNotFound))
			continue
		}
		fmt.Println(key, "holds about", found[i].Stats.Items)
	}
	// Output:
	// visitors holds about 2
	// buyers is not there: true
}
