package bloom

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/upbloom/upbloom/bloom/internal/engine"
)

// AddAll adds items and reports for each whether it was new, as if they had
// been added one after another: of equal ones only the first can be new.
//
// It sends as few requests as [Config.BatchBytes] allows, each one billed
// command (with [Config.MustExist] a script, of three or more), and up to
// [Config.BatchParallel] of them at once. 1,000 items at 1 in 100 take about
// 100 KB, so one request carries about 10,000. Without items it sends nothing.
// Beside the items it needs two bytes an item, and a few megabytes for each
// request under way.
//
// If a request fails, the error is a [*BatchError]. It says what is known of
// each item, and the answers of the items that are done come with it. If the
// filter vanishes between two requests, the BatchError wraps [ErrRecreated],
// [ErrNotFound] with Config.MustExist, or the error of the other data at its
// key. All items that were sent are then [ItemUnknown].
func (f *Filter) AddAll(ctx context.Context, items []string) ([]bool, error) {
	ctx = f.rec.Label(ctx, "bloom.AddAll")
	return f.addAll(ctx, items, nil)
}

func (h *handle) addAll(ctx context.Context, items []string, o engine.Observer) ([]bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if err := h.rec.MayWrite(); err != nil {
		return nil, err
	}
	return h.newAddBatch(items, o).run(ctx)
}

func (h *handle) newAddBatch(items []string, o engine.Observer) *batch {
	b := h.newBatch(items, true, o)
	// Until the header was seen, one request goes ahead alone: if the key holds
	// something else, no other touches it.
	b.alone = h.rec.Headed() && !h.rec.Verified.Load()
	return b
}

func (h *handle) removeAll(ctx context.Context, items []string) ([]bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if err := h.rec.MayWrite(); err != nil {
		return nil, err
	}
	b := h.newAddBatch(items, nil)
	b.removing = true
	return b.run(ctx)
}

// ExistsAll reports for each item whether it is in the filter, with the
// promises of Exists and the requests of AddAll. 1,000 items at 1 in 100 take
// about 50 KB. Each answer is that of Exists at a moment of the call: if a
// Replace comes between two requests, some are of the old filter.
func (f *Filter) ExistsAll(ctx context.Context, items []string) ([]bool, error) {
	ctx = f.rec.Label(ctx, "bloom.ExistsAll")
	return f.existsAll(ctx, items, nil)
}

func (h *handle) existsAll(ctx context.Context, items []string, o engine.Observer) ([]bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	return h.newBatch(items, false, o).run(ctx)
}

// batch is one AddAll or ExistsAll on one client. Its items go to one record,
// or each to the record that laneOf chooses.
type batch struct {
	h        *handle // the batch keeps to its limits
	lanes    []lane
	laneOf   func(item string) int           // nil if there is one lane
	name     func(lane int, err error) error // says which record failed; or nil
	items    []string
	observer engine.Observer
	adding   bool // or removing
	alone    bool // the first part goes before the others
	split    bool // one request does not carry all items
	repeats  bool // equal items are sent each time

	removing bool

	itemBytes   int // at most, of one item
	maxItems    int // of a part
	scriptBytes int // of the script of each command, if there is one

	// Each part writes to the places of its own items, without a lock.
	answers []bool
	states  []ItemState

	mu     sync.Mutex     // guards what follows, and the lanes
	flying []*part        // of an AddAll: an item that is in one of them is not sent again
	wrote  engine.Written // of an AddAll: how many items were added, and were new
	err    error
	fatal  bool
}

// A lane is a batch's knowledge of one record.
type lane struct {
	rec     *engine.Record
	birth   int64       // the birth number found by the parts; 0 before the first
	gone    bool        // of an AddAll: the filter went away meanwhile
	stopped atomic.Bool // nothing more is sent
}

// A part is one request of a batch, with a piece for each record. While it is
// under way, items equal to one of its items are not sent: they wait for its
// answer.
type part struct {
	pieces []piece
	size   int            // about the bytes of the body
	first  map[string]int // of its items, the first of equal ones
	same   []sameAs
}

type piece struct {
	q     *engine.Request
	lane  int
	index []int // of its items
}

type sameAs struct{ item, first int }

func (h *handle) newBatch(items []string, adding bool, o engine.Observer) *batch {
	b := newBatch(h, make([]lane, 1), items, adding, o)
	b.lanes[0].rec = &h.rec.Record
	return b
}

