//go:build js && wasm

// Command worker is the inside of a Cloudflare Worker. It reports whether an
// event was seen before. worker.mjs starts an instance of it for each request.
// JavaScript reads and writes the JSON, because Go's JSON package would make
// the module a sixth larger.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall/js"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// The filter takes 2.0 MB. Raise Capacity before the first event, not after:
// a filter of another size is another filter.
const key = "worker:events"

var config = bloom.Config{Capacity: 1_000_000, FPRate: 0.001}

// deadline covers all attempts. It is short: the sender gets an answer before
// giving up.
const deadline = 5 * time.Second

func main() {
	call := js.Global().Get("call")
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	isNew, err := add(ctx, call.Get("id").String())
	if errors.Is(err, bloom.ErrUncertain) {
		isNew, err = true, nil // better handled twice than never
	}
	if err == nil {
		call.Set("new", isNew)
		call.Set("status", 200)
		return
	}
	fmt.Fprintln(os.Stderr, err) // the log has the details, the sender does not
	status, text := 503, "the database cannot be used"
	if errors.Is(err, context.DeadlineExceeded) {
		status, text = 504, "the database did not answer in time"
	}
	call.Set("error", text)
	call.Set("status", status)
}

func add(ctx context.Context, id string) (isNew bool, err error) {
	client, err := upstash.FromEnv()
	if err != nil {
		return false, err
	}
	cfg := config
	// Only a test server is asked over plain HTTP.
	if cfg.Seed, err = secretSeed(strings.HasPrefix(os.Getenv("UPSTASH_REDIS_REST_URL"), "http://")); err != nil {
		return false, err
	}
	filter, err := bloom.New(client, key, cfg)
	if err != nil {
		return false, err
	}
	return filter.Add(ctx, id)
}
