package upstash_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// local starts a server in this process: the examples need no account.
func local() *upstashtest.Server {
	server, err := upstashtest.Start()
	if err != nil {
		panic(err)
	}
	return server
}

func ExampleNew() {
	server := local()
	defer server.Close()

	client, err := upstash.New(server.URL, server.Token)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	reply, err := client.Do(context.Background(), upstash.Cmd("PING"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Text())

	_, err = upstash.New("redis://x.upstash.io:6379", server.Token)
	fmt.Println(errors.Is(err, upstash.ErrArgument))
	// Output:
	// PONG <nil>
	// true
}

// Example is the program of the package's doc.
func Example() {
	server := local()
	defer server.Close()
	os.Setenv("UPSTASH_REDIS_REST_URL", server.URL)
	os.Setenv("UPSTASH_REDIS_REST_TOKEN", server.Token)
	defer os.Unsetenv("UPSTASH_REDIS_REST_URL")
	defer os.Unsetenv("UPSTASH_REDIS_REST_TOKEN")

	greet := func(ctx context.Context) error {
		client, err := upstash.FromEnv() // UPSTASH_REDIS_REST_URL and _TOKEN
		if err != nil {
			return err
		}
		defer client.Close()
		reply, err := client.Do(ctx, upstash.Cmd("SET", "greeting", "hello", "EX", "100"))
		if err != nil {
			return err
		}
		fmt.Println(reply.Text())
		return nil
	}
	fmt.Println(greet(context.Background()))
	// Output:
	// OK <nil>
	// <nil>
}

func ExampleFromEnv() {
	server := local()
	defer server.Close()
	os.Setenv("UPSTASH_REDIS_REST_URL", server.URL)
	os.Setenv("UPSTASH_REDIS_REST_TOKEN", server.Token)
	defer os.Unsetenv("UPSTASH_REDIS_REST_URL")
	defer os.Unsetenv("UPSTASH_REDIS_REST_TOKEN")

	client, err := upstash.FromEnv(upstash.WithRetry(2))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	_, err = client.Do(context.Background(), upstash.Cmd("SET", "greeting", "hello"))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleClient_Do() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()
	ctx := context.Background()

	if _, err := client.Do(ctx, upstash.Cmd("SET", "greeting", "hello", "EX", "100")); err != nil {
		fmt.Println(err)
		return
	}
	reply, err := client.Do(ctx, upstash.Cmd("GET", "greeting"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Text())

	_, err = client.Do(ctx, upstash.Cmd("INCR", "greeting"))
	fmt.Println(err)
	// Output:
	// hello <nil>
	// upstash: INCR: ERR value is not an integer or out of range (HTTP status 400)
}

// The client does not know this command. After an attempt of unknown outcome it
// repeats the command only if the program allows it.
func ExampleCmd() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()

	touch := upstash.Cmd("TOUCH", "a", "b").Repeatable(true)
	fmt.Println(touch)
	reply, err := client.Do(context.Background(), touch)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Int64())
	// Output:
	// upstash.Command(TOUCH)
	// 0 <nil>
}

func ExampleWithReadOnly() {
	server := local()
	defer server.Close()

	client, err := upstash.New(server.URL, server.ReadOnlyToken, upstash.WithReadOnly())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ctx := context.Background()
	fmt.Println(client.BitField(ctx, upstash.NewBitField("flags").Get("u8", 0)))
	_, err = client.Del(ctx, "flags")
	fmt.Println(err)
	fmt.Println("requests:", server.Stats().Requests)
	// Output:
	// [{0 true}] <nil>
	// upstash: DEL: the client is read-only: make one without WithReadOnly and with a full token; the command did not run
	// requests: 1
}

// Each attempt becomes a line of the log, with no key, item or token in it.
func ExampleWithObserver() {
	server := local()
	defer server.Close()
	server.Inject(upstashtest.RateLimit(0))

	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr { // keeps this example short
			switch a.Key {
			case slog.TimeKey, "took", "out", "in", "err":
				return slog.Attr{}
			}
			return a
		},
	}))
	client := server.Client(
		upstash.WithBackoff(0, time.Millisecond),
		upstash.WithObserver(func(ctx context.Context, e upstash.Event) {
			level := slog.LevelInfo
			if e.Err != nil {
				level = slog.LevelWarn
			}
			logger.LogAttrs(ctx, level, "redis", slog.Any("e", e))
		}))
	defer client.Close()
	ctx := upstash.WithLabel(context.Background(), "count a visit")
	if _, err := client.Do(ctx, upstash.Cmd("INCR", "secret")); err != nil {
		fmt.Println(err)
	}
	// Output:
	// level=WARN msg=redis e.label="count a visit" e.command=INCR e.attempt=1 e.status=429 e.ran=0
	// level=INFO msg=redis e.label="count a visit" e.command=INCR e.attempt=2 e.status=200 e.ran=1
}

// If a command certainly did not run, it can be sent again later. If it may
// have run, the program must first find out whether it did.
func ExampleSafeToRetry() {
	server := local()
	defer server.Close()
	client := server.Client(upstash.WithRetry(0))
	defer client.Close()
	ctx := context.Background()

	for _, fault := range []upstashtest.Fault{
		upstashtest.RateLimit(0),
		upstashtest.Drop(upstashtest.AfterExec),
	} {
		server.Inject(fault)
		_, err := client.Do(ctx, upstash.Cmd("INCR", "orders"))
		fmt.Println(err != nil, upstash.SafeToRetry(err))
	}
	// Output:
	// true true
	// true false
}

