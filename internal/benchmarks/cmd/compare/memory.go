package main

import (
	"context"
	"math"
	"runtime"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

// weigh prints the memory of a handle and of a call. The server answers from
// memory, so the sync token stays the same. A new token is one more allocation.
func (r *report) weigh(a *arena) error {
	url, err := startRole(a.ctx, "stub", a.url)
	if err != nil {
		return err
	}
	c, err := a.client(url)
	if err != nil {
		return err
	}
	const handles, each = 10_000, 2_000
	kept := make([]*bloom.Filter, handles)
	_, bytes := allocated(func() {
		for i := range kept {
			if kept[i], err = newFilter(c, "weighed"); err != nil {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	f := kept[0]
	if _, err := f.Add(a.ctx, members[0]); err != nil { // this dials
		return err
	}
	limited, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	calls := func(ctx context.Context, do func(context.Context, string) (bool, error)) (times, bytes float64) {
		times, bytes = allocated(func() {
			for i := range each {
				if err == nil {
					_, err = do(ctx, members[i])
				}
			}
		})
		return times / each, bytes / each
	}
	addTimes, addBytes := calls(context.Background(), f.Add)
	askTimes, askBytes := calls(context.Background(), f.Exists)
	addLimited, _ := calls(limited, f.Add)
	if err != nil {
		return err
	}
	runtime.KeepAlive(kept)
	r.atMost("allocations of an Add without a deadline", 1, exactly(math.Round(addTimes)))
	r.atMost("allocations of an Add with a deadline in the context", 3, exactly(math.Round(addLimited)))
	r.printf("**Memory**: a handle takes %.0f bytes; an Add allocates %.2f times, %.0f bytes; "+
		"an Exists %.2f times, %.0f bytes; an Add with a deadline in its context %.2f times.\n\n",
		bytes/handles, addTimes, addBytes, askTimes, askBytes, addLimited)
	return nil
}

// allocated returns how often and how much f allocates.
func allocated(f func()) (times, bytes float64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs - before.Mallocs), float64(after.TotalAlloc - before.TotalAlloc)
}
