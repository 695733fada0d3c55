package bloom

import (
	"context"
	"fmt"
	"strings"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// Open makes a handle for an existing filter and reads its geometry from its
// header: a reader needs to know no more than the key. It is one request of two
// commands. If the server refuses the transaction, Open sends a second request,
// and in a full Redis a third. The error is [ErrNotFound] if there is no filter,
// whatever MissingIsEmpty says. There is none at the key of a [Sharded]: its
// shards have keys of their own, and [OpenSharded] finds them. Another kind or
// another seed is a [*MismatchError], and other data is [ErrNotFilter], as is a
// [Cuckoo]. A Bare filter has no header: use New.
//
// At most one [Config] says the rest. Its zero fields are read from the header.
// Capacity and FPRate, or Bits and Hashes, need not be set; if they are, the
// filter must have that size, or the error is a *MismatchError. A Scheme that is
// not zero must be the filter's. Seed is the secret seed of a filter made with
// one; another seed than the filter's is noticed 126 times in 127. The other
// fields hold for the handle as they do for New. TTL has an effect if the
// filter's TTL is not settled yet, or if an Add makes the filter again later.
// Reads does not change which copy Open itself asks. WarnFill needs a Capacity, of
// the Config or of the string. [LayoutBare], or a second Config, is a
// [*ConfigError].
//
// The primary of a global database answers. The nearest region does if the
// client is a read-only one, if the token may not run BITFIELD or if the
// database is full. A region that is behind may lack the filter or have an
// older one.
//
// If the Config does not say the Capacity, the handle knows it from the string:
// see [Stats].
func Open(ctx context.Context, c *upstash.Client, key string, cfg ...Config) (_ *Filter, err error) {
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
	got := seen.header
	if got.kind == KindFilter && got.scheme == SchemeCuckoo {
		return nil, fmt.Errorf("%w of one-bit cells, but a Cuckoo: use OpenCuckoo", ErrNotFilter)
	}
	if there := got.geometry(want.Seed); got.kind == KindFilter && !there.Scheme.oneBit() {
		return nil, fmt.Errorf("%w of one-bit cells, but %v: use the type that wrote it",
			ErrNotFilter, there)
	}
	if err := seen.isOf(KindFilter, want.Seed); err != nil {
		return nil, err
	}
	if want.Scheme == 0 {
		want.Scheme = got.scheme
	}
	if !want.isSized() {
		want.Bits, want.Hashes = got.bits, got.hashes
	}
	if want.WarnFill != nil && want.Capacity == 0 && got.geometry(0).holds(rateIn(seen.birth), 1) == 0 {
		return nil, configErrorf("WarnFill", noFillThere)
	}
	sized := want
	sized.WarnFill = nil // the string says the Capacity
	geo, err := sized.Geometry()
	if err != nil {
		return nil, err
	}
	if err := seen.isSized(geo); err != nil {
		return nil, err
	}
	f := newFilter(c, key, want, geo, KindFilter)
	f.opened(rateIn(seen.birth))
	return f, nil
}

// noFillThere is what is wrong with a WarnFill if the filter does not help.
const noFillThere = "is set, but neither Capacity nor the filter's string says how full is too full:" +
	" set the number of items to expect"

// isSized reports whether the Config says how large the filter is.
func (c Config) isSized() bool { return c.Capacity != 0 || c.FPRate != 0 || c.explicit() }

// checkOpen checks what does not depend on the filter to be opened.
func (c Config) checkOpen() error {
	if c.Layout == LayoutBare {
		return configErrorf("Layout", "is bare, and a bare filter has no header to open it by: use New")
	}
	if !c.isSized() {
		c.Bits, c.Hashes = 1, 1
	}
	c.WarnFill = nil // the string may say the Capacity
	return c.check()
}

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

// openState reads the state at the key for every Open function.
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

// differsIn is the *MismatchError of a string whose own word says another value
// of the field.
func (s *state) differsIn(field string, seed uint64) error {
	e := newMismatchError(s.header.kind, s.header.geometry(seed), s.header)
	e.Field = field
	return engine.AsOtherFilter(e)
}
