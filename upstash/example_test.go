package upstash_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
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
