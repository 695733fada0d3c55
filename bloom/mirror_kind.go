package bloom

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/upstash"
)

// A Mirrorable is a [*Filter] or a [*Window]: what [NewMirror] makes a copy of.
type Mirrorable interface {
	AnyFilter
	copyKind() copyKind
}

// A copyKind is what a copy needs to know of the kind of its string. The string
// has one area, or several, of one geometry. A set of areas is one of bits.
type copyKind interface {
	// starts returns the first byte of each area.
	starts() []int
	// span returns for how long an item is found, 0 if for good.
	span() time.Duration
	// cleared returns the areas that were cleared after the string had one word,
	// and until it had another; none, if that is no later one: 13.
	cleared(from, to int64) (areas uint8)
	// counting returns which areas count in a string with a word: 14.
	counting(word int64) counting
	// target returns the area of a write.
	target(q *engine.Request) int
	// learnTime learns the time that counting needs, if it is not known.
	learnTime(ctx context.Context)
}

// A counting is the areas that certainly count, those that may, and those that an
// item must be in for an Add to change nothing.
type counting struct{ sure, maybe, newest uint8 }

// oneArea is the copyKind of a filter, which forgets nothing.
type oneArea struct{}

func (f *Filter) copyKind() copyKind { return oneArea{} }

func (oneArea) starts() []int              { return []int{format.HeaderBytes} }
func (oneArea) span() time.Duration        { return 0 }
func (oneArea) cleared(int64, int64) uint8 { return 0 }
func (oneArea) counting(int64) counting    { return counting{1, 1, 1} }
func (oneArea) target(*engine.Request) int { return 0 }
func (oneArea) learnTime(context.Context)  {}

// paneAreas is the copyKind of a Window.
type paneAreas struct {
	*windowShape
	client *upstash.Client
	denied atomic.Bool // the token may not run TIME
}

func (w *Window) copyKind() copyKind {
	return &paneAreas{windowShape: w.shape, client: w.rec.Client}
}

func (p *paneAreas) span() time.Duration { return p.lasts() }

func (p *paneAreas) starts() []int {
	starts := make([]int, len(p.areas))
	for i, a := range p.areas {
		starts[i] = int(a.Offset / 8)
	}
	return starts
}

func (p *paneAreas) cleared(from, to int64) uint8 {
	return p.windowShape.cleared(format.EpochOf(from), format.EpochOf(to))
}

// counting counts the panes by the latest time that it may be, and by the
// earliest. An Add renews an item, unless that is in the pane of the latest epoch.
func (p *paneAreas) counting(word int64) (n counting) {
	c := format.EpochOf(word)
	earliest, latest, ok := door.ServerTimeBounds(p.client)
	if !ok {
		n.maybe = p.windowShape.counting(c, c)
		if p.denied.Load() {
			n.sure = n.maybe
		}
		return n
	}
	e := p.epochAt(latest)
	n.sure, n.maybe = p.windowShape.counting(e, c), p.windowShape.counting(p.epochAt(earliest), c)
	for i := p.ahead(e, c); i <= 1; i++ { // e to C+1
		n.newest |= 1 << p.pane(c+i)
	}
	return n
}

func (p *paneAreas) target(q *engine.Request) int { return p.pane(commandOf(q).epoch) }

// learnTime asks for the time if it is not known. A lost answer says nothing.
func (p *paneAreas) learnTime(ctx context.Context) {
	_, err := p.client.ServerTime(ctx)
	if denied := fault.IsDenied(err); err == nil || denied {
		p.denied.Store(denied)
	}
}