func newBatch(h *handle, lanes []lane, items []string, adding bool, o engine.Observer) *batch {
	b := &batch{
		h: h, lanes: lanes, items: items, adding: adding, observer: o,
		itemBytes: h.rec.Items.ItemBytes(adding), maxItems: maxPartItems,
		answers: make([]bool, len(items)), states: make([]ItemState, len(items)),
	}
	if adding {
		b.scriptBytes = h.rec.ScriptBytes()
		if own := h.rec.Scripted(); own != nil {
			b.repeats, b.maxItems = true, min(own.MaxItems(), maxPartItems)
		}
	}
	// One request certainly carries all items if the longest heads and the
	// longest items fit.
	heads := min(len(lanes), len(items)) * b.headBytes(&h.rec.Record)
	b.split = len(items) > 1 &&
		(len(items) > b.maxItems || len(items) > (h.batchBytes()-heads)/b.itemBytes)
	return b
}

// headBytes is an upper bound of a command's length without its items.
func (b *batch) headBytes(r *engine.Record) int {
	const most = 512                           // of the operations before the first item
	return b.scriptBytes + most + 6*len(r.Key) // a byte of a key takes up to six in JSON
}

// run cuts the items into parts and sends them.
func (b *batch) run(ctx context.Context) ([]bool, error) {
	parts := engine.NewPool(b.h.batchParallel())
	for next := 0; next < len(b.items) && !b.stopped(); {
		var p *part
		p, next = b.fill(ctx, next)
		if p == nil {
			break
		}
		if b.alone || !b.split {
			b.alone = false
			b.sendPart(ctx, p) // another goroutine would wake a processor for nothing
			continue
		}
		if !parts.Run(ctx, b.stopped, func(ctx context.Context) { b.sendPart(ctx, p) }) {
			b.finish(p)
			break
		}
	}
	parts.Wait()
	if b.adding {
		b.h.notify(ctx, b.wrote)
	}
	return b.result()
}

// fill builds one request from the items at next and after, as many as fit.
func (b *batch) fill(ctx context.Context, next int) (p *part, rest int) {
	p = &part{pieces: make([]piece, 0, len(b.lanes))}
	if b.adding && b.split && !b.repeats {
		p.first = map[string]int{}
	}
	at := make([]int, len(b.lanes)) // the lane's place in p.pieces, from 1
	for n := 0; next < len(b.items); next++ {
		item := b.items[next]
		lane := b.lane(item)
		if b.lanes[lane].stopped.Load() || p.first != nil && b.waits(item, next) {
			continue
		}
		need := b.itemBytes
		if at[lane] == 0 {
			need += b.headBytes(b.lanes[lane].rec)
		}
		if n > 0 && (p.size+need > b.h.batchBytes() || n >= b.maxItems) {
			break
		}
		if at[lane] == 0 {
			if !b.begin(ctx, p, lane) {
				continue
			}
			at[lane] = len(p.pieces)
		}
		c := &p.pieces[at[lane]-1]
		before := c.q.Size()
		if b.adding {
			c.q.AppendWrite(item)
		} else {
			c.q.AppendRead(item)
		}
		p.size += c.q.Size() - before
		if p.first != nil {
			if _, ok := p.first[item]; !ok {
				p.first[item] = next
			}
		}
		c.index = append(c.index, next)
		n++
	}
	if len(p.pieces) == 0 {
		return nil, next
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.first != nil {
		b.flying = append(b.flying, p)
	}
	return p, next
}

// lane returns the place of the item's record in b.lanes.
func (b *batch) lane(item string) int {
	if b.laneOf == nil {
		return 0
	}
	return b.laneOf(item)
}

// begin starts the command of one record, and reports whether that may be sent.
func (b *batch) begin(ctx context.Context, p *part, lane int) bool {
	r := b.lanes[lane].rec
	if b.adding {
		if err := r.MayWrite(); err != nil {
			b.replaced(lane)
			b.fail(lane, err, true)
			return false
		}
	}
	call := engine.Call{Observer: b.observer, Removing: b.removing, CompareBirth: b.split}
	var q *engine.Request
	if b.adding {
		q = r.BeginWrite(ctx, call)
	} else {
		q = r.BeginRead(ctx, call)
	}
	p.size += q.Size() + b.scriptBytes + len("[],") // of a pipeline
	p.pieces = append(p.pieces, piece{q: q, lane: lane})
	return true
}

// maxPartItems keeps the arrays of a part small if BatchBytes is large. Only a
// test changes it.
var maxPartItems = 1 << 20

// waits reports whether an equal item is under way in another request. The
// server might run the two requests in either order. So the item is not sent,
// and gets its answer with the other.
func (b *batch) waits(item string, index int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.flying {
		if i, ok := p.first[item]; ok {
			p.same = append(p.same, sameAs{index, i})
			return true
		}
	}
	return false
}
