package upstashtest_test

import (
	"context"
	"crypto/tls"
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
	"github.com/upbloom/upbloom/upstash/httptransport"
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

func ExampleServer_Client() {
	s, err := upstashtest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	c := s.Client(upstash.WithRetry(0))
	defer c.Close()
	fmt.Println(c.BitField(context.Background(), upstash.NewBitField("k").Set("u8", 0, 65).Get("u8", 0)))
	v, err := s.Exec("GET", "k")
	fmt.Println(v, err)
	// Output:
	// [{0 true} {65 true}] <nil>
	// A <nil>
}

func ExampleServer_ReadOnlyClient() {
	s, _ := start()
	defer s.Close()
	c := s.ReadOnlyClient()
	defer c.Close()
	_, err := c.Do(context.Background(), upstash.Cmd("SET", "k", "v"))
	fmt.Println(err != nil, s.Stats().Requests)
	// Output: true 0
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

func ExampleEveryFault() {
	for _, f := range upstashtest.EveryFault()[:4] {
		fmt.Println(f, f.Executes())
	}
	// Output:
	// drop-before-exec false
	// drop-after-exec true
	// stall-before-exec false
	// stall-after-exec true
}

func ExampleServer_SetReplicaLag() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	other := s.Client() // has not seen the write
	defer other.Close()
	s.SetReplicaLag(1)
	ctx := context.Background()
	_, _ = c.Do(ctx, upstash.Cmd("SET", "k", "new"))
	mine, _ := c.Do(ctx, upstash.Cmd("GET", "k"))
	theirs, _ := other.Do(ctx, upstash.Cmd("GET", "k"))
	text, _ := mine.Text()
	fmt.Println(text, theirs.IsNil())
	s.CatchUp()
	theirs, _ = other.Do(ctx, upstash.Cmd("GET", "k"))
	fmt.Println(theirs.IsNil())
	// Output:
	// new true
	// false
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

func ExampleWithMaxRecord() {
	s, c := start(upstashtest.WithMaxRecord(1000))
	defer s.Close()
	defer c.Close()
	_, err := c.BitField(context.Background(), upstash.NewBitField("k").Set("u1", 8000, 1))
	fmt.Println(err != nil)
	// Output: true
}

// Whatever is wrong with an answer, the client returns an error, and no value
// that the server did not send.
func ExampleServer_Inject_wrongAnswers() {
	s, _ := start()
	defer s.Close()
	c := s.Client(upstash.WithRetry(0), upstash.WithMaxResponse(1000))
	defer c.Close()
	for _, fault := range []upstashtest.Fault{
		upstashtest.ErrorObject("ERR no database"),
		upstashtest.NotJSON(upstashtest.AfterExec),
		upstashtest.WrongType(),
		upstashtest.ShortResult(),
		upstashtest.LongResult(),
		upstashtest.CutBody(5),
		upstashtest.HugeBody(10_000),
		upstashtest.Redirect("https://elsewhere.example.com"),
	} {
		s.Inject(fault)
		n, err := c.BitField(context.Background(), upstash.NewBitField("bits").Get("u1", 7))
		fmt.Println(fault, len(n), err != nil, errors.Is(err, upstash.ErrBadResponse))
	}
	// Output:
	// error-object 0 true false
	// not-json-after-exec 0 true true
	// wrong-type 0 true true
	// short-result 0 true true
	// long-result 0 true true
	// cut-body 0 true false
	// huge-body 0 true false
	// redirect 0 true false
}

// The answers of a batch are as many as its commands, or it is an error.
func ExampleServer_Inject_batches() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	for _, fault := range []upstashtest.Fault{upstashtest.ShortBatch(), upstashtest.LongBatch()} {
		s.Inject(fault)
		replies, err := c.Pipeline(context.Background(), upstash.Cmd("INCR", "a"), upstash.Cmd("INCR", "b"))
		fmt.Println(fault, len(replies), errors.Is(err, upstash.ErrBadResponse))
	}
	// Output:
	// short-batch 0 true
	// long-batch 0 true
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

// The cases of a test begin with an empty database.
func ExampleServer_FlushAll() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	for _, name := range []string{"first", "second"} {
		s.FlushAll()
		reply, err := c.Do(context.Background(), upstash.Cmd("INCR", "visits"))
		if err != nil {
			panic(err)
		}
		n, err := reply.Int64()
		fmt.Println(name, n, err)
	}
	// Output:
	// first 1 <nil>
	// second 1 <nil>
}

// A request that is too long is refused, and nothing of it ran.
func ExampleWithMaxRequest() {
	s, c := start(upstashtest.WithMaxRequest(1000))
	defer s.Close()
	defer c.Close()
	_, err := c.Do(context.Background(), upstash.Cmd("SET", "k", string(make([]byte, 1000))))
	fmt.Println(errors.Is(err, upstash.ErrRequestTooLarge), upstash.SafeToRetry(err))
	// Output: true true
}

// Transactions that write are lost on the way, and nothing else is.
func ExampleRequestInfo() {
	s, _ := start()
	defer s.Close()
	s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if r.Form == "multi-exec" && r.Writes {
			return upstashtest.Drop(upstashtest.BeforeExec)
		}
		return upstashtest.Fault{}
	})
	c := s.Client(upstash.WithRetry(0))
	defer c.Close()
	ctx := context.Background()
	_, err := c.MultiExec(ctx, upstash.Cmd("GET", "k"))
	fmt.Println("reads:", err)
	_, err = c.MultiExec(ctx, upstash.Cmd("INCR", "k"))
	fmt.Println("writes:", err != nil)
	// Output:
	// reads: <nil>
	// writes: true
}

