package bloom

import (
	"context"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// OpenMaxBytes is [ScalableConfig.MaxBytes], for [OpenScalable] alone.
func OpenMaxBytes(n uint64) OpenOption {
	return option("OpenMaxBytes", func(c *opening) { c.maxBytes = n })
}

// OpenScalable makes a handle for an existing filter and reads its geometry
// from its header, as [Open] does for a [Filter], with the same cost and
// errors. It takes every option.
//
// The header does not hold Capacity and FPRate, and [Scalable.Stats] of such a
// handle does not know them. It has no WarnFill either. The handle works out how
// many items the first layer takes at a rate of one in ten to the power of k/2,
// at most as many as Capacity. So single Adds may add a layer earlier: at 44%
// of the capacity at worst, and at 60% if FPRate is 0.05 or less. FPRate holds
// all the same.
func OpenScalable(ctx context.Context, c *upstash.Client, key string, opts ...OpenOption) (_ *Scalable, err error) {
	defer fault.OnlyReads(&err)
	o, seen, err := openState(ctx, c, key, opts, "OpenScalable")
	if err != nil {
		return nil, err
	}
	if err := seen.isOf(KindLayers, o.Seed); err != nil {
		return nil, err
	}
	if seen.header.scheme != SchemeBlocked {
		return nil, engine.ErrHeaderBits
	}
	s := newScalable(c, key, ScalableConfig{
		Seed: o.Seed, TTL: o.TTL, MaxBytes: o.maxBytes, BatchBytes: o.BatchBytes,
		BatchParallel: o.BatchParallel, MissingIsEmpty: o.MissingIsEmpty, MustExist: o.MustExist,
		Reads: o.Reads,
	}, seen.header.geometry(o.Seed))
	if _, err := s.layers.saw(seen.word); err != nil {
		return nil, err
	}
	return s, nil
}
