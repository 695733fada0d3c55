//go:build js && wasm

// Command worker is the inside of a Cloudflare Worker that tells whether an
// event was seen before. worker.mjs starts an instance of it for each request.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall/js"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// The filter takes 1.8 MB. Raise Capacity before the first event, not after:
// a filter of another size is another filter.
var events = bloom.Config{Capacity: 1_000_000, FPRate: 0.001}

// deadline covers all attempts, so that whoever sent the event hears from us
// before giving up.
const deadline = 5 * time.Second

type answer struct {
	ID    string `json:"id,omitempty"`
	New   bool   `json:"new"`
	Error string `json:"error,omitempty"`
}

func main() {
	call := js.Global().Get("call")
	status, a := handle(call.Get("id").String(), call.Get("body").String())
	text, _ := json.Marshal(a) // of strings and a bool: it cannot fail
	call.Set("status", status)
	call.Set("answer", string(text))
}

// handle answers for the id of the header, or else for that of a JSON body.
func handle(id, body string) (status int, a answer) {
	if id == "" {
		var event struct{ ID string }
		_ = json.Unmarshal([]byte(body), &event) // without an id it is refused anyway
		id = event.ID
	}
	if id == "" {
		return 400, answer{Error: `send an Idempotency-Key, or a JSON body with an "id"`}
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	isNew, err := add(ctx, id)
	switch {
	case err == nil:
		return 200, answer{ID: id, New: isNew}
	case errors.Is(err, bloom.ErrUncertain):
		return 200, answer{ID: id, New: true} // rather handled twice than never
	}
	fmt.Fprintln(os.Stderr, err) // the log has the details, the sender does not
	if errors.Is(err, context.DeadlineExceeded) {
		return 504, answer{ID: id, Error: "the database did not answer in time"}
	}
	return 503, answer{ID: id, Error: "the database cannot be used"}
}

func add(ctx context.Context, id string) (isNew bool, err error) {
	client, err := upstash.FromEnv()
	if err != nil {
		return false, err
	}
	filter, err := bloom.New(client, "events", events)
	if err != nil {
		return false, err
	}
	return filter.Add(ctx, id)
}
