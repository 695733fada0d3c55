// Command lambda is an AWS Lambda function for an SQS queue. It skips the
// messages it has processed before. See README.md for what happens to a message
// when something fails, and for the build and deploy lines.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// windowConfig is sized for the messages of a day. A false positive is a message
// nobody processes, so FPRate is small: a full window loses 1 new message in 100
// million. That takes 16 MB.
var windowConfig = bloom.WindowConfig{
	Capacity: 1_000_000,
	FPRate:   1e-8,
	// Each id is found for a day after its own Add. Choose a Span that is longer
	// than the time in which duplicates come: a queue keeps a message for at most
	// 14 days.
	Span: 24 * time.Hour,
	// Before the first Add, and after days without one, there is no window. That
	// must not stop the queue. Every message is processed then.
	ExpireIdle: true,
}

// How long the function waits for the database. Lambda bills the wait, and SQS delivers
// the batch again: a look-up gives up after three attempts.
const (
	attemptTime = 2 * time.Second
	lookTime    = time.Second     // a look at the fill
	recordTime  = 3 * time.Second // a record of what was done
)

// main runs once a sandbox, in its init phase. The handler keeps the client and
// its connection from one invocation to the next.
func main() {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stdout, nil)))
	client, err := upstash.FromEnv(upstash.WithTimeout(attemptTime), upstash.WithRetry(2))
	if err != nil {
		fatal(err)
	}
	cfg := windowConfig
	// Only a test server is asked over plain HTTP.
	if cfg.Seed, err = secretSeed(strings.HasPrefix(os.Getenv("UPSTASH_REDIS_REST_URL"), "http://")); err != nil {
		fatal(err)
	}
	h, err := newHandler(client, "orders:done", cfg, ship)
	if err != nil {
		fatal(err)
	}
	if err := h.checkFill(context.Background()); err != nil {
		slog.Warn("the first invocation will look again", "err", err)
	}
	lambda.Start(h.handle)
}

// fatal ends the init phase, which Lambda reports with the log line.
func fatal(err error) {
	slog.Error("cannot start", "err", err)
	os.Exit(1)
}

// ship stands for the work on one message. Occasionally it gets a message
// again: after a crash between the work and the Add, or after a failed Add.
func ship(ctx context.Context, m events.SQSMessage) error {
	var order struct {
		Order   string `json:"order"`
		Address string `json:"address"`
	}
	if err := json.Unmarshal([]byte(m.Body), &order); err != nil {
		return fmt.Errorf("the body is not an order: %w", err)
	}
	if order.Address == "" {
		return errors.New("the order has no address yet")
	}
	slog.InfoContext(ctx, "shipped", "order", order.Order)
	return nil
}
