// The story of the product, told through its two public packages only.
package upbloom_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A webhook is delivered three times at once and handled once.
func TestWebhookHandledOnce(t *testing.T) {
	eachBackend(t, func(t *testing.T, server *upstashtest.Server) {
		seen := newFilter(t, server, "seen:webhooks", bloom.Config{Capacity: 1000, FPRate: 0.001})
		var handled atomic.Int32
		var deliveries sync.WaitGroup
		for range 3 {
			deliveries.Go(func() {
				isNew, err := seen.Add(t.Context(), "evt_1")
				if err != nil {
					t.Error(err)
				}
				if isNew {
					handled.Add(1)
				}
			})
		}
		deliveries.Wait()
		if handled.Load() != 1 {
			t.Errorf("handled %d times", handled.Load())
		}
	})
}

// A form asks whether a username is free. Only if the filter says "maybe taken"
// is the database asked.
func TestUsernameChecked(t *testing.T) {
	eachBackend(t, func(t *testing.T, server *upstashtest.Server) {
		taken := newFilter(t, server, "usernames", bloom.Config{Capacity: 1000, FPRate: 0.01})
		database := map[string]bool{}
		names := make([]string, 500)
		for i := range names {
			names[i] = fmt.Sprintf("user%d", i)
			database[names[i]] = true
		}
		if _, err := taken.AddAll(t.Context(), names); err != nil {
			t.Fatal(err)
		}
		lookups := 0
		for i := range 1000 {
			name := fmt.Sprintf("user%d", i)
			maybe, err := taken.Exists(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if maybe {
				lookups++
			} else if database[name] {
				t.Fatalf("%s is taken, and the filter said free", name)
			}
		}
		// 500 are taken. Of the others 1 in 100 would be a false positive if the
		// filter were full; it is half full.
		if lookups < 500 || lookups > 520 {
			t.Errorf("%d of 1,000 names needed the database", lookups)
		}
	})
}

// A filter with a TTL of an hour is gone after the hour. The next Add makes a
// new one, with a TTL of its own.
func TestFilterExpires(t *testing.T) {
	server := upstashtest.NewServer(t) // its clock can be moved
	seen := newFilter(t, server, "seen:hour", bloom.Config{Capacity: 1000, FPRate: 0.01, TTL: time.Hour})
	mustAdd(t, seen, "a", true)
	server.FastForward(59 * time.Minute)
	mustAdd(t, seen, "a", false)
	server.FastForward(2 * time.Minute)
	if _, err := seen.Exists(t.Context(), "a"); !errors.Is(err, bloom.ErrNotFound) {
		t.Errorf("after its TTL: %v, want ErrNotFound", err)
	}
	mustAdd(t, seen, "a", true)
	stats, err := seen.Stats(t.Context())
	if err != nil || stats.TTL <= 59*time.Minute {
		t.Errorf("the new filter's TTL is %v, %v", stats.TTL, err)
	}
}

// A program with another capacity gets an error and no wrong answers, and the
// programs with the old capacity go on.
func TestOtherCapacityIsRefused(t *testing.T) {
	eachBackend(t, func(t *testing.T, server *upstashtest.Server) {
		v1 := newFilter(t, server, "seen", bloom.Config{Capacity: 1000, FPRate: 0.01})
		mustAdd(t, v1, "a", true)
		v2 := newFilter(t, server, "seen", bloom.Config{Capacity: 2000, FPRate: 0.01})
		var mismatch *bloom.MismatchError
		if _, err := v2.Exists(t.Context(), "a"); !errors.As(err, &mismatch) {
			t.Fatalf("Exists: %v, want a MismatchError", err)
		}
		if mismatch.Got != v1.Geometry() || mismatch.Want != v2.Geometry() {
			t.Errorf("got %v, want %v", mismatch.Got, mismatch.Want)
		}
		if _, err := v2.Add(t.Context(), "b"); !errors.As(err, &mismatch) {
			t.Errorf("Add: %v, want a MismatchError", err)
		}
		if found, err := v1.Exists(t.Context(), "a"); err != nil || !found {
			t.Errorf("the old version: %v, %v", found, err)
		}
	})
}

// After an eviction nobody knows what was seen: that is an error, not a "no".
func TestEvictedFilterIsNotNo(t *testing.T) {
	eachBackend(t, func(t *testing.T, server *upstashtest.Server) {
		seen := newFilter(t, server, "seen", bloom.Config{Capacity: 1000, FPRate: 0.01})
		mustAdd(t, seen, "a", true)
		if _, err := server.Exec("DEL", "seen"); err != nil {
			t.Fatal(err)
		}
		if found, err := seen.Exists(t.Context(), "a"); found || !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("Exists: %v, %v, want ErrNotFound", found, err)
		}
		if found, err := seen.ExistsAll(t.Context(), []string{"a", "b"}); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("ExistsAll: %v, %v, want ErrNotFound", found, err)
		}
	})
}

// eachBackend runs a test on the embedded database and on a real Redis.
func eachBackend(t *testing.T, test func(*testing.T, *upstashtest.Server)) {
	t.Run("embedded", func(t *testing.T) { test(t, upstashtest.NewServer(t)) })
	t.Run("redis", func(t *testing.T) {
		test(t, upstashtest.NewServer(t, upstashtest.WithRedis(testenv.Redis(t))))
	})
}

func newFilter(t *testing.T, server *upstashtest.Server, key string, cfg bloom.Config) *bloom.Filter {
	t.Helper()
	f, err := bloom.New(server.Client(), key, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustAdd(t *testing.T, f *bloom.Filter, item string, want bool) {
	t.Helper()
	if added, err := f.Add(t.Context(), item); err != nil || added != want {
		t.Fatalf("Add(%q) = %v, %v, want %v", item, added, err, want)
	}
}
