package proof

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/zeebo/xxh3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// A client that opens a filter uses the opened handle from then on. The model
// does not know which handle made a call: with what is not in the string, an
// opened handle must answer as a configured one.

// secretSeed is the seed of the handles that have one.
const secretSeed = 0x5eed5eed5eed5eed

// drawSeed draws the seed of a history's handles.
func drawSeed(rng *rand.Rand) uint64 {
	if rng.IntN(3) == 0 {
		return secretSeed
	}
	return 0
}

// seedTag returns the seed's tag in a header, by the documentation of the
// format.
func seedTag(seed uint64) int64 {
	if seed == 0 {
		return 0
	}
	return int64(1 + xxh3.Hash(binary.LittleEndian.AppendUint64(nil, seed))%127)
}

// config returns the Config with which Open makes a handle like a configured one.
func (f Filters) config(parts bool) bloom.Config {
	cfg := bloom.Config{
		Seed: f.Seed, TTL: f.TTL, MustExist: f.MustExist, MissingIsEmpty: f.MissingIsEmpty, Reads: f.Reads,
		BatchParallel: f.parallel(),
	}
	if parts {
		cfg.BatchBytes = 1
	}
	return cfg
}

// adopt makes an opened handle the client's own, if it has the Config's
// geometry. The answer says whether it has.
func adopt[T any, H interface {
	*T
	fmt.Stringer
}](at *atomic.Pointer[T], opened H, err error) (Result, error) {
	if err != nil {
		return Result{}, err
	}
	fits := opened.String() == H(at.Load()).String()
	if fits {
		at.Store(opened)
	}
	return Result{Yes: []bool{fits}}, nil
}

// adopted reports whether c is an Open, and its client has used the handle
// since.
func (c *called) adopted() bool {
	r := c.result
	return c.call.Verb == Open && r.End == Answered && (len(r.Yes) == 0 || r.Yes[0])
}

// open opens the filter. A Mirror of it is a new one.
func (s *session) open(ctx context.Context, c Call) (Result, error) {
	at := &s.whole[c.Key]
	if c.Parts {
		at = &s.parts[c.Key]
	}
	f, err := bloom.Open(ctx, s.client, s.keys[c.Key], s.of.config(c.Parts))
	r, err := adopt(at, f, err)
	if err != nil || !r.Yes[0] || c.Parts || c.Key != 0 {
		return r, err
	}
	m, err := s.of.mirrorOf(f)
	s.mirror.Store(m)
	return r, err
}

// open opens the filter.
func (s *scalableSession) open(ctx context.Context, c Call) (Result, error) {
	at, layers := &s.whole[c.Key], s.of.Layers
	if c.Parts {
		at, layers = &s.parts[c.Key], 1
	}
	cfg := s.of.Plain.config(c.Parts)
	f, err := bloom.OpenScalable(ctx, s.client, s.keys[c.Key], bloom.ScalableConfig{
		Seed: cfg.Seed, TTL: cfg.TTL, MustExist: cfg.MustExist, MissingIsEmpty: cfg.MissingIsEmpty,
		Reads: cfg.Reads, MaxBytes: s.of.offset(layers) / 8,
		BatchBytes: cfg.BatchBytes, BatchParallel: cfg.BatchParallel,
	})
	return adopt(at, f, err)
}

// open opens the filter.
func (s *shardedSession) open(ctx context.Context, c Call) (Result, error) {
	at, clients := &s.whole, s.clients
	switch {
	case c.Parts:
		at = &s.parts
	case c.Turned:
		at, clients = &s.turned, turn(clients)
	}
	cfg := s.of.Plain.config(c.Parts)
	f, err := bloom.OpenSharded(ctx, clients, s.key, bloom.ShardedConfig{
		Seed: cfg.Seed, TTL: cfg.TTL, Reads: cfg.Reads,
		BatchBytes: cfg.BatchBytes, BatchParallel: cfg.BatchParallel,
	})
	return adopt(at, f, err)
}

// turn returns the clients in another order.
func turn(clients []*upstash.Client) []*upstash.Client {
	return []*upstash.Client{clients[len(clients)-1], clients[0]}
}

// open opens the window.
func (s *windowSession) open(ctx context.Context, c Call) (Result, error) {
	at := &s.whole
	if c.Parts {
		at = &s.parts
	}
	cfg := Filters{Seed: s.of.Seed}.config(c.Parts)
	w, err := bloom.OpenWindow(ctx, s.client, s.key, bloom.WindowConfig{
		Seed: cfg.Seed, MustExist: s.of.MustExist,
		BatchBytes: cfg.BatchBytes, BatchParallel: cfg.BatchParallel,
	})
	return adopt(at, w, err)
}

// open opens the filter.
func (s *cuckooSession) open(ctx context.Context, c Call) (Result, error) {
	at := &s.whole[c.Key]
	if c.Parts {
		at = &s.parts[c.Key]
	}
	cfg := Filters{}.config(c.Parts)
	f, err := bloom.OpenCuckoo(ctx, s.client, s.keys[c.Key], bloom.CuckooConfig{
		MustExist: s.of.MustExist, MissingIsEmpty: s.of.MissingIsEmpty, Reads: s.of.Reads,
		BatchBytes: cfg.BatchBytes, BatchParallel: cfg.BatchParallel,
	})
	return adopt(at, f, err)
}
