package main

import (
	"context"
	"fmt"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

// The kinds of filters, as the program names them: the text of a [bloom.Kind],
// but for a sharded one, whose shards are of KindShard.
const (
	plainKind    = "filter"
	windowKind   = "window"
	scalableKind = "scalable"
	cuckooKind   = "cuckoo"
	shardedKind  = "sharded"
)

// kindOf names the kind of a filter, or of the shard that it is.
func kindOf(s bloom.Stats) string {
	if s.Kind == bloom.KindShard && s.Parts != nil {
		return shardedKind
	}
	return s.Kind.String()
}

// kindNoun names a kind in a sentence.
func kindNoun(kind string) string {
	switch kind {
	case plainKind:
		return "plain filter"
	case scalableKind, cuckooKind, shardedKind:
		return kind + " filter"
	case "shard":
		return "shard of a sharded filter"
	}
	return kind
}

// A keeper keeps items: a filter of any kind, or what calc compares it with.
type keeper interface {
	AddAll(ctx context.Context, items []string) ([]bool, error)
	ExistsAll(ctx context.Context, items []string) ([]bool, error)
}

// A handle is a filter of any kind, as far as the commands need it.
type handle interface {
	keeper
	Create(ctx context.Context) (bool, error)
	Delete(ctx context.Context) (bool, error)
	Stats(ctx context.Context) (bloom.Stats, error)
	Geometry() bloom.Geometry // of a pane, the first layer or a shard
}

// A handle that is an expirer can set when its filter expires.
type expirer interface {
	Expire(ctx context.Context, ttl time.Duration) (bool, error)
	Persist(ctx context.Context) (bool, error)
}

// A spec says what a new filter of any kind is like. Each kind takes of it what
// it has.
type spec struct {
	bloom.Config
	span       time.Duration
	panes      int
	expireIdle bool
	shards     int
}

// newHandle returns a handle to a filter of a kind. It makes no request.
func newHandle(c *upstash.Client, kind, key string, s spec) (handle, error) {
	switch kind {
	case windowKind:
		return bloom.NewWindow(c, key, bloom.WindowConfig{
			Capacity: s.Capacity, FPRate: s.FPRate, Seed: s.Seed,
			Span: s.span, Panes: s.panes, ExpireIdle: s.expireIdle,
		})
	case scalableKind:
		return bloom.NewScalable(c, key, bloom.ScalableConfig{
			Capacity: s.Capacity, FPRate: s.FPRate, Seed: s.Seed, TTL: s.TTL,
		})
	case cuckooKind:
		return bloom.NewCuckoo(c, key, bloom.CuckooConfig{Capacity: s.Capacity, FPRate: s.FPRate, Seed: s.Seed})
	case shardedKind:
		return bloom.NewSharded([]*upstash.Client{c}, key, bloom.ShardedConfig{
			Capacity: s.Capacity, FPRate: s.FPRate, Seed: s.Seed, Shards: s.shards,
		})
	}
	return bloom.New(c, key, s.Config)
}

// openHandle opens the filter at the key, which must be of the kind.
func openHandle(ctx context.Context, c *upstash.Client, kind, key string, seed uint64) (handle, error) {
	switch kind {
	case windowKind:
		return bloom.OpenWindow(ctx, c, key, bloom.WindowConfig{Seed: seed})
	case scalableKind:
		return bloom.OpenScalable(ctx, c, key, bloom.ScalableConfig{Seed: seed})
	case cuckooKind:
		return bloom.OpenCuckoo(ctx, c, key, bloom.CuckooConfig{Seed: seed})
	case shardedKind:
		return bloom.OpenSharded(ctx, []*upstash.Client{c}, key, bloom.ShardedConfig{Seed: seed})
	}
	return bloom.Open(ctx, c, key, bloom.Config{Seed: seed})
}

// A scalable filter has mostLayers at most, and the first of them is for
// leastLayer items at least.
const (
	mostLayers = 5
	leastLayer = 1000
)

// cells returns the length in bytes of a string of this geometry, without its
// header.
func cells(g bloom.Geometry) uint64 { return g.Bytes(bloom.LayoutHeaded) - format.HeaderBytes }

// endOfGrowth says where a scalable filter for so many items at first stops
// growing. It returns "" for one that can have all its layers. Each layer is
// four times as long as the one before.
func endOfGrowth(items uint64, first bloom.Geometry) string {
	layers, all, bytes := 0, uint64(0), uint64(format.HeaderBytes)
	items = max(items, leastLayer)
	for layers < mostLayers && (layers == 0 || bytes+cells(first) <= longestRecord) {
		layers, all, bytes = layers+1, all+items, bytes+cells(first)
		items, first.Bits = 4*items, 4*first.Bits
	}
	switch layers {
	case mostLayers:
		return ""
	case 1:
		return "it does not grow, because a second layer would pass 100 MB: its programs may set a larger" +
			" MaxBytes on a larger plan"
	}
	return fmt.Sprintf("it grows to %s, for %s items, and no further, because another layer would pass"+
		" 100 MB", human.Counted(uint64(layers), "layer"), human.Count(all))
}

// longestRecord is the record limit of most plans, in bytes. A scalable filter
// stops growing there, unless its program sets another limit.
const longestRecord = 100_000_000
