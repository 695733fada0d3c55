package bloom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A filter of its own, without a database.
func ExampleLocal() {
	g, err := bloom.Config{Capacity: 10_000, FPRate: 0.001}.Geometry()
	if err != nil {
		log.Fatal(err)
	}
	seen := bloom.NewLocal(g)
	for _, url := range []string{"/a", "/b", "/a"} {
		fmt.Println(url, seen.Add(url))
	}
	fmt.Println(seen.Exists("/b"), seen.Exists("/c"))
	items, err := seen.Cardinality()
	fmt.Println("about", items, err)
	// Output:
	// /a true
	// /b true
	// /a false
	// true false
	// about 2 <nil>
}

// Workers fill filters of their own, which are put together at the end.
func ExampleLocal_Merge() {
	g, err := bloom.Config{Capacity: 10_000, FPRate: 0.01}.Geometry()
	if err != nil {
		log.Fatal(err)
	}
	all := bloom.NewLocal(g)
	for _, part := range [][]string{{"ann", "bob"}, {"bob", "cid"}} {
		worker := bloom.NewLocal(g)
		for _, name := range part {
			worker.Add(name)
		}
		if err := all.Merge(worker); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(all.Exists("ann"), all.Exists("cid"), all.Exists("dan"))

	g.Bits *= 2
	var mismatch *bloom.MismatchError
	fmt.Println(errors.As(all.Merge(bloom.NewLocal(g)), &mismatch))
	// Output:
	// true true false
	// true
}

// A filter is saved with a checksum. Its seed is a secret, and not in the file.
func ExampleReadLocal() {
	const seed = 8213
	g, err := bloom.Config{Capacity: 1_000, FPRate: 0.01, Seed: seed}.Geometry()
	if err != nil {
		log.Fatal(err)
	}
	names := bloom.NewLocal(g)
	names.Add("ann")
	var file bytes.Buffer
	if _, err := names.WriteTo(&file); err != nil {
		log.Fatal(err)
	}
	saved := file.Bytes()

	read, err := bloom.ReadLocal(bytes.NewReader(saved), seed)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(read.Exists("ann"), read.Exists("bob"))

	_, err = bloom.ReadLocal(bytes.NewReader(saved[:len(saved)/2]), seed)
	fmt.Println(errors.Is(err, bloom.ErrBadStream))
	// Output:
	// true false
	// true
}

// A block list, asked for each request of a process. It may be ten seconds old,
// and costs a few commands in that time.
func ExampleMirror() {
	ctx := context.Background()
	server, err := upstashtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := server.Client()
	defer client.Close()

	blocked, err := bloom.New(client, "blocked", bloom.Config{Capacity: 10_000, FPRate: 0.0001})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := blocked.AddAll(ctx, []string{"203.0.113.7", "203.0.113.9"}); err != nil {
		log.Fatal(err)
	}
	near, err := bloom.NewMirror(blocked, bloom.MirrorConfig{MaxStale: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	server.ResetStats()
	for i := range 100 {
		address := fmt.Sprintf("203.0.113.%d", i)
		stop, err := near.Exists(ctx, address)
		if err != nil {
			log.Fatal(err)
		}
		if stop {
			fmt.Println(address, "is blocked")
		}
	}
	fmt.Println(near.Stats().Saved, "look-ups without a request, requests:", server.Stats().Requests)
	// Output:
	// 203.0.113.7 is blocked
	// 203.0.113.9 is blocked
	// 99 look-ups without a request, requests: 1
}

// Writers add all the time: each refresh brings the whole string. A ticker
// refreshes ahead of MaxStale, and no call waits for a refresh.
func ExampleMirror_Refresh() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	server, err := upstashtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := server.Client()
	defer client.Close()
	blocked, err := bloom.New(client, "blocked", bloom.Config{Capacity: 10_000, FPRate: 0.0001})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := blocked.Add(ctx, "203.0.113.7"); err != nil {
		log.Fatal(err)
	}
	const maxStale = time.Minute
	near, err := bloom.NewMirror(blocked, bloom.MirrorConfig{MaxStale: maxStale})
	if err != nil {
		log.Fatal(err)
	}
	if err := near.Refresh(ctx); err != nil { // before the first call
		log.Fatal(err)
	}
	var refreshing sync.WaitGroup
	refreshing.Go(func() {
		ahead := time.NewTicker(maxStale / 2)
		defer ahead.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ahead.C:
				_ = near.Refresh(ctx) // after an error the calls refresh by themselves
			}
		}
	})

	found, err := near.Exists(ctx, "203.0.113.7")
	fmt.Println(found, err)
	other, err := near.Exists(ctx, "203.0.113.8")
	fmt.Println(other, err)
	fmt.Println(near.Stats().Saved, "of 2 look-ups without a request")

	stop()
	refreshing.Wait()
	// Output:
	// true <nil>
	// false <nil>
	// 2 of 2 look-ups without a request
}

// A program reports how much its copy saves, and whether it is current.
func ExampleMirror_Stats() {
	ctx := context.Background()
	client, stop := database()
	defer stop()
	names, err := bloom.New(client, "names", bloom.Config{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	near, err := bloom.NewMirror(names, bloom.MirrorConfig{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(near.Add(ctx, "ann"))
	if err := near.Refresh(ctx); err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"ann", "ann", "zoe"} {
		if _, err := near.Exists(ctx, name); err != nil {
			log.Fatal(err)
		}
	}
	st := near.Stats()
	fmt.Println(st.Hits, "items from the copy,", st.Asked, "from the server")
	fmt.Println(st.Refreshes, "refresh,", st.Failures, "failed")
	fmt.Println("copied:", st.Copied, st.Age >= 0)
	fmt.Println(st.Bytes, "bytes,", st.SetBits, "bits set")
	// Output:
	// true <nil>
	// 2 items from the copy, 2 from the server
	// 1 refresh, 0 failed
	// copied: true true
	// 1384 bytes, 4 bits set
}
