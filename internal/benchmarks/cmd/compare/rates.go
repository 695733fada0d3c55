package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// measureRates plots how often absent items are found, and the formula.
func measureRates(a *arena, o options, r *report) error {
	if err := measureSchemes(r); err != nil {
		return err
	}
	return measureTypes(a, o, r)
}

// measureSchemes fills a Local of each scheme.
func measureSchemes(r *report) error {
	const n, asked = 20_000, 200_000
	items, others := emails("in-", 2*n), emails("out-", asked)
	schemes := []bloom.Scheme{bloom.SchemeBlocked, bloom.SchemeXXH3, bloom.SchemeFNV1a}
	var lines []line
	r.printf("**False positives at 1 in 100, %d items, %d look-ups; measured / formula**\n\n"+
		"| scheme | half of Capacity | Capacity | twice Capacity |\n|---|---|---|---|\n", n, asked)
	for _, scheme := range schemes {
		g, err := bloom.Config{Capacity: n, FPRate: rate, Scheme: scheme}.Geometry()
		if err != nil {
			return err
		}
		measured := line{name: scheme.String()}
		l := bloom.NewLocal(g)
		var cells []string
		for step := range 8 {
			for _, item := range items[step*n/4 : (step+1)*n/4] {
				l.Add(item)
			}
			found := 0
			for _, item := range others {
				if l.Exists(item) {
					found++
				}
			}
			x, in := float64(step+1)/4, uint64(step+1)*n/4
			share, want := float64(found)/asked, g.FalsePositiveRate(in)
			measured.points = append(measured.points, point{x, 100 * share})
			measured.formula = append(measured.formula, point{x, 100 * want})
			if slices.Contains([]int{1, 3, 7}, step) {
				cells = append(cells, fmt.Sprintf("%.3f%% / %.3f%%", 100*share, 100*want))
			}
		}
		lines = append(lines, measured)
		r.printf("| %s | %s | %s | %s |\n", scheme, cells[0], cells[1], cells[2])
	}
	r.printf("\n")
	return r.plot(chart{
		file: "rates", title: "False positives of a filter for 1 in 100; dots: measured, lines: the formula",
		x: "items / Capacity", y: "absent items found, %", lines: lines,
	})
}

// measureTypes fills each type in front of Redis. The formula is that of its
// Stats, from the set cells.
func measureTypes(a *arena, o options, r *report) error {
	n, asked := uint64(20_000), 50_000
	if o.short() {
		n, asked = 2_000, 2_000
	}
	c, err := a.client(a.url)
	if err != nil {
		return err
	}
	entrants, err := a.typed(c, n)
	if err != nil {
		return err
	}
	items, others := emails("in-", int(2*n)), emails("out-", asked)
	r.printf("**The types at 1 in 100, %d items, %d look-ups; measured / by Stats**\n\n"+
		"| type | half of Capacity | Capacity | twice Capacity |\n|---|---|---|---|\n", n, asked)
	var lines []line
	for _, e := range entrants {
		measured, row, err := e.rates(a, n, items, others)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		lines = append(lines, measured)
		r.printf("| %s%s |\n", e.name, row)
	}
	r.printf("\n")
	return r.plot(chart{
		file: "rates-types", title: "False positives of each type for 1 in 100; dots: measured, lines: by Stats",
		x: "items / Capacity", y: "absent items found, %", lines: lines,
	})
}

// rates fills a type with items, step by step to twice its Capacity n. It returns
// the measured rates beside those of its Stats, and both in a row of the table.
func (e entrant) rates(a *arena, n uint64, items, others []string) (measured line, row string, err error) {
	measured.name = e.name
	for step := range uint64(8) {
		if e.name == cuckooName && step > 3 {
			row += " | full"
			break
		}
		if err = e.set.add(items[step*n/4 : (step+1)*n/4]); err != nil {
			break
		}
		var found int
		if found, err = count(e.set, others, false); err != nil {
			break
		}
		var want float64
		if want, err = live(a, e.set.(filterSet).f); err != nil {
			break
		}
		x, share := float64(step+1)/4, float64(found)/float64(len(others))
		measured.points = append(measured.points, point{x, 100 * share})
		measured.formula = append(measured.formula, point{x, 100 * want})
		if slices.Contains([]uint64{1, 3, 7}, step) {
			row += fmt.Sprintf(" | %.3f%% / %.3f%%", 100*share, 100*want)
		}
	}
	return measured, row, err
}

