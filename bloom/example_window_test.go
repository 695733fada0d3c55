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

func ExampleNewWindow() {
	client, stop := database()
	defer stop()
	// A token lives for an hour, and so does its revocation.
	revoked, err := bloom.NewWindow(client, "revoked", bloom.WindowConfig{
		Capacity: 10_000, FPRate: 1e-6, Span: time.Hour, MustExist: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	_, err = revoked.Add(ctx, "jti-1")
	fmt.Println(err != nil) // no window: it was not created, or was evicted

	created, err := revoked.Create(ctx)
	fmt.Println(created, err)
	_, err = revoked.Add(ctx, "jti-1")
	fmt.Println(err)
	isRevoked, err := revoked.Exists(ctx, "jti-1")
	fmt.Println(isRevoked, err)
	// Output:
	// true
	// true <nil>
	// <nil>
	// true <nil>
}

func ExampleOpenWindow() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	made, err := bloom.NewWindow(client, "watched", bloom.WindowConfig{
		Capacity: 1000, FPRate: 0.01, Span: 90 * 24 * time.Hour, Panes: 3,
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := made.AddAll(ctx, []string{"v1", "v2"}); err != nil {
		log.Fatal(err)
	}
	watched, err := bloom.OpenWindow(ctx, client, "watched")
	if err != nil {
		log.Fatal(err)
	}
	found, err := watched.ExistsAll(ctx, []string{"v1", "v2", "v3"})
	fmt.Println(found, err)
	fmt.Println(watched)
	// Output:
	// [true true false] <nil>
	// bloom.Window(5 panes of 2592002s, each 13,303 bits (1.6 KiB), k=6, blocked)
}

func ExampleWindow_Stats() {
	client, stop := database()
	defer stop()
	ctx := context.Background()
	w, err := bloom.NewWindow(client, "seen", bloom.WindowConfig{
		Capacity: 1000, FPRate: 0.01, Span: 24 * time.Hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	items := make([]string, 500)
	for i := range items {
		items[i] = fmt.Sprint("item-", i)
	}
	if _, err := w.AddAll(ctx, items); err != nil {
		log.Fatal(err)
	}
	stats, err := w.Stats(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats.Span, stats.PaneSpan, stats.OverCapacity())
	fmt.Println("a pane:", stats.Geometry.Hashes, "bits an item")
	fmt.Println(len(stats.Panes), "panes; the newest is the second:", stats.Panes[1].Newest)
	fmt.Println("hundreds of items:", (stats.Items+50)/100)
	fmt.Printf("%.4f now, %.4f at capacity; seeded: %t\n", stats.LiveFPRate, stats.FPRate, stats.Seeded)
	// Output:
	// 24h0m0s 24h0m5s false
	// a pane: 6 bits an item
	// 3 panes; the newest is the second: true
	// hundreds of items: 5
	// 0.0002 now, 0.0098 at capacity; seeded: false
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
