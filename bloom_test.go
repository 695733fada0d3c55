// The story of the product, told through its two public packages only.
package upbloom_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Example is the README's program, with a server inside this process as the
// database that the environment names.
func Example() {
	server, err := upstashtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	os.Setenv("UPSTASH_REDIS_REST_URL", server.URL)
	os.Setenv("UPSTASH_REDIS_REST_TOKEN", server.Token)

	client, err := upstash.FromEnv() // UPSTASH_REDIS_REST_URL and _TOKEN
	if err != nil {
		log.Fatal(err)
	}
	seen, err := bloom.NewWindow(client, "seen:webhooks", bloom.WindowConfig{
		Capacity: 100_000, // different ids in 24 hours
		FPRate:   0.001, Span: 24 * time.Hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range []string{"evt_1", "evt_2", "evt_1"} {
		isNew, err := seen.Add(context.Background(), id) // one request, one command
		fmt.Println(id, isNew, err)
	}
	// Output:
	// evt_1 true <nil>
	// evt_2 true <nil>
	// evt_1 false <nil>
}

// TestREADME compares the README's program with Example, which was compiled.
func TestREADME(t *testing.T) {
	readme, source := read(t, "README.md"), read(t, "bloom_test.go")
	_, rest, ok := strings.Cut(readme, "```go\n")
	program, _, closed := strings.Cut(rest, "```\n")
	if !ok || !closed {
		t.Fatal("README.md has no Go program")
	}
	if n := strings.Count(program, "\n"); n > 30 {
		t.Errorf("the program has %d lines, above 30", n)
	}
	_, body, _ := strings.Cut(program, "func main() {\n")
	body = strings.TrimSuffix(strings.TrimSpace(body), "\n}")
	if len(body) < 100 || !strings.Contains(source, body) {
		t.Errorf("the program's main is not the body of Example:\n%s", body)
	}
}

// TestREADMEsTest runs the README's test of a handler that uses the first
// program's window: the answer of its Add is lost, and later it forgets.
func TestREADMEsTest(t *testing.T) {
	newHandler := func(client *upstash.Client) *bloom.Window {
		seen, err := bloom.NewWindow(client, "seen:webhooks", bloom.WindowConfig{
			Capacity: 100_000, FPRate: 0.001, Span: 24 * time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		return seen
	}
	server := upstashtest.NewServer(t)
	handler := newHandler(server.Client())
	server.InjectWrites(upstashtest.Drop(upstashtest.AfterExec))
	if _, err := handler.Add(t.Context(), "evt_1"); !errors.Is(err, bloom.ErrUncertain) {
		t.Errorf("the answer of the Add was lost: %v, want ErrUncertain", err)
	}
	if isNew, err := handler.Add(t.Context(), "evt_1"); isNew || err != nil {
		t.Errorf("Add again: %t, %v, want it seen", isNew, err)
	}
	server.FastForward(73 * time.Hour)
	if isNew, err := handler.Add(t.Context(), "evt_1"); !isNew || err != nil {
		t.Errorf("Add three days later: %t, %v, want it new", isNew, err)
	}

	readme, source := read(t, "README.md"), read(t, "bloom_test.go")
	_, snippet, _ := strings.Cut(readme, "```go\nserver := ")
	snippet, _, _ = strings.Cut("server := "+snippet, "```\n")
	lines := strings.Split(strings.TrimSpace(snippet), "\n")
	if len(lines) != 4 {
		t.Errorf("README.md has %d lines of a test, want 4", len(lines))
	}
	for _, line := range lines {
		code, _, _ := strings.Cut(line, " //")
		if code = strings.TrimSpace(code); !strings.Contains(source, "\n\t"+code+"\n") {
			t.Errorf("README.md's line is not in this test: %s", code)
		}
	}
}

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

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
