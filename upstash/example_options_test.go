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
func ExampleRetryAfter() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()

	server.Inject(upstashtest.RateLimit(time.Hour))
	_, err := client.Do(context.Background(), upstash.Cmd("INCR", "orders"))
	fmt.Println(upstash.RetryAfter(err), upstash.SafeToRetry(err))
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
