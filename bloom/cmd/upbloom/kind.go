package main

import (
	"context"
	"fmt"
	"time"

	"github.com/upbloom/upbloom/bloom"
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

// endOfGrowth says where a scalable filter for so many items at first stops
// growing, or returns "" for one that can have all five layers. The first is for
// 1,000 items at least, and each for four times as many as the one before.
func endOfGrowth(items uint64, layers int) string {
	if layers == 5 {
		return ""
	}
	if layers == 1 {
		return "it does not grow, because a second layer would pass 100 MB" + raiseMaxBytes
	}
	return fmt.Sprintf("it grows to %d layers, for %s items, and no further, because another layer would pass 100 MB"+
		raiseMaxBytes, layers, human.Count(max(items, 1000)*(1<<(2*layers)-1)/3))
}

const raiseMaxBytes = ", the default of MaxBytes: its programs may set a larger one on a larger plan"

// longestRecord is the record limit of most plans, in bytes. A scalable filter
// stops growing there, unless its program sets another limit.
const longestRecord = 100_000_000

// mostPart is how many bytes of a filter Load and Replace send in a request at most,
// with WithPartBytes.
const mostPart = 8 << 20
