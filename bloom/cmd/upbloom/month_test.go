package main

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

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

// calc counts the looks of a scalable filter and its growth, in all layers for
// the items of a month.
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
					return bloom.NewWindow(c, "key", bloom.WindowConfig{
						Capacity: 1000, FPRate: 0.01, Span: 24 * time.Hour,
					})
				},
			}, false)
			s, err := b.h.(*bloom.Window).Stats(b.ctx)
			if err != nil {
				t.Fatal(err)
			}
			// From the middle of an epoch, where a billCounter begins, to a quarter of the next: two
			// panes are cleared, whenever the test runs.
			b.s.FastForward(s.PaneSpan * 3 / 4)
			_, _ = b.h.AddAll(b.ctx, b.items(1))
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
				t.Errorf("%v, %d items: calc says %.0f commands, the server counts %.0f", each, batch,
					m.Commands, got)
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
	text := append([]string{"calc", "--new-client"}, strings.Fields(flags)...)
	sh.want(0, "Add              2 commands, one for the time; a few more", "", text...)
	sh.want(2, "it has no effect without --mirror", "", "calc", "-n", "1k", "--ticker")
	sh.want(2, "say how many look-ups there are, or set --ticker", "", "calc", "-n", "1k", "--mirror", "1s")
	sh.want(2, "it has no effect without --mirror or --window", "", "calc", "-n", "1k", "--processes", "2")
}

// calc says what its sum leaves out, and how much that is at most.
func TestCalcSaysWhatItLeavesOut(t *testing.T) {
	sh := newShell(t)
	ctx, client, next := t.Context(), sh.s.Client(), 0
	const pane = time.Hour + 4*time.Second // the Add of a window comes in its midst
	sh.s.FastForward(pane*3/2 - time.Duration(time.Now().UnixNano())%pane)
	if _, err := client.ServerTime(ctx); err != nil { // which the sum has
		t.Fatal(err)
	}
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
		"--shards 3": func(key string, _ time.Duration) (handle, error) {
			return bloom.NewSharded([]*upstash.Client{sh.s.Client()}, key, bloom.ShardedConfig{
				Capacity: 1000, FPRate: 0.01, Shards: 3,
			})
		},
		"--window 1h": func(key string, _ time.Duration) (handle, error) {
			return bloom.NewWindow(client, key, bloom.WindowConfig{
				Capacity: 1000, FPRate: 0.01, Span: time.Hour,
			})
		},
		"--window 1h --expire-idle": func(key string, _ time.Duration) (handle, error) {
			return bloom.NewWindow(client, key, bloom.WindowConfig{
				Capacity: 1000, FPRate: 0.01, Span: time.Hour, ExpireIdle: true,
			})
		},
	} {
		m := sh.monthly("-n 1k --adds 1k " + flags).LeftOut
		if m.Make > 0 {
			got := billed(func(key string) error {
				f, err := h(key, 0)
				if err == nil {
					_, err = f.AddAll(ctx, []string{"a"})
				}
				return err
			})
			if got != 1+m.Make || m.Create != 0 {
				t.Errorf("%s: calc says %+v, the server counts %v commands for the first Add", flags, m, got)
			}
			continue
		}
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
}

// calc counts the moves in a cuckoo filter that fills up, and says how many
// there are at most.
func TestCalcCountsMoves(t *testing.T) {
	redis := testenv.Redis(t) // of the embedded server, the scripts are slow
	for _, c := range []struct {
		items, batch int
		rate         float64
	}{
		{3_000, 1, 0.01}, {20_000, 100, 0.01}, {40_000, 500, 0.001}, {20_000, 100, 1e-7}, {20_000, 10, 1e-4},
	} {
		sh := newShell(t, upstashtest.WithRedis(redis))
		f, err := bloom.NewCuckoo(sh.s.Client(), fmt.Sprint(c), bloom.CuckooConfig{
			Capacity: uint64(c.items), FPRate: c.rate, MustExist: true,
		})
		if err == nil {
			_, err = f.Create(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		sum, most := 0.0, 0.0
		for i := 0; i < c.items; i += c.batch {
			sh.s.ResetStats()
			items := strings.Fields(numbered(fmt.Sprint("item-", i), c.batch))
			if _, err := f.AddAll(t.Context(), items); err != nil {
				t.Fatal(err)
			}
			billed := float64(sh.s.Stats().Billed)
			sum, most = sum+billed, max(most, billed)
			if i+c.batch != c.items*3/10 && i+c.batch != c.items {
				continue
			}
			m := sh.monthly(fmt.Sprintf("-n %d -p %v --cuckoo --adds %d --batch %d", c.items, c.rate,
				i+c.batch, c.batch))
			if math.Abs(sum-m.Commands) > 0.1*sum {
				t.Errorf("%+v: after %d items calc says %.0f commands, the server counts %.0f", c, i+c.batch,
					m.Commands, sum)
			}
			if limit := m.LeftOut.Full * m.Adds.Commands; most > limit {
				t.Errorf("%+v: after %d items a write took %v commands, calc says %.1f at most", c, i+c.batch,
					most, limit)
			}
		}
	}
}

// With --ttl calc counts the making of a filter that has expired.
func TestCalcCountsLives(t *testing.T) {
	for flags, make := range map[string]func(c *upstash.Client) (handle, error){
		"": func(c *upstash.Client) (handle, error) {
			return bloom.New(c, "key", bloom.Config{Capacity: 1000, FPRate: 0.01, TTL: 6 * time.Hour})
		},
		"--must-exist": func(c *upstash.Client) (handle, error) {
			return bloom.New(c, "key", bloom.Config{
				Capacity: 1000, FPRate: 0.01, TTL: 6 * time.Hour, MustExist: true,
			})
		},
		"--scalable": func(c *upstash.Client) (handle, error) {
			return bloom.NewScalable(c, "key", bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01, TTL: 6 * time.Hour})
		},
	} {
		b := newBillCounter(t, billedKind{
			make: func(c *upstash.Client, _ bool) (handle, error) { return make(c) },
		}, false)
		b.s.FastForward(7 * time.Hour)
		calls := 0
		b.s.ResetStats()
		for range 8 { // lives of 6 hours, in 2 days
			if flags != "" { // else an Add makes it
				if made, err := b.h.Create(b.ctx); err != nil || !made {
					t.Fatal(flags, made, err)
				}
			}
			for range 6 * 60 / 15 {
				if _, err := b.h.AddAll(b.ctx, b.items(1)); err != nil {
					t.Fatal(flags, err)
				}
				b.s.FastForward(15 * time.Minute)
				calls++
			}
			// A client knows the server's clock to half a round trip.
			b.s.FastForward(time.Minute)
		}
		m := b.monthly(fmt.Sprintf("-n 1k --ttl 6h --adds %d %s", 15*calls, flags))
		if got := float64(b.s.Stats().Billed) * 15; math.Abs(got-m.Commands) > 0.02*got {
			t.Errorf("%s: calc says %.0f commands, the server counts %.0f", flags, m.Commands, got)
		}
	}
	sh := newShell(t)
	sh.want(2, "--ttl is for the sum of a month", "", "calc", "-n", "1k", "--ttl", "1d")
	sh.want(2, "--ttl has no effect with --window", "", "calc", "-n", "1k", "--ttl", "1d", "--window", "1d")
	sh.want(0, "  making         120 commands, each time a filter has expired\n", "",
		"calc", "-n", "1M", "--ttl", "1d", "--adds", "1k")
}
