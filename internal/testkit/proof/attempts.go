package proof

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// attempts counts the attempts of one call.
type attempts struct {
	adds         bool        // the call is an Add or an AddAll
	plain        atomic.Bool // it sends its items without a script
	tried, maybe atomic.Int32
	refused      atomic.Bool  // a BITFIELD, or of a transaction a command or all of it
	noTime       atomic.Bool  // a TIME was refused
	lostTime     atomic.Bool  // a TIME had no answer
	last         atomic.Int64 // when the last attempt to send its items ended

	mirrored  bool
	mu        sync.Mutex
	questions []Question
}

type attemptsKey struct{}

// Observe is an upstash.WithObserver function. It counts, for Run, the attempts
// of a call that may have taken effect. It leaves out TIME and the script after a
// plain Add: they change no item.
func Observe(ctx context.Context, e upstash.Event) {
	a, ok := ctx.Value(attemptsKey{}).(*attempts)
	if !ok {
		return
	}
	if e.Command == "TIME" {
		refused := errors.Is(e.Err, upstash.ErrNoPermission)
		a.noTime.Store(a.noTime.Load() || refused)
		a.lostTime.Store(a.lostTime.Load() || e.Err != nil && !refused)
		return
	}
	// What follows a BITFIELD sets a TTL, or turns a window: only an answer tells a Mirror
	// something.
	if a.mirrored && (e.Command == "BITFIELD" || !a.plain.Load() || isAnswered(e)) {
		a.asked(e)
	}
	refused := errors.Is(e.Err, upstash.ErrNoPermission) || errors.Is(e.Err, upstash.ErrOutOfMemory)
	if e.Command == "MULTI-EXEC" && e.Ran < e.Commands || e.Command == "BITFIELD" && refused {
		a.refused.Store(true)
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

// asked takes note of an attempt of a call through a Mirror.
func (a *attempts) asked(e upstash.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := Question{Asked: e.Start, Sent: e.Start, Ended: e.Start.Add(e.Duration)}
	q.Answered = isAnswered(e)
	if n := len(a.questions); e.Attempt > 1 && n > 0 {
		q.Asked = a.questions[n-1].Asked
		a.questions = a.questions[:n-1]
	}
	a.questions = append(a.questions, q)
}

// isAnswered reports whether an attempt has an answer. An error may be a command's.
func isAnswered(e upstash.Event) bool { return e.Err == nil && e.Ran == e.Commands }

func newAttempts(c Call) *attempts {
	return &attempts{adds: c.Verb.is(adds), mirrored: c.Verb.is(mirrored)}
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
	r.Refused, r.Questions = a.refused.Load(), a.questions
	r.tell(err)
	if c.More > 0 && len(c.Items) > 0 { // nobody asks for those
		r.Yes, r.States = withoutMore(c, r.Yes), withoutMore(c, r.States)
	}
	return r
}

// withoutMore leaves out what a list says of the further items of a call.
func withoutMore[T any](c Call, list []T) []T {
	if len(list) < len(c.Items)+c.More {
		return list[:min(len(list), 1)]
	}
	return slices.Delete(list, 1, 1+c.More)
}

// A handle that is Sized has a Capacity of 1. Three items are too many for it:
// one more than the Capacity and four standard errors.
const (
	sizedCapacity = 1
	sizedMost     = 2
)

// tooFull reports whether a filter with so many set bits is over a Capacity of 1,
// by the documentation of the estimate (Swamidass and Baldi).
func tooFull(g bloom.Geometry, setBits int) bool {
	m, k := float64(g.Bits), float64(g.Hashes)
	return -m/k*math.Log1p(-float64(setBits)/m) >= sizedMost+0.5
}
