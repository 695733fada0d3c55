//go:build wasip1

// Command component is a wasi:http 0.2 component written in standard Go. The
// Event-Id header of a request names an event. The component answers whether
// the event is "new" or was "seen" before.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// budget is how long one request may take, retries included.
const budget = 5 * time.Second

var events = sync.OnceValues(func() (*bloom.Filter, error) {
	client, err := upstash.FromEnv(upstash.WithTransport(transport{}))
	if err != nil {
		return nil, err
	}
	return bloom.New(client, "component:events", bloom.Config{
		Capacity: 100_000, FPRate: 0.001, TTL: 7 * 24 * time.Hour,
		// Whoever sends events chooses their ids: in yours, set a secret Seed.
	})
})

func handle(r incoming) (status int, text string) {
	id := r.header("Event-Id")
	if id == "" {
		return 400, "send an Event-Id header\n"
	}
	filter, err := events()
	if err != nil {
		fmt.Fprintln(os.Stderr, err) // only the log has the details
		return 500, "the database is not configured\n"
	}
	ctx, cancel := context.WithTimeout(context.Background(), budget)
	defer cancel()
	added, err := filter.Add(ctx, id)
	switch {
	case errors.Is(err, bloom.ErrUncertain):
		return 200, "uncertain\n" // it is in now; nobody knows whether it was before
	case !bloom.InFilter(err): // without its TTL it is in, too
		fmt.Fprintln(os.Stderr, err)
		return 503, "the database cannot be used\n"
	case added:
		return 200, "new\n"
	default:
		return 200, "seen\n"
	}
}

func main() {} // a reactor: the host calls serve