// The client does not wait for more than 30 s. The caller can plan with the
// server's Retry-After.
func ExampleError_retryAfter() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()

	server.Inject(upstashtest.RateLimit(time.Hour))
	_, err := client.Do(context.Background(), upstash.Cmd("INCR", "orders"))
	var refused *upstash.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.RetryAfter, upstash.SafeToRetry(err))
	}
	// Output: 1h0m0s true
}

// offline is a Transport that sends nothing.
type offline struct{}

func (offline) RoundTrip(context.Context, *upstash.Request, *upstash.Response) error {
	return upstash.NotSent(errors.New("the network is switched off"))
}

// A Transport is a single method.
func ExampleWithTransport() {
	client, err := upstash.New("https://db.example.test", "token",
		upstash.WithTransport(offline{}), upstash.WithRetry(0))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.BitCount(context.Background(), "filter")
	fmt.Println(err)
	// Output: upstash: BITCOUNT: the network is switched off; the command did not run
}

// What to do about an error of the server depends on its kind.
func ExampleError() {
	server := local()
	defer server.Close()
	advise := func(err error) string {
		switch {
		case errors.Is(err, upstash.ErrUnauthorized):
			return "check the token"
		case errors.Is(err, upstash.ErrQuota):
			return "wait for the next period"
		case errors.Is(err, upstash.ErrRateLimited):
			return "send fewer at a time"
		case errors.Is(err, upstash.ErrClosed):
			return "make a new client"
		}
		return "look at it"
	}
	ctx := context.Background()

	stranger, err := upstash.New(server.URL, "another-token")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = stranger.Do(ctx, upstash.Cmd("GET", "a"))
	fmt.Println(advise(err))
	_ = stranger.Close()
	_, err = stranger.Do(ctx, upstash.Cmd("GET", "a"))
	fmt.Println(advise(err))

	client := server.Client(upstash.WithRetry(0))
	defer client.Close()
	server.Inject(upstashtest.RateLimit(0))
	_, err = client.Do(ctx, upstash.Cmd("GET", "a"))
	fmt.Println(advise(err))
	server.Inject(upstashtest.CommandError("ERR max requests limit exceeded. Limit: 500000, Usage: 500007"))
	_, err = client.Do(ctx, upstash.Cmd("GET", "a"))
	fmt.Println(advise(err))
	// Output:
	// check the token
	// make a new client
	// send fewer at a time
	// wait for the next period
}

// A call failed without an error reply: here a proxy answers with text.
func ExampleCallError() {
	server := local()
	defer server.Close()
	client := server.Client(upstash.WithRetry(1), upstash.WithBackoff(0, time.Microsecond))
	defer client.Close()
	page := upstashtest.NotJSON(upstashtest.BeforeExec)
	server.Inject(page, page)

	_, err := client.Do(context.Background(), upstash.Cmd("GET", "a"))
	var failed *upstash.CallError
	if errors.As(err, &failed) {
		fmt.Println(failed.Command, "tried", failed.Attempts, "times, HTTP status", failed.StatusCode)
		fmt.Println(errors.Is(failed.Err, upstash.ErrBadResponse))
	}
	// Output:
	// GET tried 2 times, HTTP status 200
	// true
}

// A missing key is a null, and no error until it is read as a value.
func ExampleReply_IsNil() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()

	cmd := upstash.Cmd("get", "missing")
	reply, err := client.Do(context.Background(), cmd)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = reply.Text()
	fmt.Println(cmd.Name(), reply.IsNil(), errors.Is(err, upstash.ErrNil))
	// Output: GET true true
}

// Small counters in one string: Sat lets a counter stay at its highest value.
func ExampleBitField_IncrBy() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()

	n, err := client.BitField(context.Background(), upstash.NewBitField("counters").
		Set("u4", 12, 14).Overflow(upstash.Sat).
		IncrBy("u4", 12, 1).IncrBy("u4", 12, 1).
		Get("u1", 1<<32-1)) // the last bit of 512 MiB
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range n {
		fmt.Print(v.Int64, " ")
	}
	// Output: 0 15 15 0
}

// A command that is longer than the plan allows is not sent.
func ExampleWithMaxRequest() {
	server := local()
	defer server.Close()
	client := server.Client(upstash.WithMaxRequest(1024))
	defer client.Close()
	_, err := client.Do(context.Background(), upstash.Cmd("SET", "a", strings.Repeat("x", 1024)))
	fmt.Println(errors.Is(err, upstash.ErrRequestTooLarge), upstash.SafeToRetry(err), server.Stats().Requests)
	// Output: true true 0
}

// A server on a machine of one's own, in a trusted network.
func ExampleWithInsecureHTTP() {
	_, err := upstash.New("http://redis.internal:8079", "token")
	fmt.Println(errors.Is(err, upstash.ErrArgument))
	client, err := upstash.New("http://redis.internal:8079", "token", upstash.WithInsecureHTTP())
	fmt.Println(client != nil, err)
	// Output:
	// true
	// true <nil>
}
