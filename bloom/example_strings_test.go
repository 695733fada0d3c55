package bloom_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func ExampleCuckooStats_String() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	f, err := bloom.NewCuckoo(client, "names", bloom.CuckooConfig{Capacity: 5000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := f.AddAll(ctx, numbered("name", 5000)); err != nil {
		log.Fatal(err)
	}
	stats, err := f.Stats(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats)
	fmt.Println(stats.Geometry.Hashes, "slots a bucket")
	// Output:
	// cuckoo           56,657 bits (6.9 KiB), k=5, cuckoo
	// fill             [###################.] 93.5%
	// items            5,000 of 5,000
	// false positives  1 in 110 now, 1 in 110 at capacity
	// stored           7,107 bytes, no expiry
	// 5 slots a bucket
}

// A day after its first 1,000 items a window has a second pane in use.
func ExampleWindowStats_String() {
	server, err := upstashtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	const pane = 24*time.Hour + 5*time.Second
	server.FastForward(pane*3/2 - time.Duration(time.Now().UnixNano())%pane) // to the middle of one
	client := server.Client()
	ctx := context.Background()
	w, err := bloom.NewWindow(client, "seen", bloom.WindowConfig{
		Capacity: 1000, FPRate: 0.01, Span: 24 * time.Hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := w.Create(ctx); err != nil {
		log.Fatal(err)
	}
	items := numbered("item", 1002)
	if _, err := w.AddAll(ctx, items[:1000]); err != nil {
		log.Fatal(err)
	}
	server.FastForward(pane)
	if _, err := w.AddAll(ctx, items[1000:]); err != nil {
		log.Fatal(err)
	}
	stats, err := w.Stats(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats)

	// Without its Config.
	seen, err := bloom.Inspect(ctx, client, "seen")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(seen)
	// Output:
	// window           finds an item for 24h, and forgets it within 3d15s
	// panes            3 of 24h5s, the next to be filled first, each 11,448 bits (1.4 KiB), k=6, blocked
	// pane             [....................] 0.0%, about 0 items
	// pane             [#...................] 0.1%, about 2 items
	// pane             [########............] 40.8%, about 1,000 items
	// false positives  1 in 204 now, 1 in 102 at capacity
	// stored           4,317 bytes, no expiry
	// window           3 panes, each 11,448 bits (1.4 KiB), k=6, blocked
	// cells set        4,682; Window.Stats counts those of each pane
	// stored           4,317 bytes, no expiry
}
