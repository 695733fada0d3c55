package main

import (
	"context"
	"fmt"
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

// countBilled counts the commands Redis runs for an Add and an Exists, with
// those called by scripts.
func countBilled(a *arena, _ options, r *report) error {
	entrants, err := a.rest(a.url)
	if err != nil {
		return err
	}
	resp, err := a.resp()
	if err != nil {
		return err
	}
	c, err := a.client(a.url)
	if err != nil {
		return err
	}
	types, err := a.typed(c, capacity)
	if err != nil {
		return err
	}
	var ourAdd float64
	r.printf("**Commands that Redis runs for one call, those of a script counted too**\n\n" +
		"| | Add | Exists, found |\n|---|---|---|\n")
	for _, e := range append(append(entrants, resp...), types[1:]...) {
		if err := check(e.set, checked/2); err != nil {
			return err
		}
		counted, err := a.billedBy(e)
		if err != nil {
			return err
		}
		switch e.name {
		case filterName:
			ourAdd = counted[0]
			r.atMost("commands billed for an Add", 1, exactly(ourAdd))
		case zeroName:
			r.facts = append(r.facts, fmt.Sprintf("An `Add` is %.3g billed command; with go-zero's filter it is %.3g.",
				ourAdd, counted[0]))
			r.atLeast("commands billed for an Add of go-zero's script", 15, exactly(counted[0]))
		case scriptName:
			r.atLeast("commands billed for an Add by a script of SETBITs", 9, exactly(counted[0]))
		}
		r.printf("| %s | %.3g | %.3g |\n", e.name, counted[0], counted[1])
	}
	r.printf("\n")
	return nil
}

// billedBy returns how many commands Redis runs for one Add and one Exists.
func (a *arena) billedBy(e entrant) (counted [2]float64, err error) {
	const calls = 100
	for i, do := range []func(items []string) error{
		func(items []string) error { return e.set.add(items) },
		func(items []string) error { _, err := count(e.set, items, true); return err },
	} {
		before, err := a.called()
		if err != nil {
			return counted, err
		}
		for n := range uint64(calls) {
			if err := do(window(members, n, 1)); err != nil {
				return counted, err
			}
		}
		after, err := a.called()
		if err != nil {
			return counted, err
		}
		counted[i] = float64(after-before) / calls
	}
	return counted, nil
}
