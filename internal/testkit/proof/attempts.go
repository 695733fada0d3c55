package proof

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/lots"
	"github.com/upbloom/upbloom/upstash"
)

// attempts counts the attempts of one call.
type attempts struct {
	adds         bool        // the call is an Add or an AddAll
	looks        bool        // it may look at the fill
	plain        atomic.Bool // it sends its items without a script
	tried, maybe atomic.Int32
	refused      atomic.Bool  // a BITFIELD, or of a transaction a command or all of it
	noTime       atomic.Bool  // a TIME was refused
	last         atomic.Int64 // when the last attempt to send its items ended

	watch    *watch // of the call's session, or nil
	watched  *Watched
	lookErrs []error
	over     bool // the call has ended
}

type attemptsKey struct{}

// Observe is an upstash.WithObserver function. It counts, for Run, the attempts
// of a call that may have taken effect. It leaves out TIME, the script after a
// plain Add and the looks at the fill: they change no item.
func Observe(ctx context.Context, e upstash.Event) {
	a, ok := ctx.Value(attemptsKey{}).(*attempts)
	if !ok {
		return
	}
	if e.Command == "TIME" {
		if errors.Is(e.Err, upstash.ErrNoPermission) {
			a.noTime.Store(true)
		}
		return
	}
	refused := errors.Is(e.Err, upstash.ErrNoPermission) || errors.Is(e.Err, upstash.ErrOutOfMemory)
	if e.Command == "MULTI-EXEC" && e.Ran < e.Commands || e.Command == "BITFIELD" && refused {
		a.refused.Store(true)
	}
	if count, stats := isLook(e); a.looks && (count || stats) {
		if a.watch != nil {
			a.watch.saw(a, e, stats)
		}
		return
	}
	if e.Command == "BITFIELD" || !a.plain.Load() {
		a.last.Store(time.Now().UnixNano())
	}
	if e.Command == "BITFIELD" {
		a.plain.Store(true)
	} else if a.adds && a.plain.Load() {
		return
	}
	if e.Ran+e.MayHaveRun > 0 {
		a.tried.Add(1)
	}
	if e.MayHaveRun > 0 {
		a.maybe.Add(1)
	}
}

// A watched handle has a WarnFill and a Capacity of 1. Three items are too many
// for it: one more than the Capacity and four standard errors.
const (
	watchCapacity = 1
	watchMost     = 2
	// noLook is the lot of a write that must not look by chance: the
	// documentation promises at most one look in ten writes.
	noLook = 0.1
)

// watch records the looks and warnings of the calls of a session. A WarnFill
// does not say which call it belongs to. It comes at the instant of the answer
// to that call's Stats, at which nobody else does anything.
type watch struct {
	linger func() // lets time pass in a WarnFill
	calls  atomic.Int32

	mu    sync.Mutex
	last  *attempts   // whose Stats were answered last
	in    map[int]int // the WarnFills under way, by number
	alarm string      // the first wrong thing

	numbers map[handle]int // of the watched handles; an opened one has none
}

// newWatch returns nil if the handles have no WarnFill.
func newWatch(on bool, linger func()) *watch {
	if !on {
		return nil
	}
	return &watch{linger: linger, in: make(map[int]int), numbers: make(map[handle]int)}
}

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
	if w == nil {
		return do(ctx)
	}
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
			lot := noLook * draw()
			if lot == 0 {
				a.watched.Low++
			}
			return lot
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

func newAttempts(c Call) *attempts {
	return &attempts{adds: c.Verb.is(adds), looks: c.Verb.is(adds | uploads)}
}

func (a *attempts) run(ctx context.Context, c Call, do func(context.Context) (Result, error)) Result {
	ctx = context.WithValue(ctx, attemptsKey{}, a)
	ctx, stop, cause := c.within(ctx)
	defer stop()
	r, err := do(ctx)
	if r.End == "" {
		r.End = endOf(err, cause)
	}
	if last := a.last.Load(); last != 0 {
		r.Sent = time.Since(time.Unix(0, last))
	}
	r.Tried, r.Maybe = int(a.tried.Load()), int(a.maybe.Load())
	r.Refused = a.refused.Load()
	r.tell(err)
	if a.watch != nil {
		a.watch.ended(ctx, a, err)
		if r.End == Answered && c.Verb.is(adds) {
			a.watched.New = countTrue(r.Yes)
		}
	}
	if c.More > 0 { // nobody asks for those
		n := max(len(c.Items), 1)
		r.Yes, r.States = r.Yes[:min(len(r.Yes), n)], r.States[:min(len(r.States), n)]
	}
	return r
}

func countTrue(yes []bool) (n int) {
	for _, y := range yes {
		if y {
			n++
		}
	}
	return n
}

// tooFull reports whether a watched filter with so many set bits is over its
// Capacity, by the documentation of the estimate (Swamidass and Baldi).
func tooFull(g bloom.Geometry, setBits int) bool {
	m, k := float64(g.Bits), float64(g.Hashes)
	return -m/k*math.Log1p(-float64(setBits)/m) >= watchMost+0.5
}
