package proof

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// attempts counts the attempts of one call.
type attempts struct {
	adds         bool        // the call is an Add or an AddAll
	looks        bool        // it may look at the fill
	plain        atomic.Bool // it sends its items without a script
	tried, maybe atomic.Int32
	scripts      atomic.Int32             // before its items
	lostScripts  atomic.Int32             // of them, without an answer
	refused      atomic.Bool              // a BITFIELD, or of a transaction a command or all of it
	sorts        func(upstash.Event) bool // reports whether an attempt may put items; or nil
	last         atomic.Int64             // when the last attempt to send its items ended

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
	if !ok || e.Command == "TIME" {
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
	if a.sorts != nil && !a.sorts(e) {
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
