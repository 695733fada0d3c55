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

// monthly is what calc says of a month.
func (sh *shell) monthly(flags string) month {
	sh.t.Helper()
	var p struct{ Month month }
	out := sh.want(0, "", "", strings.Fields("--json calc --monthly "+flags)...)
	if err := decodeSome(out, &p); err != nil || p.Month.Filters == 0 {
		sh.t.Fatalf("%s: %v", out, err)
	}
	return p.Month
}

// calc counts the looks of a scalable filter and its growth, in all layers that
// the items of a month need.
func TestCalcCountsGrowth(t *testing.T) {
	scalable := func(c *upstash.Client, must bool) (handle, error) {
		return bloom.NewScalable(c, "key", bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01, MustExist: must})
	}
	for _, c := range []struct {
		items, batch, layers int
		must, long           bool
	}{
		{900, 1, 1, false, false},
		{6_000, 10, 3, false, false}, // 5,000 in two layers
		{24_000, 250, 4, true, false},
		{30_000, 1, 4, false, true},
		{60_000, 100, 4, false, true},
		{400_000, 10_000, 5, false, true}, // beyond the last layer
	} {
		if c.long && !testenv.Long() {
			continue
		}
		b := newBillCounter(t, billedKind{flags: "--items 1k --scalable", make: scalable}, c.must)
		b.s.ResetStats()
		for range c.items / c.batch {
			if _, err := b.h.AddAll(b.ctx, b.items(c.batch)); err != nil {
				t.Fatal(err)
			}
		}
		m := b.monthly(fmt.Sprintf("%s --adds %d --batch %d", b.flags, c.items, c.batch))
		if got := float64(b.s.Stats().Billed); math.Abs(got-m.Commands) > 6+0.04*got {
			t.Errorf("%+v: calc says %.0f commands, the server counts %.0f", c, m.Commands, got)
		}
		s, err := b.h.(*bloom.Scalable).Stats(b.ctx)
		if err != nil || len(s.Layers) != c.layers || m.Layers != c.layers {
			t.Errorf("%+v: calc says %d layers, there are %d, %v", c, m.Layers, len(s.Layers), err)
		}
		if stored := float64(s.Bytes) / 1e9; m.StoredGB < stored || m.StoredGB > stored*1.01 {
			t.Errorf("%+v: calc says %v GB, there are %v", c, m.StoredGB, stored)
		}
	}
}

// A long-lived client of a window asks for the time, and clears a pane a day:
// calc counts both.
func TestCalcCountsTheTime(t *testing.T) {
	for _, each := range []time.Duration{time.Minute, 11 * time.Minute, 43 * time.Minute} {
		for _, batch := range []int{1, 2} {
			b := newBillCounter(t, billedKind{
				flags: "--items 1k --window 24h", make: func(c *upstash.Client, _ bool) (handle, error) {
					return bloom.NewWindow(c, "key", bloom.WindowConfig{Capacity: 1000, FPRate: 0.01, Span: 24 * time.Hour})
				},
			}, false)
			b.s.ResetStats()
			calls := int(2 * 24 * time.Hour / each)
			for range calls {
				b.s.FastForward(each)
				if _, err := b.h.AddAll(b.ctx, b.items(batch)); err != nil {
					t.Fatal(err)
				}
			}
			m := b.monthly(fmt.Sprintf("%s --adds %d --batch %d", b.flags, 15*calls*batch, batch))
			if got := float64(b.s.Stats().Billed) * 15; math.Abs(got-m.Commands) > 0.02*got {
				t.Errorf("%v, %d items: calc says %.0f commands, the server counts %.0f", each, batch, m.Commands, got)
			}
			if m.Times == 0 || m.Turns == 0 {
				t.Errorf("%+v", m)
			}
		}
	}
	// A second process asks by itself, and a client that is new for each call is
	// billed in the calls.
	sh := newShell(t)
	const flags = "--items 1k --window 24h --adds 1M"
	one, two := sh.monthly(flags), sh.monthly(flags+" --processes 2")
	if anew := sh.monthly(flags + " --new-client"); two.Times != 2*one.Times || anew.Times != 0 || one.Times != 4320 {
		t.Errorf("%v, %v with two processes, %v with new clients", one.Times, two.Times, anew.Times)
	}
	sh.want(2, "it has no effect without --mirror or --window", "", "calc", "-n", "1k", "--processes", "2")
}