// A script is billed, and so are the commands that it calls.
func ExampleStats() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	script := "redis.call('SET', KEYS[1], 1) return redis.call('GET', KEYS[1])"
	_, err := c.Do(context.Background(), upstash.Cmd("EVAL", script, "1", "k"))
	n := s.Stats()
	fmt.Println("the script called", n.Called, "commands:", err)
	fmt.Println(n)
	// Output:
	// the script called 2 commands: <nil>
	// {Requests:1 Commands:1 Called:2 Billed:3 BytesIn:82 BytesOut:14}
}

// A server like the live one: https, with a certificate the client trusts.
func ExampleWithTLS() {
	s, err := upstashtest.Start(upstashtest.WithTLS())
	if err != nil {
		panic(err)
	}
	defer s.Close()
	transport := httptransport.New(&http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: s.CertPool()},
	}})
	defer transport.Close()
	client, err := upstash.New(s.URL, s.Token, upstash.WithTransport(transport))
	if err != nil {
		panic(err)
	}
	reply, err := client.Do(context.Background(), upstash.Cmd("PING"))
	if err != nil {
		panic(err)
	}
	fmt.Println(reply.Text())
	// Output: PONG <nil>
}

// Programs near a region use that region's URL.
func ExampleServer_RegionURL() {
	s, c := start(upstashtest.WithRegions(upstashtest.Region{Name: "eu", Lag: 1}))
	defer s.Close()
	defer c.Close()
	if _, err := c.Do(context.Background(), upstash.Cmd("SET", "greeting", "hello")); err != nil {
		panic(err)
	}
	far, err := upstash.New(s.RegionURL("eu"), s.Token)
	if err != nil {
		panic(err)
	}
	defer far.Close()
	reply, err := far.Do(context.Background(), upstash.Cmd("GET", "greeting"))
	fmt.Println(reply.IsNil(), err) // the region is one write behind
	// Output: true <nil>
}

// Tokens that are the same in each run, and a shorter limit for each command.
func ExampleWithReadOnlyToken() {
	s, c := start(upstashtest.WithToken("full"), upstashtest.WithReadOnlyToken("reads"),
		upstashtest.WithTimeout(time.Second))
	defer s.Close()
	defer c.Close()
	fmt.Println(s.Token, s.ReadOnlyToken)
	// Output: full reads
}

// A client should not notice such faults of the connection.
func ExampleTwice() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	ctx := context.Background()
	for _, fault := range []upstashtest.Fault{
		upstashtest.Twice(0),
		upstashtest.Trickle(time.Microsecond),
	} {
		s.Inject(fault)
		reply, err := c.Do(ctx, upstash.Cmd("INCR", "visits"))
		if err != nil {
			panic(err)
		}
		n, err := reply.Int64()
		fmt.Println(fault, n, err)
	}
	// Output:
	// twice 1 <nil>
	// trickle 2 <nil>
}

func TestStallInABubble(t *testing.T) { synctest.Test(t, stallsInABubble) }
