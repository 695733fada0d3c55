package systemtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestMirrorOutlivesAnOutage is README's recipe of a blocklist. Redis is killed
// under load: no call fails, members are found, and once Redis is back the list is
// as fresh as ever.
func TestMirrorOutlivesAnOutage(t *testing.T) {
	redis := testenv.NewLastingRedis(t)
	server := upstashtest.NewServer(t, upstashtest.WithRedis(redis.Addr))
	client := server.Client(upstash.WithRetry(1))
	filter, err := bloom.New(client, "blocklist", bloom.Config{Capacity: 10_000, FPRate: 1e-9})
	if err != nil {
		t.Fatal(err)
	}
	addrs := make([]string, 1000)
	for i := range addrs {
		addrs[i] = fmt.Sprintf("203.0.%d.%d", i/250, i%250)
	}
	if _, err := filter.Load(t.Context(), slices.Values(addrs)); err != nil {
		t.Fatal(err)
	}
	blocklist, err := bloom.NewMirror(filter, bloom.MirrorConfig{
		MaxStale: 100 * time.Millisecond, StaleIfError: 10 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := blocklist.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	var calls, wrong, failed atomic.Int64
	for caller := range 8 {
		callers.Go(func() {
			for i := caller; ctx.Err() == nil; i++ {
				addr, want := addrs[i%len(addrs)], true
				if i%2 == 0 {
					addr, want = fmt.Sprintf("198.51.%d.%d", i/250%250, i%250), false
				}
				found, err := blocklist.Exists(context.Background(), addr)
				switch calls.Add(1); {
				case err != nil:
					failed.Add(1)
					t.Errorf("Exists in the outage: %v", err)
					return
				case found != want:
					wrong.Add(1)
				}
				time.Sleep(time.Millisecond) // a handler's other work
			}
		})
	}

	until := func(what string, done func() bool) {
		t.Helper()
		for deadline := time.Now().Add(testenv.Patience); !done(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("waited %v for %s", testenv.Patience, what)
			}
		}
	}
	until("the first calls", func() bool { return calls.Load() > 100 })
	killed := time.Now() // before Kill, which returns some time after the end of the process
	redis.Kill()
	until("the Mirror to notice", func() bool { return !blocklist.Stats().StaleSince.IsZero() })
	before := calls.Load()
	most := int64(1000)
	if testenv.Long() {
		most = 10_000
	}
	until("calls in the outage", func() bool { return calls.Load() > before+most })
	during := calls.Load() - before
	if since := blocklist.Stats().StaleSince; since.IsZero() || since.Before(killed) {
		t.Errorf("stale since %v, want a time after the kill at %v", since, killed)
	}
	redis.Restart(t)
	until("an answer", func() bool { return blocklist.Stats().StaleSince.IsZero() })
	added := "192.0.2.1"
	until("an Add", func() bool { _, err := filter.Add(t.Context(), added); return err == nil })
	until("the item that was added since", func() bool {
		found, err := blocklist.Exists(t.Context(), added)
		return found && err == nil
	})
	stop()
	callers.Wait()
	if failed.Load() > 0 || wrong.Load() > 0 {
		t.Errorf("%d calls, %d while Redis was down: %d failed, %d answered wrong",
			calls.Load(), during, failed.Load(), wrong.Load())
	}
	t.Logf("%d calls, %d while Redis was down for %v; %v", calls.Load(), during,
		time.Since(killed).Round(time.Millisecond), blocklist.Stats())
}
