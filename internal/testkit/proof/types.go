package proof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A Type is a type of filter: a Subject, with the means to make histories.
type Type interface {
	Subject
	// Open makes the handles of a process, which has a client for each
	// database. Their observer must be Observe.
	Open(clients []*upstash.Client, key string) (Handles, error)
	// Draw draws the calls a client makes without a rest. DrawOutside
	// occasionally draws a change from outside. Outside makes such a change.
	Draw(rng *rand.Rand) []Call
	DrawOutside(rng *rand.Rand) (c Call, ok bool)
	Outside(dbs []*upstashtest.Server, key string, seed uint64, c Call) Result
	// Finish adds last calls to the history, after all faults. The handles are a
	// new client's.
	Finish(ctx context.Context, h *History, dbs []*upstashtest.Server, key string, s Handles) error
}

// Handles are the handles of one client. They are safe for concurrent use.
type Handles interface {
	Run(ctx context.Context, c Call) Result
}

// A Spread type has several databases. The others have one.
type Spread interface {
	Databases() int
}

// DatabasesOf returns how many databases a type has.
func DatabasesOf(t Type) int {
	if s, ok := t.(Spread); ok {
		return s.Databases()
	}
	return 1
}

// A Timed type depends on clocks. Each of its clients has its own clocks, which
// may be wrong.
type Timed interface {
	// Pane is the unit of its time.
	Pane() time.Duration
	// Gap is the length of the pause in the middle of the history, when nobody
	// does anything.
	Gap() time.Duration
}

// A Watching type has handles with a WarnFill, which calls linger.
type Watching interface {
	OnWarning(linger func())
}

// runCall makes a call, and counts its attempts.
func runCall(ctx context.Context, c Call, do func(context.Context) (Result, error)) Result {
	return newAttempts(c).run(ctx, c, do)
}

func newAttempts(c Call) *attempts {
	return &attempts{adds: c.adds(), looks: c.adds() || c.uploads()}
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
	r.Scripts, r.LostScripts = int(a.scripts.Load()), int(a.lostScripts.Load())
	r.Refused = a.refused.Load()
	var batch *bloom.BatchError
	if errors.As(err, &batch) {
		r.End, r.States = Partly, batch.Items
	}
	if err != nil {
		r.Err, r.Safe = err.Error(), upstash.SafeToRetry(err)
	}
	if a.watch != nil {
		a.watch.ended(ctx, a, err)
	}
	return r
}

// ReadType reads the JSON of a type. DrawType lists the names. "near" is none of
// a history over sockets, which has no regions.
func ReadType(name string, text []byte) (Type, error) {
	var t Type
	switch name {
	case "filter":
		t = &Filters{}
	case "window":
		t = &Windows{}
	case "cuckoo":
		t = &Cuckoos{}
	case "scalable":
		t = &Scalables{}
	case "sharded":
		t = &Shardeds{}
	default:
		return nil, fmt.Errorf("proof: no type has the name %q", name)
	}
	return t, json.Unmarshal(text, t)
}

// DrawType draws the Config of a history. name is "filter", "near", "window",
// "cuckoo", "scalable" or "sharded". Only a filter has themes.
func DrawType(rng *rand.Rand, name string, themes Theme) Type {
	switch name {
	case "filter":
		f := DrawFilters(rng, themes)
		return &f
	case "near":
		return drawNear(rng)
	case "window":
		return DrawWindows(rng)
	case "cuckoo":
		return DrawCuckoos(rng)
	case "scalable":
		return DrawScalables(rng)
	case "sharded":
		return DrawShardeds(rng)
	}
	panic("proof: no type has the name " + name)
}
