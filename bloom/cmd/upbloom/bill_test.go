package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/lots"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
)

// billed is what calc says of a call with the flags, an AddAll and an ExistsAll.
func (sh *shell) billed(flags string, batch int) (add, look float64) {
	sh.t.Helper()
	args := strings.Fields(fmt.Sprintf("--json calc --adds %d --lookups %[1]d --batch %[1]d %s", batch, flags))
	var p struct{ Month month }
	out := sh.want(0, "", "", args...)
	if err := decodeSome(out, &p); err != nil || p.Month.Adds == nil || p.Month.Lookups == nil {
		sh.t.Fatalf("%s: %v", out, err)
	}
	return p.Month.Adds.Commands, p.Month.Lookups.Commands
}

// decodeSome reads the fields of v out of JSON with more fields.
func decodeSome(text string, v any) error { return json.Unmarshal([]byte(text), v) }

// both adds with one handle and looks up with another.
type both struct {
	handle
	reader handle
}

// lookUp asks with ExistsAll, or with Exists about one item.
func lookUp(ctx context.Context, h handle, items []string) error {
	if b, ok := h.(both); ok {
		h = b.reader
	}
	if one, ok := h.(interface {
		Exists(ctx context.Context, item string) (bool, error)
	}); ok && len(items) == 1 {
		_, err := one.Exists(ctx, items[0])
		return err
	}
	_, err := h.ExistsAll(ctx, items)
	return err
}

// A billedKind is a type with the flags by which calc means it.
type billedKind struct {
	flags  string
	must   bool // --must-exist has an effect
	large  bool // whether to count batches of several requests
	rounds int  // more if chance is in the count: by the shards of the items, or a Scalable's looks
	make   func(c *upstash.Client, must bool) (handle, error)
}

func billedKinds() []billedKind {
	const n, items = 100_000, "--items 100k"
	plain := func(p float64, scheme bloom.Scheme) func(*upstash.Client, bool) (handle, error) {
		return func(c *upstash.Client, must bool) (handle, error) {
			return bloom.New(c, "key", bloom.Config{Capacity: n, FPRate: p, Scheme: scheme, MustExist: must})
		}
	}
	window := func(panes int) func(*upstash.Client, bool) (handle, error) {
		return func(c *upstash.Client, must bool) (handle, error) {
			return bloom.NewWindow(c, "key", bloom.WindowConfig{
				Capacity: n, FPRate: 0.01, Span: 24 * time.Hour, Panes: panes, MustExist: must,
			})
		}
	}
	sharded := func(shards int) func(*upstash.Client, bool) (handle, error) {
		return func(c *upstash.Client, _ bool) (handle, error) {
			return bloom.NewSharded([]*upstash.Client{c}, "key",
				bloom.ShardedConfig{Capacity: n, FPRate: 0.01, Shards: shards})
		}
	}
	return []billedKind{
		{items, true, true, 1, plain(0.01, bloom.SchemeBlocked)},
		{items + " --rate 1e-6", true, false, 1, plain(1e-6, bloom.SchemeBlocked)},
		{items + " --scheme xxh3", true, false, 1, plain(0.01, bloom.SchemeXXH3)},
		{items + " --window 24h", true, true, 1, window(0)},
		{items + " --window 24h --panes 4", true, false, 1, window(4)},
		{"--items 1M --scalable", true, false, 20, func(c *upstash.Client, must bool) (handle, error) {
			return bloom.NewScalable(c, "key", bloom.ScalableConfig{Capacity: 10 * n, FPRate: 0.01, MustExist: must})
		}},
		{items + " --cuckoo", true, false, 1, func(c *upstash.Client, must bool) (handle, error) {
			return bloom.NewCuckoo(c, "key", bloom.CuckooConfig{Capacity: n, FPRate: 0.01, MustExist: must})
		}},
		{items + " --shards 2", false, true, 4, sharded(2)},
		{items + " --shards 16", false, false, 16, sharded(16)},
	}
}

