package bloom_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// The alerts of the last 24 hours: one that comes again within a day is not sent,
// whichever process it comes to. A wrong "seen" hides 1 in 1,000.
func ExampleWindow() {
	client, stop := database()
	defer stop()
	alerts, err := bloom.NewWindow(client, "seen:alerts", bloom.WindowConfig{
		Capacity: 100_000, // alerts a day
		FPRate:   0.001,
		Span:     24 * time.Hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, id := range []string{"disk full", "host down", "disk full"} {
		isNew, err := alerts.Add(ctx, id)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id, isNew)
	}
	// Output:
	// disk full true
	// host down true
	// disk full false
}

// A test need not wait for a day: the clients of a test server follow its
// clock.
func ExampleWindow_inATest() {
	server, err := upstashtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	done, err := bloom.NewWindow(server.Client(), "done", bloom.WindowConfig{
		Capacity: 1000, FPRate: 1e-6, Span: 24 * time.Hour, ExpireIdle: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	_, err = done.Add(ctx, "evt_1")
	fmt.Println(err)
	server.FastForward(23 * time.Hour)
	fmt.Println(done.Exists(ctx, "evt_1"))
	server.FastForward(50 * time.Hour) // more than three spans after the Add
	fmt.Println(done.Exists(ctx, "evt_1"))
	// Output:
	// <nil>
	// true <nil>
	// false <nil>
}

// Two deliveries of a webhook at the same moment are both looked up before one of
// them is added. A lease lets one of them work: a key of its own, which expires
// if its holder dies. Take it first, and look afterwards: who had it before may
// be done by then. A new webhook takes four commands, a repetition three. The
// context must outlive a sender who hangs up: context.WithoutCancel, with a limit.
func ExampleWindow_lease() {
	client, stop := database()
	defer stop()
	done, err := bloom.NewWindow(client, "done", bloom.WindowConfig{
		Capacity: 100_000, FPRate: 1e-8, Span: 24 * time.Hour, ExpireIdle: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	handle := func(ctx context.Context, id string, work func() error) (said string, err error) {
		// Choose an expiry that is longer than the work ever takes.
		lease, err := client.Do(ctx, upstash.Cmd("SET", "lease:"+id, "", "NX", "EX", "60"))
		switch {
		case err != nil: // it may be taken: a later delivery finds it expired
			return "", err
		case lease.IsNil():
			return "in work: come again", nil // such as a 503 with Retry-After
		}
		seen, err := done.Exists(ctx, id)
		if err != nil {
			return "", err
		}
		if said = "a repetition"; !seen {
			if err := work(); err != nil {
				return "", err // tried again once the lease has expired
			}
			if _, err := done.Add(ctx, id); !bloom.InFilter(err) {
				return "", err
			}
			said = "worked on"
		}
		_, _ = client.Del(ctx, "lease:"+id) // the id is in the window; a lease that stays expires
		return said, nil
	}
	ctx := context.Background()
	fmt.Println(handle(ctx, "evt_1", func() error {
		fmt.Println(handle(ctx, "evt_1", nil)) // meanwhile another process gets it too
		return nil
	}))
	fmt.Println(handle(ctx, "evt_1", nil))
	// Output:
	// in work: come again <nil>
	// worked on <nil>
	// a repetition <nil>
}

// A day after its first 1,000 items a window has a second pane in use.
func ExampleWindow_Stats() {
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
	fmt.Println(stats.Span, stats.PaneSpan, stats.OverCapacity())
	fmt.Println("a pane:", stats.Geometry.Hashes, "bits an item")
	fmt.Println("the newest is the second:", stats.Parts[1].Newest)
	fmt.Printf("%.4f now, %.4f at capacity; seeded: %t\n", stats.LiveFPRate, stats.FPRate, stats.Seeded)

	// Without its Config.
	seen, err := bloom.Inspect(ctx, client, "seen")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(seen)
	fmt.Println("its items were counted:", seen.Counted())
	// Output:
	// window           finds an item for 24h, and forgets it within 3d15s
	// panes            3 of 24h5s, each 11,448 bits (1.4 KiB), k=6, blocked
	// next pane        [....................] 0.0%, about 0 items
	// newest pane      [#...................] 0.1%, about 2 items
	// pane             [########............] 40.8%, about 1,000 items
	// items            about 1,002; one renewed in two panes counts twice
	// false positives  1 in 204 now, 1 in 102 at capacity
	// stored           4,317 bytes, no expiry
	// 24h0m0s 24h0m5s false
	// a pane: 6 bits an item
	// the newest is the second: true
	// 0.0049 now, 0.0098 at capacity; seeded: false
	// window           finds an item for 24h, and forgets it within 3d15s
	// panes            3 of 24h5s, each 11,448 bits (1.4 KiB), k=6, blocked
	// cells set        4,682; the Stats of a handle count those of each part
	// stored           4,317 bytes, no expiry
	// its items were counted: false
}

// A backup of a window goes into a file, or here a buffer, and comes back to a key
// that holds nothing. Filters of the other types do the same.
func ExampleTakeBackup() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	w, err := bloom.NewWindow(client, "deliveries", bloom.WindowConfig{
		Capacity: 1000, FPRate: 0.001, Span: 24 * time.Hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := w.Add(ctx, "delivery-1"); err != nil {
		log.Fatal(err)
	}

	backup, err := bloom.TakeBackup(ctx, client, "deliveries")
	if err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := backup.WriteTo(&file); err != nil {
		log.Fatal(err)
	}
	if _, err := w.Delete(ctx); err != nil {
		log.Fatal(err)
	}

	saved, err := bloom.ReadBackup(&file)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := saved.Restore(ctx, client, "deliveries", 0); err != nil {
		log.Fatal(err)
	}
	found, err := w.Exists(ctx, "delivery-1")
	fmt.Println(saved.Stats().Kind, found, err)
	// Output: window true <nil>
}
