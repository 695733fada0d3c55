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
