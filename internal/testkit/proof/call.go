package proof

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// Verb names what a call does.
type Verb string

const (
	Create    Verb = "create"
	Add       Verb = "add"
	AddAll    Verb = "addall"
	Exists    Verb = "exists"
	ExistsAll Verb = "existsall"
	Delete    Verb = "delete"
	Persist   Verb = "persist"
	SetTTL    Verb = "setttl" // Filter.Expire

	// Expire removes the key if it has a TTL, as time would. Clear removes the
	// key whatever it holds. Overwrite stores data of another program. They run
	// on the database itself and meet no fault.
	Expire    Verb = "expire"
	Clear     Verb = "clear"
	Overwrite Verb = "overwrite"

	// HasTTL reports whether the key has a TTL. It too runs on the database.
	HasTTL Verb = "hasttl"

	// Lapse is an expiry that may have happened: see History.MayExpire.
	Lapse Verb = "lapse"
)

// Call is one call of a client. It travels to other processes as JSON.
type Call struct {
	Verb  Verb
	Items []string
}

// Result is the outcome of a call, as its client saw it. It travels as JSON.
type Result struct {
	// End is how the call ended.
	End End
	// Yes holds the answers, one an item, or a single one.
	Yes []bool
	// States is set after a batch that failed.
	States []bloom.ItemState
	// Tried is how many attempts ran or may have run, and Maybe how many of them
	// got no answer.
	Tried, Maybe int
	// Err is the error's text, for people.
	Err string
}

// End is how a call ended.
type End string

const (
	Answered  End = "answered"
	Uncertain End = "uncertain"
	Missing   End = "no filter"
	Mismatch  End = "other data"
	NotRun    End = "did not run"
	Unknown   End = "may have run"
	Partly    End = "partly" // see States
)

// attempts counts those of one call.
type attempts struct {
	adds         bool        // the call is an Add or an AddAll
	plain        atomic.Bool // it sends its items without a script
	tried, maybe atomic.Int32
}

type attemptsKey struct{}

// Observe is for upstash.WithObserver. From it Run learns how many attempts of
// a call may have taken effect. It does not count the scripts that follow a
// plain Add, because they change no item of a filter.
func Observe(ctx context.Context, e upstash.Event) {
	a, ok := ctx.Value(attemptsKey{}).(*attempts)
	if !ok {
		return
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

// Run makes one call on f. The observer of f's client must be Observe.
func Run(ctx context.Context, f *bloom.Filter, c Call) Result {
	a := attempts{adds: c.Verb == Add || c.Verb == AddAll}
	ctx = context.WithValue(ctx, attemptsKey{}, &a)
	var yes []bool
	var err error
	one := func(answer bool, e error) { yes, err = []bool{answer}, e }
	switch c.Verb {
	case Create:
		one(f.Create(ctx))
	case Add:
		one(f.Add(ctx, c.Items[0]))
	case AddAll:
		yes, err = f.AddAll(ctx, c.Items)
	case Exists:
		one(f.Exists(ctx, c.Items[0]))
	case ExistsAll:
		yes, err = f.ExistsAll(ctx, c.Items)
	case Delete:
		one(f.Delete(ctx))
	case Persist:
		one(f.Persist(ctx))
	case SetTTL:
		one(f.Expire(ctx, time.Hour))
	default:
		panic("proof: no client does " + string(c.Verb))
	}
	r := Result{
		End: endOf(err), Yes: yes,
		Tried: int(a.tried.Load()), Maybe: int(a.maybe.Load()),
	}
	var batch *bloom.BatchError
	if errors.As(err, &batch) {
		r.End, r.States = Partly, batch.Items
	}
	if err != nil {
		r.Err = err.Error()
	}
	return r
}

// endOf returns the End that an error stands for, by its documentation.
func endOf(err error) End {
	var other *bloom.MismatchError
	switch {
	case errors.Is(err, bloom.ErrUncertain), errors.Is(err, upstash.ErrUncertain):
		// With ErrNoTTL or without.
		return Uncertain
	case err == nil, errors.Is(err, bloom.ErrNoTTL):
		return Answered
	case errors.Is(err, bloom.ErrNotFound):
		return Missing
	case errors.As(err, &other), errors.Is(err, bloom.ErrNotFilter):
		return Mismatch
	case upstash.SafeToRetry(err):
		return NotRun
	}
	return Unknown
}

// String is for the print of a history that failed.
func (c Call) String() string {
	return string(c.Verb) + "(" + strings.Join(c.Items, " ") + ")"
}

// String is for the print of a history that failed.
func (r Result) String() string {
	s := string(r.End)
	if r.End == Answered || r.End == Partly {
		s += fmt.Sprint(" ", r.Yes)
	}
	if r.End == Partly {
		s += fmt.Sprint(" ", r.States)
	}
	if r.Maybe > 0 {
		s += fmt.Sprintf(", %d attempts that may have run", r.Maybe)
	}
	if r.Err != "" {
		s += ": " + r.Err
	}
	return s
}
