package bloom

import (
	"context"
	"fmt"
	"strings"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

// atMostOne returns the Config given to an Open function, or the zero value.
func atMostOne[C any](cfg []C) (one C, err error) {
	switch len(cfg) {
	case 0:
		return one, nil
	case 1:
		return cfg[0], nil
	}
	_, name, _ := strings.Cut(fmt.Sprintf("%T", one), ".")
	return one, configErrorf(name+".", "is given %d times: pass one at most", len(cfg))
}

// An openConfig is a Config of an Open function.
type openConfig interface {
	checkOpen() error
	isSized() bool
	Geometry() (Geometry, error)
}

// openedState reads the state at the key for an Open function, after it has checked
// what its caller's Config says.
func openedState[C openConfig](ctx context.Context, c *upstash.Client, key string, cfg []C,
) (want C, seen state, err error) {
	if want, err = atMostOne(cfg); err == nil {
		err = want.checkOpen()
	}
	if err == nil {
		err = checkTarget(c, key)
	}
	if err == nil {
		seen, err = recordOf(c, key, format.Header{}).readState(ctx, false)
	}
	return want, seen, err
}

// recordOf is the record of a string with a header, whatever its kind. The zero
// header will do to read its words.
func recordOf(c *upstash.Client, key string, h format.Header) *record {
	r := &record{geo: geometryOf(h, 0), kind: Kind(h.Kind)}
	r.Client, r.Key, r.Header, r.Meaning = c, key, int64(h.Word()), r
	return r
}

// isOf returns a *MismatchError unless the string is of the kind and the seed.
func (s *state) isOf(kind Kind, seed uint64) error {
	if Kind(s.Header.Kind) == kind && s.Header.SeedTag == format.SeedTag(seed) {
		return nil
	}
	want := geometryOf(s.Header, 0)
	want.Seed = seed
	return engine.AsOtherFilter(newMismatchError(kind, want, s.Header))
}

// isSized returns a *MismatchError unless the string, which is of the right
// kind, has this geometry.
func (s *state) isSized(want Geometry) error {
	if geometryOf(s.Header, want.Seed) == want {
		return nil
	}
	return engine.AsOtherFilter(newMismatchError(Kind(s.Header.Kind), want, s.Header))
}

// sizedBy returns the geometry of the string, which is of the right kind. If
// the Config says another size, the error is a *MismatchError.
func (s *state) sizedBy(want openConfig, seed uint64) (g Geometry, err error) {
	g = geometryOf(s.Header, seed)
	if want.isSized() {
		g, err = want.Geometry()
	}
	if err == nil {
		err = s.isSized(g)
	}
	return g, err
}

// differsIn is the *MismatchError of a string whose own word says another value
// of the field.
func (s *state) differsIn(field string, seed uint64) error {
	e := newMismatchError(Kind(s.Header.Kind), geometryOf(s.Header, seed), s.Header)
	e.Field = field
	return engine.AsOtherFilter(e)
}

// A state is the result of one look at a filter's key.
type state struct{ format.State }

// readState reads the header and what proves it: see engine.Record.ReadState.
func (r *record) readState(ctx context.Context, count bool) (state, error) {
	s, err := r.ReadState(ctx, count)
	return state{s}, err
}
