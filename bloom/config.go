package bloom

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A Config says how large a filter is and how it is stored. Every program that uses a
// filter gives the same Capacity, FPRate, Seed and Scheme, or the same Bits and Hashes:
// with others it gets a MismatchError.
//
// The zero value is not valid: a filter has either Capacity and FPRate, or Bits and Hashes.
// A Config is plain data, to be copied freely; its String does not show the seed.
type Config struct {
	_ struct{}

	// Capacity is the number of distinct items that the filter is sized for, at least 1. It
	// takes more, with a rising false positive rate: twice as many at 1% make it 16%.
	//
	// A filter that needs more than 100 MB (83 million items at 1%) is accepted here, but
	// the database limits the size of a record: to 100 MB on Upstash's free and
	// pay-as-you-go plans, to as much as 5 GB on larger ones. A Redis string ends at 512 MiB.
	Capacity uint64

	// FPRate is the false positive rate at Capacity: above 0 and below 1, 0.01 is "1 in 100".
	FPRate float64

	// Bits and Hashes set the geometry itself: the number of bits, from 1 to 2^32-128 (2^32
	// for LayoutBare), and of positions an item, from 1 to 63. They belong to filters that
	// another program made; set both or neither. With them Capacity and FPRate size nothing
	// and may be 0.
	Bits   uint64
	Hashes int

	// Seed of the hash; the default is 0. A secret random seed keeps others from choosing
	// items that are found without having been added. Filters of different seeds are told
	// apart 254 times in 255: the header holds no more than a byte of the seed's hash. Not
	// for SchemeFNV1a.
	Seed uint64 `json:"-"`

	// Scheme turns an item into positions; the default is SchemeXXH3.
	Scheme Scheme

	// Layout of the Redis string; the default is LayoutHeaded.
	Layout Layout

	// TTL is the time from the filter's creation until it expires, at least 1 ms; parts of a
	// millisecond are dropped. Using the filter does not prolong it. 0 means that it stays.
	TTL time.Duration

	// BatchBytes is the longest request body that AddAll and ExistsAll send; the default,
	// for 0, is 1 MiB. The database limits it to 10 MB on most plans. An item takes about
	// 25 bytes a hash.
	BatchBytes int

	// BatchParallel is how many requests AddAll and ExistsAll have under way at once; the
	// default, for 0, is 4.
	BatchParallel int

	// MissingIsEmpty makes look-ups in a missing filter answer no, and its cardinality 0,
	// where the default is ErrNotFound. It gives up the guarantee that a no is true: items
	// of a filter that expired or was evicted are "never added".
	MissingIsEmpty bool
}

// Geometry checks the whole Config and works out the geometry of its filter. The error is
// a *ConfigError. It costs two logarithms and sends nothing.
func (c Config) Geometry() (Geometry, error) {
	if err := c.check(); err != nil {
		return Geometry{}, err
	}
	g := Geometry{Bits: c.Bits, Hashes: c.Hashes, Scheme: c.Scheme, Seed: c.Seed}
	if !c.explicit() {
		g.Bits = OptimalBits(c.Capacity, c.FPRate)
		g.Hashes = OptimalHashes(g.Bits, c.Capacity)
	}
	if err := c.checkLimits(g); err != nil {
		return Geometry{}, err
	}
	return g, nil
}

// explicit tells whether the geometry was given, and not the size.
func (c Config) explicit() bool { return c.Bits != 0 || c.Hashes != 0 }

// check finds values that no filter can have, and combinations without a meaning.
func (c Config) check() error {
	switch {
	case c.explicit() && c.Bits == 0:
		return configErrorf("Bits", "is 0, but Hashes is set: set both or neither")
	case c.explicit() && c.Hashes == 0:
		return configErrorf("Hashes", "is 0, but Bits is set: set both or neither")
	case c.Capacity == 0 && !c.explicit():
		return configErrorf("Capacity", "is 0: set the number of items to expect, at least 1")
	// Written so that NaN is refused as well.
	case !(c.FPRate > 0 && c.FPRate < 1) && !(c.explicit() && c.FPRate == 0):
		return configErrorf("FPRate", "is %v: it must be above 0 and below 1, e.g. 0.01", c.FPRate)
	case c.Scheme != SchemeXXH3 && c.Scheme != SchemeFNV1a:
		return configErrorf("Scheme", "is %v: use SchemeXXH3 or SchemeFNV1a", c.Scheme)
	case c.Layout != LayoutHeaded && c.Layout != LayoutBare:
		return configErrorf("Layout", "is %v: use LayoutHeaded or LayoutBare", c.Layout)
	case c.Seed != 0 && c.Scheme == SchemeFNV1a:
		return configErrorf("Seed", "is set, but SchemeFNV1a has none: leave it 0, or use SchemeXXH3")
	case c.TTL != 0 && c.TTL < time.Millisecond:
		return configErrorf("TTL", "is %v: it must be at least 1ms, or 0 for a filter that stays", c.TTL)
	case c.BatchBytes < 0:
		return configErrorf("BatchBytes", "is %d: use 0 for the default of 1 MiB, or more", c.BatchBytes)
	case c.BatchParallel < 0:
		return configErrorf("BatchParallel", "is %d: use 0 for the default of 4, or more", c.BatchParallel)
	}
	return nil
}

// checkLimits finds a geometry that does not fit into the format or a Redis string. It
// names the field that is to be changed, which depends on how the geometry was given.
func (c Config) checkLimits(g Geometry) error {
	limit := maxCells(c.Scheme, c.Layout)
	switch {
	case g.Bits > limit && c.explicit():
		return configErrorf("Bits", "is %d: at most %d fit into a Redis string", g.Bits, limit)
	case g.Bits > limit:
		return configErrorf("Capacity", "is %d, which takes %d bits at FPRate %v, and %d fit into"+
			" a Redis string: lower it, raise FPRate, or spread the items over several filters",
			c.Capacity, g.Bits, c.FPRate, limit)
	case g.Hashes < 1 || g.Hashes > maxHashes && c.explicit():
		return configErrorf("Hashes", "is %d: it must be from 1 to %d", g.Hashes, maxHashes)
	case g.Hashes > maxHashes:
		return configErrorf("FPRate", "is %v, which takes %d positions an item, and the format ends"+
			" at %d: use 1e-18 or more", c.FPRate, g.Hashes, maxHashes)
	}
	return nil
}

// String shows the fields that are set, and of the seed only that it is.
func (c Config) String() string {
	var b strings.Builder
	field := func(set bool, name string, value any) {
		if set {
			fmt.Fprintf(&b, "%s: %v, ", name, value)
		}
	}
	field(c.Capacity != 0, "Capacity", c.Capacity)
	field(c.FPRate != 0, "FPRate", c.FPRate)
	field(c.Bits != 0, "Bits", c.Bits)
	field(c.Hashes != 0, "Hashes", c.Hashes)
	field(c.Seed != 0, "Seed", "(set)")
	field(true, "Scheme", c.Scheme)
	field(true, "Layout", c.Layout)
	field(c.TTL != 0, "TTL", c.TTL)
	field(c.MissingIsEmpty, "MissingIsEmpty", true)
	return "bloom.Config{" + strings.TrimSuffix(b.String(), ", ") + "}"
}

// Format is String for every verb, so that none shows the seed.
func (c Config) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, c.String()) }

func configErrorf(field, format string, args ...any) error {
	return &ConfigError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
