package bloom

import (
	"context"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// OpenScalable makes a handle for an existing filter and reads its geometry
// from its header, as [Open] does for a [Filter], with the same cost and
// errors. At most one [ScalableConfig] says the rest: if Capacity and FPRate are
// set, they must be the filter's; Seed must be its seed; the other fields hold
// as they do for NewScalable.
//
// The header does not hold Capacity and FPRate. If the config does not say them
// either, [Scalable.Stats] of the handle does not know them, and it works out how
// many items the first layer takes at a rate of one in ten to the power of k/2,
// at most as many as Capacity. So single Adds may add a layer earlier: at 44%
// of the capacity at worst, and at 60% if FPRate is 0.05 or less. FPRate holds
// all the same.
func OpenScalable(ctx context.Context, c *upstash.Client, key string, cfg ...ScalableConfig,
) (_ *Scalable, err error) {
	defer fault.OnlyReads(&err)
	want, err := atMostOne(cfg)
	if err != nil {
		return nil, err
	}
	if err := want.checkOpen(); err != nil {
		return nil, err
	}
	seen, err := openState(ctx, c, key)
	if err != nil {
		return nil, err
	}
	if err := seen.isOf(KindLayers, want.Seed); err != nil {
		return nil, err
	}
	if seen.header.scheme != SchemeBlocked {
		return nil, engine.ErrHeaderBits
	}
	geo := seen.header.geometry(want.Seed)
	if want.isSized() {
		if geo, err = want.Geometry(); err != nil {
			return nil, err
		}
	}
	if err := seen.isSized(geo); err != nil {
		return nil, err
	}
	if err := want.hasRoom(geo); err != nil {
		return nil, err
	}
	s := newScalable(c, key, want, geo)
	if !want.isSized() {
		s.rec.Rate = rateIn(seen.birth)
	}
	if _, err := s.layers.saw(seen.word); err != nil {
		return nil, err
	}
	return s, nil
}

func (c ScalableConfig) isSized() bool { return c.Capacity != 0 || c.FPRate != 0 }

// checkOpen checks what does not depend on the filter to be opened.
func (c ScalableConfig) checkOpen() error {
	if c.WarnFill != nil && c.Capacity == 0 {
		return scalableErrorf("WarnFill", noFill)
	}
	if !c.isSized() {
		c.Capacity, c.FPRate, c.MaxBytes = 1, 0.5, 0
	}
	_, err := c.Geometry()
	return err
}
