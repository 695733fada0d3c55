package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// What a handle does is not stored in the filter: whoever opens it says it again.
func ExampleOpen_config() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	made, err := bloom.New(client, "seen", bloom.Config{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := made.Create(ctx); err != nil {
		log.Fatal(err)
	}
	reader, err := bloom.Open(ctx, client, "seen", bloom.Config{
		Reads:          bloom.ReadsNearest, // of a global database
		MissingIsEmpty: true,               // if it goes away later
		BatchBytes:     256 << 10,          // smaller requests, two at a time
		BatchParallel:  2,
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := made.Delete(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(reader.ExistsAll(ctx, []string{"a", "b"}))

	_, err = bloom.Open(ctx, client, "seen", bloom.Config{MustExist: true})
	fmt.Println("gone:", errors.Is(err, bloom.ErrNotFound))
	// Output:
	// [false false] <nil>
	// gone: true
}

// Another program made the filter and set no TTL. This one does, with its first
// Add.
func ExampleOpen_ttl() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	made, err := bloom.New(client, "seen", bloom.Config{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := made.Add(ctx, "a"); err != nil {
		log.Fatal(err)
	}
	f, err := bloom.Open(ctx, client, "seen", bloom.Config{TTL: 24 * time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := f.Add(ctx, "b"); err != nil {
		log.Fatal(err)
	}
	stats, err := f.Stats(ctx)
	fmt.Println(stats.TTL.Round(time.Hour), err)
	// Output: 24h0m0s <nil>
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

// A plan with small requests takes an upload in small parts.
func ExampleMovePartBytes() {
	client, stop := database()
	defer stop()
	f, err := bloom.New(client, "seen", bloom.Config{Capacity: 100_000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	result, err := f.Load(context.Background(), slices.Values([]string{"a", "b"}), bloom.MovePartBytes(64<<10))
	fmt.Println(result.Items, result.Requests, err)
	// Output: 2 4 <nil>
}

// A token that may not run TIME cannot write to a window.
func ExampleErrNoClock() {
	server, err := upstashtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	server.DenyFunc(func(command []string) bool { return command[0] == "TIME" })
	client := server.Client()
	defer client.Close()
	w, err := bloom.NewWindow(client, "seen", bloom.WindowConfig{
		Capacity: 1000, FPRate: 0.01, Span: time.Hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	_, err = w.Add(context.Background(), "a")
	fmt.Println(errors.Is(err, bloom.ErrNoClock))
	// Output: true
}
