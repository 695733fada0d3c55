package upstashtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/faketest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A test needs three lines, and no Close. It passes the t of go test; this
// Example borrows one.
func ExampleNewServer() {
	test := func(t testing.TB) {
		s := upstashtest.NewServer(t)
		c := s.Client()
		n, err := c.Do(context.Background(), upstash.Cmd("INCR", "visits"))
		if err != nil {
			t.Fatalf("counting: %v", err)
		}
		if got, _ := n.Int64(); got != 1 {
			t.Errorf("visits = %d, want 1", got)
		}
	}
	fmt.Println("failed:", faketest.Run(test).Failed())
	// Output: failed: false
}

// start begins the other examples.
func start(opts ...upstashtest.Option) (*upstashtest.Server, *upstash.Client) {
	s, err := upstashtest.Start(opts...)
	if err != nil {
		panic(err)
	}
	return s, s.Client()
}

func ExampleStart() {
	s, err := upstashtest.Start(upstashtest.WithToken("secret"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	req, _ := http.NewRequest(http.MethodPost, s.URL+"/set/greeting?EX=60", strings.NewReader("hello"))
	req.Header.Set("Authorization", "Bearer "+s.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body))
	// Output: 200 {"result":"OK"}
}

func ExampleServer_Stats() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	_, err := c.Pipeline(context.Background(), upstash.Cmd("INCR", "a"), upstash.Cmd("INCR", "b"))
	n := s.Stats()
	fmt.Println(err, n.Requests, n.Commands, n.Billed)
	s.ResetStats()
	fmt.Println(s.Stats() == upstashtest.Stats{})
	// Output:
	// <nil> 1 2 2
	// true
}

func ExampleServer_Inject() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	s.Inject(upstashtest.Drop(upstashtest.AfterExec))
	_, err := c.Do(context.Background(), upstash.Cmd("INCR", "n"))
	n, _ := s.Exec("GET", "n")
	fmt.Println(err != nil, n, s.Injected())
	// Output: true 1 map[drop-after-exec:1]
}

// The Add of a webhook handler runs, and its answer is lost. The client repeats
// it, and finds the bits set: by the first attempt, or by somebody else before.
func ExampleServer_InjectWrites() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	seen, err := bloom.NewWindow(c, "seen:webhooks", bloom.WindowConfig{
		Capacity: 100_000, FPRate: 0.001, Span: 24 * time.Hour,
	})
	if err != nil {
		panic(err)
	}
	s.InjectWrites(upstashtest.Drop(upstashtest.AfterExec))
	ctx := context.Background()
	_, err = seen.Add(ctx, "evt_1")
	fmt.Println(errors.Is(err, bloom.ErrUncertain), bloom.InFilter(err), s.Injected())
	isNew, err := seen.Add(ctx, "evt_1")
	fmt.Println(isNew, err)
	// Output:
	// true true map[drop-after-exec:1]
	// false <nil>
}

func ExampleServer_InjectFunc() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	s.InjectFunc(func(n int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if r.Commands[0] == "GET" && n == 1 {
			return upstashtest.InternalError(upstashtest.BeforeExec)
		}
		return upstashtest.Fault{}
	})
	r, err := c.Do(context.Background(), upstash.Cmd("GET", "k")) // a read is tried again
	fmt.Println(r.IsNil(), err, s.Stats().Requests)
	// Output: true <nil> 2
}

// A client in Sydney reads there, and its writes are billed twice.
func ExampleWithRegions() {
	s, c := start(upstashtest.WithRegions(upstashtest.Region{
		Name: "sydney", Latency: 200 * time.Millisecond, Lag: 1,
	}))
	defer s.Close()
	defer c.Close()
	far := s.RegionClient("sydney")
	defer far.Close()
	ctx := context.Background()
	_, _ = c.Do(ctx, upstash.Cmd("SET", "k", "new"))
	stale, _ := far.Do(ctx, upstash.Cmd("GET", "k"))
	fmt.Println(stale.IsNil(), s.Stats().Billed)
	// Output:
	// true 3
}

func ExampleServer_FastForward() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	_, _ = s.Exec("SET", "session", "x", "EX", "3600")
	s.FastForward(time.Hour)
	r, err := c.Do(context.Background(), upstash.Cmd("EXISTS", "session"))
	n, _ := r.Int64()
	fmt.Println(n, err)
	// Output: 0 <nil>
}

// Redis evicts a filter just before a look-up. With MustExist that is an error,
// and not a "no".
func ExampleEvict() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	ctx := context.Background()
	seen, err := bloom.New(c, "seen", bloom.Config{Capacity: 1000, FPRate: 0.01, MustExist: true})
	if err != nil {
		panic(err)
	}
	if _, err := seen.Create(ctx); err != nil {
		panic(err)
	}
	s.Inject(upstashtest.Evict())
	found, err := seen.Exists(ctx, "a")
	fmt.Println(found, errors.Is(err, bloom.ErrNotFound))
	// Output: false true
}

// A full database refuses a look-up, unless the client only reads.
func ExampleServer_SetFull() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	ctx := context.Background()
	cfg := bloom.Config{Capacity: 1000, FPRate: 0.01}
	seen, err := bloom.New(c, "seen", cfg)
	if err != nil {
		panic(err)
	}
	if _, err := seen.Add(ctx, "a"); err != nil {
		panic(err)
	}
	s.SetFull(true)
	_, err = seen.Exists(ctx, "a")
	fmt.Println(errors.Is(err, upstash.ErrOutOfMemory))

	reader := s.Client(upstash.WithReadOnly())
	defer reader.Close()
	seen, err = bloom.New(reader, "seen", cfg)
	if err != nil {
		panic(err)
	}
	fmt.Println(seen.Exists(ctx, "a"))
	// Output:
	// true
	// true <nil>
}

func TestStallInABubble(t *testing.T) { synctest.Test(t, stallsInABubble) }
