package bloom

import (
	"context"
	"sync"

	"github.com/upbloom/upbloom/upstash"
)

const (
	defaultBatchBytes    = 1 << 20
	defaultBatchParallel = 4
)

// AddAll adds items and reports for each whether it was new, as if they had
// been added one after another: of equal ones only the first can be new.
//
// It sends as few requests as Config.BatchBytes allows, each one billed
// command (two in a handle's first where there is a TTL), and up to
// Config.BatchParallel of them at once. 1,000 items at k = 7 take about 160 KB,
// so that one request carries about 6,500. No items send nothing.
//
// Where a request fails, the error is a *BatchError, which tells of each item
// what is known; the answers of those that are done are returned with it.
func (f *Filter) AddAll(ctx context.Context, items []string) ([]bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if err := f.mayWrite(); err != nil {
		return nil, err
	}
	b := f.newBatch(items)
	b.begin, b.item, b.send, b.adding = f.beginWrite, f.setItem, b.sendAdd, true
	if f.cfg.TTL != 0 { // room for the EXPIRE, and the brackets of a transaction
		b.limit -= f.expireNX().Size() + len("[,]")
	}
	// Until the header was seen, one request goes ahead alone: if the key
	// holds something else, no more than that one touches it.
	b.alone = f.headed() && !f.verified.Load() || !f.expiring.Load()
	return b.run(ctx)
}

// ExistsAll reports for each item whether it is in the filter, with the
// promises of Exists and the requests of AddAll. 1,000 items at k = 7 take
// about 146 KB.
func (f *Filter) ExistsAll(ctx context.Context, items []string) ([]bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	b := f.newBatch(items)
	b.begin, b.item, b.send = f.beginRead, f.getItem, b.sendExists
	return b.run(ctx)
}

// batch is one AddAll or ExistsAll under way.
type batch struct {
	f     *Filter
	items []string

	begin  func(*upstash.BitField)
	item   func(*scratch, string)
	send   func(context.Context, *scratch, []int) error
	adding bool
	limit  int  // of a command, in bytes
	alone  bool // the first part goes before the others

	first map[string]int // where an item stands first; nil where one part is enough
	same  []sameAs       // items that are not sent a second time

	// Parts write to their own items' places; err and failed are guarded.
	answers []bool
	states  []ItemState
	mu      sync.Mutex
	err     error
	fatal   bool
}

type sameAs struct{ item, first int }

func (f *Filter) newBatch(items []string) *batch {
	return &batch{
		f: f, items: items, limit: f.batchBytes(),
		answers: make([]bool, len(items)), states: make([]ItemState, len(items)),
	}
}

// run cuts the items into parts and sends them.
func (b *batch) run(ctx context.Context) ([]bool, error) {
	slots := make(chan struct{}, b.f.batchParallel())
	var parts sync.WaitGroup
	if !b.onePart() {
		b.first = make(map[string]int, len(b.items))
	}
	for next := 0; next < len(b.items) && !b.stopped(); {
		s := getScratch()
		var part []int
		part, next = b.fill(s, next)
		if len(part) == 0 {
			putScratch(s)
			break
		}
		if b.alone {
			b.alone = false
			b.sendPart(ctx, s, part)
			continue
		}
		slots <- struct{}{}
		if b.stopped() { // while it waited
			putScratch(s)
			break
		}
		parts.Go(func() {
			b.sendPart(ctx, s, part)
			<-slots
		})
	}
	parts.Wait()
	b.copySame()
	return b.result()
}

// onePart tells whether all items certainly fit into one request, where the
// server itself sees duplicates in their order.
func (b *batch) onePart() bool {
	s := getScratch()
	defer putScratch(s)
	b.begin(&s.cmd)
	room := b.limit - s.cmd.Size()
	return len(b.items) == 1 || len(b.items) <= room/b.f.itemBytes()
}

// fill builds one command from the items at next and after, as many as fit.
func (b *batch) fill(s *scratch, next int) (part []int, rest int) {
	itemBytes := b.f.itemBytes()
	b.begin(&s.cmd)
	for ; next < len(b.items); next++ {
		item := b.items[next]
		if b.first != nil {
			if i, ok := b.first[item]; ok {
				b.same = append(b.same, sameAs{next, i})
				continue
			}
		}
		if len(part) > 0 && s.cmd.Size()+itemBytes > b.limit {
			break
		}
		if b.first != nil {
			b.first[item] = next
		}
		b.item(s, item)
		part = append(part, next)
	}
	return part, next
}

// itemBytes is the most that one item takes in a request: ,"SET","u1","",1
// and the digits of the last position, k times.
func (f *Filter) itemBytes() int {
	const around = len(`,"SET","u1","",1`)
	digits := 1
	for last := f.geo.Bits + headerBits; last >= 10; last /= 10 {
		digits++
	}
	return f.geo.Hashes * (around + digits)
}

func (f *Filter) batchBytes() int {
	if f.cfg.BatchBytes > 0 {
		return f.cfg.BatchBytes
	}
	return defaultBatchBytes
}

func (f *Filter) batchParallel() int {
	if f.cfg.BatchParallel > 0 {
		return f.cfg.BatchParallel
	}
	return defaultBatchParallel
}