// live returns the false positive rate in the set's Stats.
func live(a *arena, set any) (float64, error) {
	switch f := set.(type) {
	case *bloom.Filter:
		s, err := f.Stats(a.ctx)
		return s.LiveFPRate, err
	case *bloom.Window:
		s, err := f.Stats(a.ctx)
		return s.LiveFPRate, err
	case *bloom.Scalable:
		s, err := f.Stats(a.ctx)
		return s.LiveFPRate, err
	case *bloom.Sharded:
		s, err := f.Stats(a.ctx)
		return s.LiveFPRate, err
	case *bloom.Cuckoo:
		s, err := f.Stats(a.ctx)
		return s.LiveFPRate, err
	}
	return 0, fmt.Errorf("%T has no Stats", set)
}

// canned gives every request the same answer, without a network.
type canned []byte

func (c canned) RoundTrip(_ context.Context, _ *upstash.Request, resp *upstash.Response) error {
	resp.StatusCode = 200
	resp.Body = append(resp.Body, c...)
	return nil
}

// measureGrowth plots the client's work for a call, without a network, against
// the number of bits. A real server first gives the answers.
func measureGrowth(a *arena, o options, r *report) error {
	lines := []line{{name: "Add"}, {name: "Exists"}, {name: "AddAll(1,000), an item"}, {name: "ExistsAll(1,000), an item"}}
	r.printf("**The client's own CPU time a call, by the bits of the filter; ns, without a network**\n\n" +
		"| bits | Add | Exists | AddAll(1,000), an item | ExistsAll(1,000), an item |\n|---|---|---|---|---|\n")
	for _, m := range []uint64{1_000, 100_000, 10_000_000, 1_000_000_000, 4_000_000_000} {
		m = m / 53 * 53
		cfg := bloom.Config{Bits: m, Hashes: 4}
		var c contest
		for i, call := range []struct {
			size  int
			write bool
		}{{1, true}, {1, false}, {1000, true}, {1000, false}} {
			one, err := a.repeated(cfg, call.size, call.write)
			if err != nil {
				return err
			}
			one.name = lines[i].name
			c.contestants = append(c.contestants, one)
		}
		c.callers = 1
		if err := c.play(a.ctx, settings{o.rounds, min(o.turn, 200*time.Millisecond)}); err != nil {
			return err
		}
		text := ""
		for i, one := range c.contestants {
			ns := 1e3 * one.cpu().median / float64(one.items)
			lines[i].points = append(lines[i].points, point{float64(m), ns})
			text += fmt.Sprintf(" %s |", figure(ns))
		}
		r.printf("| %s |%s\n", figure(float64(m)), text)
	}
	r.printf("\n")
	for _, l := range lines {
		byTime := func(a, b point) int { return cmp.Compare(a.y, b.y) }
		r.atMost("the dearest size of a filter against the cheapest, "+l.name, 1.5,
			exactly(slices.MaxFunc(l.points, byTime).y/slices.MinFunc(l.points, byTime).y))
	}
	return r.plot(chart{
		file: "growth", title: "The client's own CPU time, without a network",
		x: "bits of the filter", y: "ns an item", logX: true, logY: true, lines: lines,
	})
}

// repeated returns a call whose answer is always the server's second one.
func (a *arena) repeated(cfg bloom.Config, size int, write bool) (*contestant, error) {
	key := a.key("growth")
	t, err := a.tapped(a.url, key, cfg, size, write)
	if err != nil {
		return nil, err
	}
	if err := a.admin.Del(a.ctx, key).Err(); err != nil { // up to half a gigabyte
		return nil, err
	}
	c, err := a.client(a.url, upstash.WithTransport(canned(t.reply)))
	if err != nil {
		return nil, err
	}
	f, err := bloom.New(c, key, cfg)
	if err != nil {
		return nil, err
	}
	s, part := filterSet{a.calls, f}, window(members, 0, size)
	if write {
		return &contestant{items: size, do: func(uint64) error { return s.add(part) }}, nil
	}
	return &contestant{items: size, do: func(uint64) error {
		_, err := s.exists(part)
		return err
	}}, nil
}
