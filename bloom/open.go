package bloom

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// OpenOption sets what a filter's header does not say. If an Open function does
// not take an option, it returns an error before it sends anything.
type OpenOption func(*opening)

// opening is what the options of an Open function set.
type opening struct {
	Config
	maxBytes uint64
	given    []string // the names of the options
}

func option(name string, set func(*opening)) OpenOption {
	return func(c *opening) {
		c.given = append(c.given, name)
		set(c)
	}
}

// mayNot returns an error if fn does not take one of the options.
func (c *opening) mayNot(fn string, options ...string) error {
	for _, name := range c.given {
		if slices.Contains(options, name) {
			return fault.Errorf("bloom: %w: %s does not take %s", upstash.ErrArgument, fn, name)
		}
	}
	return nil
}

// OpenSeed sets the secret seed of a filter made with one. Another seed than
// the filter's is a [*MismatchError], 126 times in 127.
func OpenSeed(seed uint64) OpenOption { return option("OpenSeed", func(c *opening) { c.Seed = seed }) }

// OpenTTL is [Config.TTL]. It has an effect if the filter's TTL is not settled
// yet, or if an Add makes the filter again later.
func OpenTTL(ttl time.Duration) OpenOption {
	return option("OpenTTL", func(c *opening) { c.TTL = ttl })
}

// OpenMissingIsEmpty is [Config.MissingIsEmpty], for a filter that goes missing
// later. Open itself returns [ErrNotFound] if there is none.
func OpenMissingIsEmpty() OpenOption {
	return option("OpenMissingIsEmpty", func(c *opening) { c.MissingIsEmpty = true })
}

// OpenMustExist is [Config.MustExist].
func OpenMustExist() OpenOption {
	return option("OpenMustExist", func(c *opening) { c.MustExist = true })
}

// OpenReads is [Config.Reads], for the look-ups to come. It does not change
// which copy [Open] itself asks.
func OpenReads(reads Reads) OpenOption {
	return option("OpenReads", func(c *opening) { c.Reads = reads })
}

// OpenBatch is [Config.BatchBytes] and [Config.BatchParallel].
func OpenBatch(bytes, parallel int) OpenOption {
	return option("OpenBatch", func(c *opening) { c.BatchBytes, c.BatchParallel = bytes, parallel })
}

// Open makes a handle for an existing filter and reads its geometry from its
// header: a reader needs to know no more than the key. It is one request of two
// commands. If the server refuses the transaction, Open sends a second request,
// and in a full Redis a third. The error is [ErrNotFound] if there is no filter,
// whatever MissingIsEmpty says. There is none at the key of a [Sharded]: its
// shards have keys of their own, and [OpenSharded] finds them. Another kind or
// another seed is a [*MismatchError], and other data is [ErrNotFilter], as is a
// [Cuckoo]. A Bare filter has no header: use New.
//
// The primary of a global database answers. The nearest region does if the
// client is a read-only one, if the token may not run BITFIELD or if the
// database is full. A region that is behind may lack the filter or have an
// older one.
//
// The header does not hold the Capacity the filter was sized for. The Stats of
// such a handle say how many items are in it and its false positive rate now;
// their Capacity is 0. So the handle has no [Config.WarnFill] either: a writer
// that wants one uses [New] with the filter's [Config], which sends nothing.
func Open(ctx context.Context, c *upstash.Client, key string, opts ...OpenOption) (_ *Filter, err error) {
	defer fault.OnlyReads(&err)
	cfg, seen, err := openState(ctx, c, key, opts, "Open", "OpenMaxBytes")
	if err != nil {
		return nil, err
	}
	got := seen.header
	cfg.Bits, cfg.Hashes, cfg.Scheme = got.bits, got.hashes, got.scheme
	if got.kind == KindFilter && got.scheme == SchemeCuckoo {
		return nil, fmt.Errorf("%w of one-bit cells, but a Cuckoo: use OpenCuckoo", ErrNotFilter)
	}
	if want := got.geometry(cfg.Seed); got.kind == KindFilter && !want.Scheme.oneBit() {
		return nil, fmt.Errorf("%w of one-bit cells, but %v: use the type that wrote it",
			ErrNotFilter, want)
	}
	if err := seen.isOf(KindFilter, cfg.Seed); err != nil {
		return nil, err
	}
	geo, err := cfg.Geometry()
	if err != nil {
		return nil, err
	}
	return newFilter(c, key, cfg.Config, geo, KindFilter), nil
}

// openState reads the state at the key for every Open function, and returns it
// with what the options set. It refuses an option that fn does not take.
func openState(ctx context.Context, c *upstash.Client, key string, opts []OpenOption, fn string,
	refused ...string,
) (cfg opening, seen state, err error) {
	for _, o := range opts {
		if o != nil {
			o(&cfg)
		}
	}
	if err := cfg.mayNot(fn, refused...); err != nil {
		return cfg, state{}, err
	}
	// Any geometry will do to ask for the header; it is checked with the rest.
	probed := cfg.Config
	probed.Scheme, probed.Bits, probed.Hashes = SchemeXXH3, 1, 1
	probe, err := New(c, key, probed)
	if err != nil {
		return cfg, state{}, err
	}
	seen, err = probe.rec.readState(ctx, false)
	return cfg, seen, err
}

// isOf returns a *MismatchError unless the string is of the kind and the seed.
func (s *state) isOf(kind Kind, seed uint64) error {
	if s.header.kind != kind || s.header.seedTag != seedTag(seed) {
		want := s.header.geometry(0)
		want.Seed = seed
		return engine.SaysOther(newMismatchError(kind, want, s.header))
	}
	return nil
}
