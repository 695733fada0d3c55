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
// The filter itself holds the capacity of its first layer, rounded down by at
// most 1 in 2,048.
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
	capacity, _, _ := layersIn(seen.word)
	sized := want.isSized()
	if !sized {
		want.Capacity = capacity
	}
	s := newScalable(c, key, want, geo)
	if !sized {
		s.rec.Rate = rateIn(seen.birth)
	}
	if _, err := s.layers.newest(seen.word); err != nil {
		return nil, err
	}
	if err := s.rec.CompareKind(seen.word); err != nil {
		return nil, err
	}
	return s, nil
}

func (c ScalableConfig) isSized() bool { return c.Capacity != 0 || c.FPRate != 0 }

// checkOpen checks what does not depend on the filter to be opened.
func (c ScalableConfig) checkOpen() error {
	if !c.isSized() {
		c.Capacity, c.FPRate, c.MaxBytes = 1, 0.5, 0
	}
	_, err := c.Geometry()
	return err
}