// calc says what its sum leaves out, and how much that is at most.
func TestCalcSaysWhatItLeavesOut(t *testing.T) {
	sh := newShell(t)
	ctx, client, next := t.Context(), sh.s.Client(), 0
	billed := func(call func(key string) error) float64 {
		t.Helper()
		next++
		sh.s.ResetStats()
		if err := call(fmt.Sprintf("key-%d", next)); err != nil {
			t.Fatal(err)
		}
		return float64(sh.s.Stats().Billed)
	}
	for flags, h := range map[string]func(key string, ttl time.Duration) (handle, error){
		"": func(key string, ttl time.Duration) (handle, error) {
			return bloom.New(client, key, bloom.Config{Capacity: 1000, FPRate: 0.01, TTL: ttl})
		},
		"--scalable": func(key string, ttl time.Duration) (handle, error) {
			return bloom.NewScalable(client, key, bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01, TTL: ttl})
		},
		"--cuckoo": func(key string, _ time.Duration) (handle, error) {
			return bloom.NewCuckoo(client, key, bloom.CuckooConfig{Capacity: 1000, FPRate: 0.01})
		},
		"--shards 3": func(key string, ttl time.Duration) (handle, error) {
			return bloom.NewSharded([]*upstash.Client{client}, key, bloom.ShardedConfig{
				Capacity: 1000, FPRate: 0.01, Shards: 3, TTL: ttl,
			})
		},
		"--window 1h": func(key string, _ time.Duration) (handle, error) {
			return bloom.NewWindow(sh.s.Client(), key, bloom.WindowConfig{Capacity: 1000, FPRate: 0.01, Span: time.Hour})
		},
		"--window 1h --expire-idle": func(key string, _ time.Duration) (handle, error) {
			return bloom.NewWindow(sh.s.Client(), key, bloom.WindowConfig{
				Capacity: 1000, FPRate: 0.01, Span: time.Hour, ExpireIdle: true,
			})
		},
	} {
		m := sh.monthly("-n 1k --adds 1k " + flags).LeftOut
		for _, ttl := range []time.Duration{0, time.Hour}[:1+btoi(m.TTL > 0)] {
			got := billed(func(key string) error {
				f, err := h(key, ttl)
				if err == nil {
					_, err = f.Create(ctx)
				}
				return err
			})
			if want := m.Create + m.TTL*float64(btoi(ttl > 0)); got != want {
				t.Errorf("%s, TTL %v: calc says %v commands to make it, the server counts %v", flags, ttl, want, got)
			}
		}
	}
	for _, n := range []int{50, 200, 10_000} {
		f, err := bloom.New(client, fmt.Sprintf("watched-%d", n), bloom.Config{
			Capacity: uint64(n), FPRate: 0.01, WarnFill: func(bloom.Stats) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		got := billed(func(string) error {
			for err == nil && calls < max(n, 2000) {
				_, err = f.Add(ctx, fmt.Sprint(calls%n))
				calls++
			}
			return err
		})
		most := sh.monthly(fmt.Sprintf("-n %d --adds 1k", n)).LeftOut.WarnFill
		if looks := got - float64(calls); looks == 0 || looks > most*float64(calls) {
			t.Errorf("%d items: %v looks in %d Adds, calc says %v at most", n, looks, calls, most)
		}
	}
	f, err := bloom.NewCuckoo(client, "cuckoo", bloom.CuckooConfig{Capacity: 2000, FPRate: 0.0001})
	if err != nil {
		t.Fatal(err)
	}
	moves := 0.0
	for i := range 2000 {
		moves = max(moves, billed(func(string) error { _, err := f.Add(ctx, fmt.Sprint(i)); return err })-3)
	}
	if most := sh.monthly("-n 2k --cuckoo --adds 1k").LeftOut.Moves; moves == 0 || moves > most {
		t.Errorf("a write took %v commands more than usual, calc says %v at most", moves, most)
	}
}
