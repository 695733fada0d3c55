//go:build wasip1

// Command reactor is a WebAssembly module for wasip1 that says to a host
// whether an event was seen before. The host is ../: any other runtime that
// offers the one imported function will do.
package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// What seen answers. A failure's text is at message.
const (
	isNew = iota
	isSeen
	isUncertain // it is in now; whether it was before is not known
	failed      = -1
)

// maxAnswer is the longest answer in bytes, for the reason of maxID: the answer
// to an Add has less than a thousand.
const maxAnswer = 1 << 20

var events = sync.OnceValues(func() (*bloom.Filter, error) {
	client, err := upstash.FromEnv(upstash.WithTransport(&transport{}),
		upstash.WithMaxResponse(maxAnswer))
	if err != nil {
		return nil, err
	}
	return bloom.New(client, "reactor:events", bloom.Config{
		Capacity: 100_000, FPRate: 0.001, TTL: 7 * 24 * time.Hour,
	})
})

func seen(ctx context.Context, id string) (int32, error) {
	filter, err := events()
	if err != nil {
		return failed, err
	}
	added, err := filter.Add(ctx, id)
	switch {
	case errors.Is(err, bloom.ErrUncertain):
		return isUncertain, nil
	case err != nil:
		return failed, err
	case added:
		return isNew, nil
	default:
		return isSeen, nil
	}
}

func main() {} // a reactor: the host calls the exports
