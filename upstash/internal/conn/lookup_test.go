//go:build !wasm

package conn

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slowNames is a dialer whose lookups take this long, whatever their context
// says. Go's resolver goes on after the end of its context, too.
func slowNames(took time.Duration, result error) (d *Dialer, begun, open *atomic.Int64) {
	begun, open = new(atomic.Int64), new(atomic.Int64)
	d = NewDialer("db.test", "443", false)
	d.Lookup = func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
		begun.Add(1)
		open.Add(1)
		done := make(chan struct{})
		go func() {
			time.Sleep(took)
			open.Add(-1)
			close(done)
		}()
		select {
		case <-done:
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, result
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	d.Open = func(context.Context, string, string) (net.Conn, error) { return nil, errRefused }
	return d, begun, open
}

// TestLookupsInAnOutage: calls end with their contexts while no lookup returns,
// and hardly any lookup is left behind.
func TestLookupsInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, begun, open := slowNames(10*time.Second, errRefused)
		start := time.Now()
		for range 1000 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
			if _, err := d.Dial(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v, want the end of the context", err)
			}
			cancel()
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("1000 dials of 2 ms took %v, want 2s", took)
		}
		if n := begun.Load(); n > 3 || open.Load() > 3 {
			t.Errorf("%d lookups began and %d are under way, want one for each second", n, open.Load())
		}
		time.Sleep(10 * time.Second) // the bubble ends with its last goroutine
		if n := open.Load(); n != 0 {
			t.Errorf("%d lookups are under way, want none", n)
		}
	})
}

// TestLookupsAreShared by the dials that wait at one time, with their result. A
// later dial looks again.
func TestLookupsAreShared(t *testing.T) {
	failed := &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	for _, result := range []error{nil, failed} {
		want := errRefused // by the address, if the lookup finds one
		if result != nil {
			want = failed
		}
		synctest.Test(t, func(t *testing.T) {
			d, begun, _ := slowNames(100*time.Millisecond, result)
			for round := range 3 {
				var group sync.WaitGroup
				for range 50 {
					group.Go(func() {
						if _, err := d.Dial(t.Context()); !errors.Is(err, want) {
							t.Errorf("got %v, want %v", err, want)
						}
					})
				}
				group.Wait()
				if n := begun.Load(); n != int64(round+1) {
					t.Errorf("%d lookups after round %d, want one in each", n, round+1)
				}
			}
		})
	}
}

// TestALookupFromBeforeAFreeze: its packets are lost, though little time has
// passed by the monotonic clock. A dial after the freeze looks by itself.
func TestALookupFromBeforeAFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, begun, _ := slowNames(100*time.Millisecond, nil)
		go func() { _, _ = d.Dial(t.Context()) }()
		synctest.Wait()
		d.lookups.newest.began = d.lookups.newest.began.Round(0).Add(-time.Minute)
		if _, err := d.Dial(t.Context()); !errors.Is(err, errRefused) || begun.Load() != 2 {
			t.Errorf("got %v after %d lookups, want 2", err, begun.Load())
		}
	})
}
