package bloom

import (
	"context"
	"sync"
)

// AddAll adds items and reports for each whether it was new, as if they had
// been added one after another: of equal ones only the first can be new.
//
// It sends as few requests as Config.BatchBytes allows, each one billed command
// (with Config.MustExist a script, of three or more), and up to
// Config.BatchParallel of them at once. 1,000 items at 1 in 100 take about 100
// KB, so one request carries about 10,000. Without items it sends nothing.
// Beside the items it needs two bytes an item, and a few megabytes for each
// request under way.
//
// If a request fails, the error is a *BatchError, which says what is known of
// each item; the answers of the items that are done come with it. If the filter
// vanishes between two requests, the BatchError wraps ErrRecreated, or
// ErrNotFound with Config.MustExist.
func (f *Filter) AddAll(ctx context.Context, items []string) ([]bool, error) {
	ctx = f.rec.label(ctx, "bloom.AddAll")
	return f.addAll(ctx, items, nil)
}

func (h *handle) addAll(ctx context.Context, items []string, o *mirrorCall) ([]bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if err := h.rec.mayWrite(); err != nil {
		return nil, err
	}
	return h.newAddBatch(items, o).run(ctx)
}

func (h *handle) newAddBatch(items []string, o *mirrorCall) *batch {
	b := h.newBatch(items, true, o)
	// Until the header was seen, one request goes ahead alone: if the key
	// holds something else, no more than that one touches it.
	b.alone = h.rec.headed() && !h.rec.verified.Load()
	return b
}

// ExistsAll reports for each item whether it is in the filter, with the
// promises of Exists and the requests of AddAll. 1,000 items at 1 in 100 take
// about 50 KB.
func (f *Filter) ExistsAll(ctx context.Context, items []string) ([]bool, error) {
	ctx = f.rec.label(ctx, "bloom.ExistsAll")
	return f.existsAll(ctx, items, nil)
}

func (h *handle) existsAll(ctx context.Context, items []string, o *mirrorCall) ([]bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	return h.newBatch(items, false, o).run(ctx)
}

// batch is one AddAll or ExistsAll under way.
type batch struct {
	h        *handle
	items    []string
	observer *mirrorCall
	adding   bool
	alone    bool // the first part goes before the others
	parts    bool // one request does not carry all items

	limit     int // of a command without its script, in bytes
	itemBytes int // the most that an item takes

	// Each part writes to the places of its own items, without a lock.
	answers []bool
	states  []ItemState

	mu     sync.Mutex // guards what follows
	flying []*part    // of an AddAll: an item that is in one of them is not sent again
	seen   int64      // the birth number that the parts found
	gone   bool       // of an AddAll: the filter went away meanwhile
	wrote  written    // of an AddAll: how many items were added, and were new
	err    error
	fatal  bool
}

// part is one request of a batch. Later items of the batch that are equal to one
// of its items are not sent while it is under way: they wait for its answer.
type part struct {
	q     *request
	index []int          // of its items
	first map[string]int // of its items, the first of equal ones
	same  []sameAs
}

type sameAs struct{ item, first int }

func (h *handle) newBatch(items []string, adding bool, o *mirrorCall) *batch {
	b := &batch{
		h: h, items: items, adding: adding, observer: o,
		limit: h.batchBytes(), itemBytes: h.rec.itemBytes(adding),
		answers: make([]bool, len(items)), states: make([]ItemState, len(items)),
	}
	if adding {
		b.limit -= h.rec.scriptBytes()
	}
	// One request certainly carries all items if the longest head and the
	// longest items fit.
	head := maxHeadBytes + 6*len(h.rec.key) // a byte of a key takes up to six in JSON
	b.parts = len(items) > 1 &&
		(len(items) > maxPartItems || len(items) > (b.limit-head)/b.itemBytes)
	return b
}

// maxHeadBytes is more than the operations before the first item take, without
// the key.
const maxHeadBytes = 512

// run cuts the items into parts and sends them.
func (b *batch) run(ctx context.Context) ([]bool, error) {
	slots := make(chan struct{}, b.h.batchParallel())
	var parts sync.WaitGroup
	for next := 0; next < len(b.items) && !b.stopped(); {
		var p *part
		p, next = b.fill(ctx, next)
		if p == nil {
			break
		}
		if b.alone {
			b.alone = false
			b.sendPart(ctx, p)
			continue
		}
		slots <- struct{}{}
		if b.stopped() { // while it waited
			b.drop(p)
			break
		}
		parts.Go(func() {
			b.sendPart(ctx, p)
			<-slots
		})
	}
	parts.Wait()
	if b.adding {
		b.h.told(ctx, b.wrote)
	}
	return b.result()
}

// fill builds one request from the items at next and after, as many as fit.
func (b *batch) fill(ctx context.Context, next int) (p *part, rest int) {
	q := newRequest(&b.h.rec)
	p = &part{q: q}
	q.observer = b.observer
	q.aim(ctx, b.adding)
	if b.adding {
		// Each part has a birth number of its own, by which it knows later
		// whether it made the filter.
		q.beginWrite(newBirth(), b.parts)
		if b.parts {
			p.first = map[string]int{}
		}
	} else {
		q.beginRead()
	}
	for ; next < len(b.items); next++ {
		item := b.items[next]
		if p.first != nil && b.waits(item, next) {
			continue
		}
		if len(q.items) > 0 && (q.size()+b.itemBytes > b.limit || len(q.items) >= maxPartItems) {
			break
		}
		if b.adding {
			q.setItem(item)
		} else {
			q.getItem(item)
		}
		if p.first != nil {
			if _, ok := p.first[item]; !ok {
				p.first[item] = next
			}
		}
		q.items = append(q.items, item)
		p.index = append(p.index, next)
	}
	if len(q.items) == 0 {
		q.free()
		return nil, next
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.first != nil {
		b.flying = append(b.flying, p)
	}
	return p, next
}

// maxPartItems keeps the arrays of a part small if BatchBytes is large. Only a
// test changes it.
var maxPartItems = 1 << 20

// waits reports whether an equal item is under way in another request. The
// server might run the two requests in either order, so the item is not sent,
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
