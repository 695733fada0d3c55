//go:build wasip1

// Command reactor is a WebAssembly module for wasip1. It tells its host whether
// an event was seen before. The parent folder has a host; any other runtime
// with the imported function will do.
package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// The results of seen. The export message has the text of a failure.
const (
	isNew = iota
	isSeen
	isUncertain // it is in the filter now; nobody knows whether it was before
	failed      = -1
)

// maxAnswer is the length of the longest answer in bytes. It is limited for the
// same reason as maxID. The answer to an Add has less than a thousand bytes.
const maxAnswer = 1 << 20

var events = sync.OnceValues(func() (*bloom.Filter, error) {
	client, err := upstash.FromEnv(upstash.WithTransport(&transport{}),
		upstash.WithMaxResponse(maxAnswer))
	if err != nil {
		return nil, err
	}
	return bloom.New(client, "reactor:events", bloom.Config{
		Capacity: 100_000, FPRate: 0.001, TTL: 7 * 24 * time.Hour,
		// Whoever sends events chooses their ids: in yours, set a secret Seed.
	})
})

var errNoID = errors.New("the id is empty: give each event its own")

func seen(ctx context.Context, id string) (int32, error) {
	if id == "" {
		return failed, errNoID
	}
	filter, err := events()
	if err != nil {
		return failed, err
	}
	added, err := filter.Add(ctx, id)
	switch {
	case errors.Is(err, bloom.ErrUncertain):
		return isUncertain, nil
	case !bloom.InFilter(err): // without its TTL it is in, too
		return failed, err
	case added:
		return isNew, nil
	default:
		return isSeen, nil
	}
}

func main() {} // a reactor: the host calls the exports
