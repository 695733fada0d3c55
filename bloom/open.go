package bloom

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
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
	return one, &ConfigError{Reason: fmt.Sprintf("is given %d times: pass one at most", len(cfg)), of: name}
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
		seen, err = openState(ctx, c, key)
	}
	return want, seen, err
}

// openState reads the state at the key.
func openState(ctx context.Context, c *upstash.Client, key string) (state, error) {
	// Any geometry will do to ask for the header.
	probe, err := New(c, key, Config{Scheme: SchemeXXH3, Bits: 1, Hashes: 1})
	if err != nil {
		return state{}, err
	}
	return probe.rec.readState(ctx, false)
}

// isOf returns a *MismatchError unless the string is of the kind and the seed.
func (s *state) isOf(kind Kind, seed uint64) error {
	if s.header.kind == kind && s.header.seedTag == seedTag(seed) {
		return nil
	}
	want := s.header.geometry(0)
	want.Seed = seed
	return engine.AsOtherFilter(newMismatchError(kind, want, s.header))
}

// isSized returns a *MismatchError unless the string, which is of the right
// kind, has this geometry.
func (s *state) isSized(want Geometry) error {
	if s.header.geometry(want.Seed) == want {
		return nil
	}
	return engine.AsOtherFilter(newMismatchError(s.header.kind, want, s.header))
}

// sizedBy returns the geometry of the string, which is of the right kind. If
// the Config says another size, the error is a *MismatchError.
func (s *state) sizedBy(want openConfig, seed uint64) (g Geometry, err error) {
	g = s.header.geometry(seed)
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
	e := newMismatchError(s.header.kind, s.header.geometry(seed), s.header)
	e.Field = field
	return engine.AsOtherFilter(e)
}

// A state is the result of one look at a filter's key.
type state struct {
	header  headerInfo
	birth   int64
	settled bool
	word    int64  // the kind's own
	length  uint64 // of the string, in bytes
	setBits uint64 // if counted
	ttl     time.Duration
}

// readState reads the header and what proves it: see engine.Record.ReadState.
func (r *record) readState(ctx context.Context, count bool) (state, error) {
	s, err := r.ReadState(ctx, count)
	if err != nil {
		return state{}, err
	}
	return checkState(s)
}

// checkState checks the header, the bits that are always 0, and the length
// allowed by FORMAT.md. Without these, other data would pass.
func checkState(seen engine.State) (state, error) {
	h, err := parseHeader(uint64(seen.Header))
	if err != nil {
		return state{}, err
	}
	s := state{
		header: h, birth: seen.Birth, settled: seen.Settled, word: seen.KindWord,
		length: seen.Length, setBits: seen.SetBits, ttl: seen.TTL,
	}
	if seen.Stray || h.hasWord() && (s.word>>52 != 1 || seen.StrayKind) {
		return state{}, engine.ErrHeaderBits
	}
	// Every command that makes a filter writes to its body too. An Add of a
	// larger filter lengthens the string, and gives it a birth number if it has
	// none.
	if s.length <= headerBytes || s.overlong() && s.birth&engine.BirthMarker == 0 {
		return state{}, fmt.Errorf("%w: it is %d bytes long, and its header allows %d to %d",
			ErrNotFilter, s.length, headerBytes+1, s.maxBytes())
	}
	return s, nil
}

func (s *state) overlong() bool { return s.length > s.maxBytes() }

// maxBytes returns the length of the whole string.
func (s *state) maxBytes() uint64 {
	switch s.header.kind {
	case KindWindow:
		areas := windowAreas(s.header.geometry(0), s.parts())
		return areas[len(areas)-1].end() / 8
	case KindScalable:
		areas := layerAreas(s.header.bits)
		return areas[len(areas)-1].end() / 8
	}
	return s.header.geometry(0).Bytes(LayoutHeaded)
}

// parts returns how many panes or layers the string has, at least 1.
func (s *state) parts() int {
	switch s.header.kind {
	case KindWindow:
		return max(1, int(s.word>>paneShift&15))
	case KindScalable:
		_, n, _ := layersIn(s.word)
		return max(1, n)
	}
	return 1
}
