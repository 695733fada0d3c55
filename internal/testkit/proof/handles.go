package proof

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/zeebo/xxh3"

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
	// Parallel is that of AtOnce.
	Parallel() int
	drawParallel(rng *rand.Rand)
}

// AtOnce is how many requests of a batch are under way at once, 1 or 2. Two begin
// at one instant, and nothing says which is the first. Of two writes at once a
// client keeps one sync token, so a region may lack the other one: for the model
// a client reads all of its writes, and those near a region make one at a time.
type AtOnce int

// Parallel returns it.
func (n AtOnce) Parallel() int { return int(n) }

func (n *AtOnce) drawParallel(rng *rand.Rand) { *n = AtOnce(1 + rng.IntN(2)) }

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

// adopt makes an opened handle the client's own, if it has the Config's
// geometry. The answer says whether it has.
func adopt[T any, H interface {
	*T
	fmt.Stringer
}](at *atomic.Pointer[T], opened H, err error) (Result, error) {
	if err != nil {
		return Result{}, err
	}
	fits := opened.String() == H(at.Load()).String()
	if fits {
		at.Store(opened)
	}
	return Result{Yes: []bool{fits}}, nil
}

// secondKey is the other key, for renames and unions.
func secondKey(key string) string { return key + ":2" }

// seedTag returns the seed's tag in a header, by the documentation of the
// format.
func seedTag(seed uint64) int64 {
	if seed == 0 {
		return 0
	}
	return int64(1 + xxh3.Hash(binary.LittleEndian.AppendUint64(nil, seed))%127)
}

// A pair is the handles of a client for one key. In the batches of parts each
// item is a request.
type pair[T any] struct{ whole, parts atomic.Pointer[T] }

// at returns the place of the handle of a call.
func (p *pair[T]) at(c Call) *atomic.Pointer[T] {
	if c.Parts {
		return &p.parts
	}
	return &p.whole
}

// fill makes both handles.
func (p *pair[T]) fill(of func(parts bool) (*T, error)) error {
	whole, err := of(false)
	if err != nil {
		return err
	}
	parts, err := of(true)
	p.whole.Store(whole)
	p.parts.Store(parts)
	return err
}
