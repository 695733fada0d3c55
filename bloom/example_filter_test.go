package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"log"

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
