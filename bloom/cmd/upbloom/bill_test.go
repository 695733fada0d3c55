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

// decodeSome reads the fields of v out of JSON that has others too.
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

// calc's line for each type, beside the commands that the server counts. If
// chance is in the count, by the shards of the items or by a Scalable's looks,
// it is the average of several calls.
func TestCalcAndTheServerAgree(t *testing.T) {
	const n, items = 100_000, "--items 100k"
	window := bloom.WindowConfig{Capacity: n, FPRate: 0.01, Span: 24 * time.Hour}
	sharded := func(shards int) func(*upstash.Client, bool) (handle, error) {
		return func(c *upstash.Client, _ bool) (handle, error) {
			return bloom.NewSharded([]*upstash.Client{c}, "key",
				bloom.ShardedConfig{Capacity: n, FPRate: 0.01, Shards: shards})
		}
	}
	plain := func(p float64, scheme bloom.Scheme) func(*upstash.Client, bool) (handle, error) {
		return func(c *upstash.Client, must bool) (handle, error) {
			return bloom.New(c, "key", bloom.Config{Capacity: n, FPRate: p, Scheme: scheme, MustExist: must})
		}
	}
	mays := map[bool][]bool{true: {false, true}, false: {false}}
	for _, kind := range []struct {
		flags  string
		must   bool // whether --must-exist has an effect
		large  bool // whether to count batches of several requests
		rounds int
		make   func(c *upstash.Client, must bool) (handle, error)
	}{
		{items, true, true, 1, plain(0.01, bloom.SchemeBlocked)},
		{items + " --rate 1e-6", true, false, 1, plain(1e-6, bloom.SchemeBlocked)},
		{items + " --scheme xxh3", true, false, 1, plain(0.01, bloom.SchemeXXH3)},
		{items + " --window 24h", true, true, 1, func(c *upstash.Client, must bool) (handle, error) {
			cfg := window
			cfg.MustExist = must
			return bloom.NewWindow(c, "key", cfg)
		}},
		{items + " --window 24h --panes 4", true, false, 1, func(c *upstash.Client, must bool) (handle, error) {
			cfg := window
			cfg.MustExist, cfg.Panes = must, 4
			return bloom.NewWindow(c, "key", cfg)
		}},
		{"--items 1M --scalable", true, false, 20, func(c *upstash.Client, must bool) (handle, error) {
			return bloom.NewScalable(c, "key", bloom.ScalableConfig{Capacity: 10 * n, FPRate: 0.01, MustExist: must})
		}},
		{items + " --cuckoo", true, false, 1, func(c *upstash.Client, must bool) (handle, error) {
			return bloom.NewCuckoo(c, "key", bloom.CuckooConfig{Capacity: n, FPRate: 0.01, MustExist: must})
		}},
		{items + " --shards 2", false, true, 4, sharded(2)},
		{items + " --shards 16", false, false, 16, sharded(16)},
	} {
		for _, must := range mays[kind.must] {
			flags := kind.flags
			if must {
				flags += " --must-exist"
			}
			sh := newShell(t)
			lot := 0.0 // of a sequence that is spread evenly from 0 to 1
			ctx := lots.With(t.Context(), func() float64 {
				lot = math.Mod(lot+math.Phi, 1)
				return lot
			})
			open := func(c *upstash.Client) handle {
				h, err := kind.make(c, must)
				if err != nil {
					t.Fatal(err)
				}
				return h
			}
			h := open(sh.s.Client())
			if _, err := h.Create(ctx); err != nil {
				t.Fatal(err)
			}
			_, _ = h.AddAll(ctx, []string{"first"})
			next := 0
			batches := []int{1, 10, 500, 1000, 30_000}
			if !kind.large {
				batches = batches[:4]
			}
			for _, batch := range batches {
				rounds := kind.rounds
				if batch > 1000 {
					rounds = 1
				}
				var adds, looks, newAdds, newLooks int64
				for range rounds {
					count := func(h handle, adds, looks *int64) {
						list := make([]string, batch)
						for i := range list {
							list[i] = fmt.Sprintf("item-%d", next)
							next++
						}
						sh.s.ResetStats()
						if _, err := h.AddAll(ctx, list); err != nil {
							t.Fatal(flags, batch, err)
						}
						*adds += sh.s.Stats().Billed
						sh.s.ResetStats()
						if err := lookUp(ctx, h, list); err != nil {
							t.Fatal(flags, batch, err)
						}
						*looks += sh.s.Stats().Billed
					}
					count(h, &adds, &looks)
					if batch > 10 {
						continue
					}
					// Each of the two calls has a new client.
					count(both{open(sh.s.Client()), open(sh.s.Client())}, &newAdds, &newLooks)
				}
				said := func(flags string, adds, looks int64) {
					t.Helper()
					add, look := sh.billed(flags, batch)
					near := func(said float64, counted int64) bool {
						return math.Abs(said-float64(counted)/float64(rounds)) <= 0.15+0.06*said
					}
					t.Logf("%-44s batch %6d: says %6.2f and %6.2f, counted %6.2f and %6.2f", flags, batch, add, look,
						float64(adds)/float64(rounds), float64(looks)/float64(rounds))
					if !near(add, adds) || !near(look, looks) {
						t.Errorf("%s, %d items: calc says %.2f and %.2f commands, the server counts %.2f and %.2f", flags,
							batch, add, look, float64(adds)/float64(rounds), float64(looks)/float64(rounds))
					}
				}
				said(flags, adds, looks)
				if batch <= 10 {
					said(flags+" --new-client", newAdds, newLooks)
				}
			}
		}
	}
}
