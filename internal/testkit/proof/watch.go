package proof

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/upbloom/upbloom/internal/lots"
	"github.com/upbloom/upbloom/upstash"
)

// A watched handle has a WarnFill and a Capacity of 1. Three items are too many
// for it: one more than the Capacity and four standard errors.
const (
	watchCapacity = 1
	watchMost     = 2
	// noLook is the lot of a write that must not look by chance: the
	// documentation promises at most one look in ten writes.
	noLook = 0.1
)

// Watched is what a call through a watched handle did about the fill.
type Watched struct {
	// Handle is the number of the handle, or 0 if the call has several.
	Handle int
	// Lots is how many lots the call drew, and Low how many of them call for a
	// look. Looks are those whose first attempt was sent, and Seen those that
	// brought an answer. Stats and StatsSeen are the same of the requests after
	// a look.
	Lots, Low, Looks, Seen, Stats, StatsSeen int
	// Lot is the last lot. New is how many items were new by the call's answers.
	// Both are set for a Scalable alone, which looks by Stats.
	Lot float64
	New int
	// Warnings are the warnings of the call.
	Warnings []Warning `json:",omitempty"`
	// Over is LoadResult.OverCapacity.
	Over bool
	// Ended is true if the call's context had ended.
	Ended bool
}

// Warning is the argument of a WarnFill. Layers are the set bits of each layer.
type Warning struct {
	Handle, Key, SetBits int
	Layers               []int `json:",omitempty"`
}

// String formats what the call did, for the history of a failed test.
func (w *Watched) String() string {
	if w.Lots+w.Looks+w.Stats+len(w.Warnings) == 0 {
		return ""
	}
	s := fmt.Sprintf(", %d of %d lots, %d of %d looks, %d of %d Stats",
		w.Low, w.Lots, w.Seen, w.Looks, w.StatsSeen, w.Stats)
	for _, a := range w.Warnings {
		s += fmt.Sprintf(", a warning of %d bits %v", a.SetBits, a.Layers)
	}
	return s
}

// watch records the looks and warnings of the calls of a session. A WarnFill
// does not say which call it belongs to. It comes at the instant of the answer
// to that call's Stats, at which nobody else does anything.
type watch struct {
	linger func() // lets time pass in a WarnFill
	calls  atomic.Int32

	mu    sync.Mutex
	last  *attempts   // whose Stats were answered last
	in    map[int]int // the WarnFills under way, by handle
	alarm string      // the first wrong thing
}

func newWatch(linger func()) *watch { return &watch{linger: linger, in: make(map[int]int)} }

// watchedHandles is the number of the last watched handle.
var watchedHandles atomic.Int64

// handle returns the number of a new handle, and the function for its WarnFill
// to call with the set bits and with what is wrong with its Stats.
func (w *watch) handle(key int) (number int, warn func(a Warning, wrong string)) {
	number = int(watchedHandles.Add(1))
	return number, func(a Warning, wrong string) {
		a.Handle, a.Key = number, key
		w.enter(a, wrong)
		if w.linger != nil {
			w.linger()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.in[number]--
		if w.calls.Load() == 0 {
			w.wrong("a WarnFill went on after its call")
		}
	}
}

func (w *watch) enter(a Warning, wrong string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.in[a.Handle]++; w.in[a.Handle] > 1 {
		w.wrong("a handle called WarnFill twice at once")
	}
	w.wrong(wrong)
	switch {
	case w.linger == nil:
	case w.last == nil:
		w.wrong("a WarnFill without Stats")
	default:
		w.last.watched.Warnings = append(w.last.watched.Warnings, a)
		w.last = nil
	}
}

// wrong keeps the first wrong thing, if it is one.
func (w *watch) wrong(what string) {
	if w.alarm == "" {
		w.alarm = what
	}
}

// run makes a call through the watched handle, or through several if it is 0,
// or through another if it is -1. Without linger, which a simulation has, it
// only looks for what is wrong with the warnings.
func (w *watch) run(ctx context.Context, a *attempts, handle int, do func(context.Context) Result) Result {
	w.calls.Add(1)
	defer w.calls.Add(-1)
	if w.linger == nil {
		r := do(ctx)
		r.Alarm = w.first()
		return r
	}
	a.watch, a.watched = w, &Watched{Handle: handle}
	if draw := lots.From(ctx); draw != nil {
		ctx = lots.With(ctx, func() float64 {
			a.watched.Lots++
			if a.watched.Lot = noLook * draw(); a.watched.Lot == 0 {
				a.watched.Low++
			}
			return a.watched.Lot
		})
	}
	r := do(ctx)
	a.watched.Over = r.Over
	r.Watched, r.Alarm = a.watched, w.first()
	return r
}

// ended takes note of the end of a call, with its context and its error.
func (w *watch) ended(ctx context.Context, a *attempts, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a.over, a.watched.Ended = true, ctx.Err() != nil
	for _, look := range a.lookErrs {
		if errors.Is(err, look) {
			w.wrong("a call returned the error of its look")
		}
	}
}

// first returns the first wrong thing.
func (w *watch) first() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.alarm
}

// isLook reports whether an event is of a look at the fill, or of the Stats that
// follow it.
func isLook(e upstash.Event) (count, stats bool) {
	stats = strings.HasSuffix(e.Label, ".Stats")
	return e.Command == "BITCOUNT" && !stats, stats
}

// saw takes note of an attempt of a look, or of the Stats after it.
func (w *watch) saw(a *attempts, e upstash.Event, stats bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.over {
		w.wrong("a call looked at the fill after its end")
	}
	tried, seen := &a.watched.Looks, &a.watched.Seen
	if stats {
		tried, seen = &a.watched.Stats, &a.watched.StatsSeen
	}
	if e.Attempt == 1 {
		*tried++
	}
	if errors.Is(e.Err, upstash.ErrAborted) {
		*tried-- // Stats then reads outside of a transaction
	}
	if e.Err != nil {
		a.lookErrs = append(a.lookErrs, e.Err)
	}
	if e.Ran < e.Commands {
		return
	}
	*seen++
	if stats {
		w.last = a
	}
}
