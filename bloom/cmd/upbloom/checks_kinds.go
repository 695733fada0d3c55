package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// A step is an operation on a filter. It reports whether its answer was right.
type step struct {
	name string
	run  func() (bool, error)
}

// inTurn runs steps until one fails.
func inTurn(steps []step) error {
	for _, s := range steps {
		switch ok, err := s.run(); {
		case err != nil:
			return fmt.Errorf("%s: %w", s.name, err)
		case !ok:
			return wrongf("%s", s.name)
		}
	}
	return nil
}

// askFilter runs a filter from Create to Delete, with each operation by script.
func askFilter(ctx context.Context, p *patient) (string, error) {
	cfg := bloom.Config{Capacity: 1000, FPRate: 0.001, TTL: scratchTTL}
	f, err := bloom.New(p.client, p.key("filter"), cfg)
	if err != nil {
		return "", err
	}
	union, err := bloom.New(p.client, p.key("union"), cfg)
	if err != nil {
		return "", err
	}
	l := bloom.NewLocal(f.Geometry())
	l.Add("of-replace")
	return "", inTurn([]step{
		{"Create", func() (bool, error) { return f.Create(ctx) }},
		{"Add", func() (bool, error) { return f.Add(ctx, "of-add") }},
		{"Add again", func() (bool, error) { seen, err := f.Add(ctx, "of-add"); return !seen, err }},
		{"Load", func() (bool, error) {
			r, err := f.Load(ctx, slices.Values([]string{"of-load"}))
			return r.NewBits > 0, err
		}},
		{"Union", func() (bool, error) { return true, bloom.Union(ctx, union, f) }},
		{"Exists", func() (bool, error) {
			all, err := union.ExistsAll(ctx, []string{"of-add", "of-load", "never"})
			return err == nil && slices.Equal(all, []bool{true, true, false}), err
		}},
		{"Replace", func() (bool, error) { return true, f.Replace(ctx, l) }},
		{"Snapshot", func() (bool, error) {
			s, err := f.Snapshot(ctx)
			return err == nil && s.Exists("of-replace") && !s.Exists("of-add"), err
		}},
		{"Stats", func() (bool, error) {
			s, err := f.Stats(ctx)
			return s.Items == 1 && s.TTL > 0 && s.TTL <= scratchTTL, err
		}},
		{"Delete", func() (bool, error) { return f.Delete(ctx) }},
		{"Delete", func() (bool, error) { return union.Delete(ctx) }},
	})
}

// askKinds makes one of each other kind, adds to it and removes it.
func askKinds(ctx context.Context, p *patient) (string, error) {
	w, err := bloom.NewWindow(p.client, p.key("window"), bloom.WindowConfig{
		Capacity: 100, FPRate: 0.01, Span: 20 * time.Second, ExpireIdle: true,
	})
	if err != nil {
		return "", err
	}
	l, err := bloom.NewScalable(p.client, p.key("layers"), bloom.ScalableConfig{
		Capacity: 1000, FPRate: 0.01, TTL: scratchTTL,
	})
	if err != nil {
		return "", err
	}
	c, err := bloom.NewCuckoo(p.client, p.key("cuckoo"), bloom.CuckooConfig{Capacity: 100, FPRate: 0.01})
	if err != nil {
		return "", err
	}
	s, err := bloom.NewSharded([]*upstash.Client{p.client}, p.key("shards"), bloom.ShardedConfig{
		Capacity: 1000, FPRate: 0.01, Shards: 1,
	})
	if err != nil {
		return "", err
	}
	expire := func(kind, key string) step { // they have no TTL of their own
		return step{kind + ": Expire", func() (bool, error) { return p.client.Expire(ctx, p.key(key), scratchTTL) }}
	}
	steps := slices.Concat(
		lifeOf(ctx, windowKind, w), lifeOf(ctx, scalableKind, l),
		lifeOf(ctx, shardedKind, s, expire(shardedKind, "shards:0")),
		lifeOf(ctx, cuckooKind, c, expire(cuckooKind, "cuckoo")),
	)
	return "", inTurn(steps)
}

// lifeOf runs a filter of any kind from Create to Delete. The steps of first
// follow Create.
func lifeOf(ctx context.Context, kind string, h handle, first ...step) []step {
	items := []string{"a", "b", "never"}
	return slices.Concat([]step{
		{kind + ": Create", func() (bool, error) { return h.Create(ctx) }},
	}, first, []step{
		{kind + ": AddAll", func() (bool, error) {
			areNew, err := h.AddAll(ctx, items[:2])
			return err == nil && !slices.Contains(areNew, false), err
		}},
		{kind + ": ExistsAll", func() (bool, error) {
			areIn, err := h.ExistsAll(ctx, items)
			return err == nil && slices.Equal(areIn, []bool{true, true, false}), err
		}},
		{kind + ": Delete", func() (bool, error) { return h.Delete(ctx) }},
	})
}