// calc's line for each type, beside the server's count of commands.
func TestCalcAndTheServerAgree(t *testing.T) {
	for _, kind := range billedKinds() {
		for _, must := range []bool{false, true}[:1+btoi(kind.must)] {
			b := newBillCounter(t, kind, must)
			for _, batch := range []int{1, 10, 500, 1000, 30_000} {
				switch {
				case batch == 1, batch == 1000:
				case batch > 1000 && !kind.large, !testenv.Long():
					continue
				}
				b.agree(batch)
			}
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// billCounter counts what a filter's calls are billed.
type billCounter struct {
	*shell
	ctx   context.Context
	kind  billedKind
	flags string
	must  bool
	h     handle
	next  int // the number of the next item
}

func newBillCounter(t *testing.T, kind billedKind, must bool) *billCounter {
	b := &billCounter{shell: newShell(t), kind: kind, flags: kind.flags, must: must}
	if must {
		b.flags += " --must-exist"
	}
	// How many panes of a window end does not depend on the time of the day: the
	// clock begins in the middle of one.
	const pane = 24*time.Hour + 4*time.Second
	b.s.FastForward(pane*3/2 - time.Duration(time.Now().UnixNano())%pane)
	lot := 0.0 // from a sequence spread evenly from 0 to 1
	b.ctx = lots.With(t.Context(), func() float64 {
		lot = math.Mod(lot+math.Phi, 1)
		return lot
	})
	b.h = b.open()
	if _, err := b.h.Create(b.ctx); err != nil {
		t.Fatal(err)
	}
	_, _ = b.h.AddAll(b.ctx, []string{"first"})
	return b
}

// open returns a handle of a new client.
func (b *billCounter) open() handle {
	h, err := b.kind.make(b.s.Client(), b.must)
	if err != nil {
		b.t.Fatal(err)
	}
	return h
}

// agree compares calc's bill of a batch with the server's count, also for small
// batches, each with a new client.
func (b *billCounter) agree(batch int) {
	b.t.Helper()
	rounds := b.kind.rounds
	if batch > 1000 {
		rounds = 1
	}
	var adds, looks, newAdds, newLooks int64
	for range rounds {
		b.count(b.h, batch, &adds, &looks)
		if batch <= 10 {
			b.count(both{b.open(), b.open()}, batch, &newAdds, &newLooks)
		}
	}
	b.compare(b.flags, batch, float64(adds)/float64(rounds), float64(looks)/float64(rounds))
	if batch <= 10 {
		b.compare(b.flags+" --new-client", batch, float64(newAdds)/float64(rounds), float64(newLooks)/float64(rounds))
	}
}

// items returns new items.
func (b *billCounter) items(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("item-%d", b.next)
		b.next++
	}
	return list
}

// count adds new items and looks them up.
func (b *billCounter) count(h handle, batch int, adds, looks *int64) {
	b.t.Helper()
	list := b.items(batch)
	b.s.ResetStats()
	if _, err := h.AddAll(b.ctx, list); err != nil {
		b.t.Fatal(b.flags, batch, err)
	}
	*adds += b.s.Stats().Billed
	b.s.ResetStats()
	if err := lookUp(b.ctx, h, list); err != nil {
		b.t.Fatal(b.flags, batch, err)
	}
	*looks += b.s.Stats().Billed
}

func (b *billCounter) compare(flags string, batch int, adds, looks float64) {
	b.t.Helper()
	add, look := b.billed(flags, batch)
	near := func(said, counted float64) bool { return math.Abs(said-counted) <= 0.15+0.06*said }
	if !near(add, adds) || !near(look, looks) {
		b.t.Errorf("%s, %d items: calc says %.2f and %.2f commands, the server counts %.2f and %.2f",
			flags, batch, add, look, adds, looks)
	}
}
