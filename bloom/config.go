package bloom

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/human"
)

// A Config says how large a filter is and how it is stored.
type Config struct {
	_ struct{}

	// Capacity is the number of distinct items the filter is sized for, at
	// least 1.
	//
	// The database limits the length of a record: to 100 MB (74 million items
	// at 1 in 100) on Upstash's smaller plans, to up to 5 GB on larger ones.
	// [Filter.Create] finds out; otherwise an Add fails if a bit of its item is
	// behind the limit.
	Capacity uint64

	// FPRate is the false positive rate at Capacity: above 0 and below 1, 0.01
	// is "1 in 100". [SchemeBlocked] takes 1e-9 or more.
	FPRate float64

	// Bits and Hashes set the geometry itself, for filters of another program:
	// 1 to 2^32-192 bits (2^32 for [LayoutBare]), and 1 to 63 positions an
	// item. [SchemeBlocked] takes multiples of 53 bits and even Hashes.
	Bits   uint64
	Hashes int

	// Seed of the hash; the default is 0. Whoever lets outsiders choose items
	// sets a random and secret one, as upbloom seed prints it. With the default
	// they compute in moments a few items that, once added, make another item of
	// their choice a "yes". With a secret seed they cannot compute any. Who sees
	// the answers still finds some by asking, at the rate of the filter, and XXH3
	// is no keyed hash that was made to keep its key. A filter with another seed
	// is another filter: a wrong seed is noticed 126 times in 127. Not for
	// [SchemeFNV1a].
	Seed uint64 `json:"-"`

	// Scheme turns an item into positions; the default is [SchemeBlocked].
	Scheme Scheme

	// Layout of the Redis string; the default is [LayoutHeaded].
	Layout Layout

	// TTL is the time from the filter's creation until it expires with all
	// items, however recent: at least 1 ms. With 0 this handle sets none. No
	// later Add prolongs it.
	//
	// [Filter.Create] sets it with the filter. An Add sets it by a second
	// request; if that fails, the error is [ErrNoTTL], and the next write tries
	// again: if none comes, the filter stays for ever.
	TTL time.Duration

	// MissingIsEmpty makes look-ups in a missing filter answer no, and its
	// cardinality 0; the default is [ErrNotFound]. Then the "no" covers nothing
	// from before an expiry or an eviction. [Filter.Stats], [Filter.Snapshot]
	// and [Open] return ErrNotFound all the same.
	MissingIsEmpty bool

	// MustExist makes an Add or a Load to a missing filter return [ErrNotFound]
	// and create nothing, so none comes back empty after an eviction.
	// [Filter.Create] makes it, or the [Filter.Load] of a handle without
	// MustExist. Each Add is then three billed commands, leaves the TTL alone,
	// and changes no other data. Not for [LayoutBare].
	MustExist bool

	// ReadsNearest has the nearest region of a global database answer look-ups:
	// a "no", a missing filter or a mismatch may come from its lag. By default
	// the primary answers, which takes all writes. COSTS.md compares the two.
	// [Filter.Snapshot] says which of them it reads.
	//
	// To the primary a look-up is a write: a full database refuses it
	// ([upstash.ErrOutOfMemory]) without ReadsNearest, and a token that may not run BITFIELD needs
	// [upstash.WithReadOnly], whose look-ups go to the nearest region.
	ReadsNearest bool
}

// Geometry checks the whole Config and returns the geometry of its filter.
func (c Config) Geometry() (Geometry, error) {
	if err := c.check(); err != nil {
		return Geometry{}, err
	}
	g := Geometry{Bits: c.Bits, Hashes: c.Hashes, Scheme: c.Scheme, Seed: c.Seed}
	switch {
	case c.explicit():
	case c.Scheme == SchemeBlocked:
		if err := c.checkBlocked(); err != nil {
			return Geometry{}, err
		}
		g.Bits, g.Hashes = cells.BlockedSize(c.Capacity, c.FPRate)
	default:
		g.Bits = OptimalBits(c.Capacity, c.FPRate)
		g.Hashes = OptimalHashes(g.Bits, c.Capacity)
	}
	if err := c.checkLimits(g); err != nil {
		return Geometry{}, err
	}
	return g, nil
}

// explicit reports whether Bits and Hashes were set, and not the size.
func (c Config) explicit() bool { return c.Bits != 0 || c.Hashes != 0 }

// check finds values no filter can have, and combinations without a meaning.
func (c Config) check() error {
	switch {
	case c.explicit() && c.Bits == 0:
		return configErrorf("Bits", "is 0, but Hashes is set: set both or neither")
	case c.explicit() && c.Hashes == 0:
		return configErrorf("Hashes", "is 0, but Bits is set: set both or neither")
	case c.Capacity == 0 && !c.explicit():
		return configErrorf("Capacity", "is 0: set the number of items to expect, at least 1")
	case !isRate(c.FPRate) && !(c.explicit() && c.FPRate == 0):
		return noRate("Config", c.FPRate)
	case !c.Scheme.oneBit():
		return configErrorf("Scheme", "is %v: use SchemeBlocked, SchemeXXH3 or SchemeFNV1a", c.Scheme)
	case c.Layout != LayoutHeaded && c.Layout != LayoutBare:
		return configErrorf("Layout", "is %v: use LayoutHeaded or LayoutBare", c.Layout)
	case c.Layout == LayoutBare && c.Scheme == SchemeBlocked:
		return configErrorf("Layout", "is bare, and SchemeBlocked (the default) has no bare form:"+
			" set the Scheme of the program that wrote the string, or use LayoutHeaded")
	case c.Layout == LayoutBare && c.MustExist:
		return configErrorf("MustExist", "is set, but a bare filter has no header to check: use LayoutHeaded")
	case c.Seed != 0 && c.Scheme == SchemeFNV1a:
		return configErrorf("Seed", "is set, but SchemeFNV1a has none: leave it 0, or use SchemeBlocked")
	case c.TTL != 0 && c.TTL < time.Millisecond:
		return configErrorf("TTL", "is %v: it must be at least 1ms, or 0 for a filter that stays", c.TTL)
	}
	return nil
}

// isRate reports whether p is above 0 and below 1, which NaN is not.
func isRate(p float64) bool { return p > 0 && p < 1 }

func noRate(config string, p float64) error {
	return configErrorf(config+".FPRate", "is %v: it must be above 0 and below 1, e.g. 0.01", p)
}

// checkBlocked finds a size that the blocked scheme's arithmetic does not
// reach.
func (c Config) checkBlocked() error {
	if c.FPRate < cells.MinBlockedRate {
		return configErrorf("FPRate", "is %v: SchemeBlocked reaches 1e-9; use that, or SchemeXXH3", c.FPRate)
	}
	if c.Capacity > cells.MaxBlockedItems {
		return configErrorf("Capacity", "is %s: far more than a Redis string can hold; spread the"+
			" items over several filters, as a Sharded does", human.Count(c.Capacity))
	}
	return nil
}

// checkLimits finds a geometry too large for the format or a Redis string. The
// error names a field set by the user.
func (c Config) checkLimits(g Geometry) error {
	limit := format.Scheme(c.Scheme).MaxCells(c.Layout.bodyOffset())
	switch {
	case g.Bits > limit && c.explicit():
		return configErrorf("Bits", "is %d: at most %d fit into a Redis string", g.Bits, limit)
	case g.Bits > limit:
		return configErrorf("Capacity", "is %s, which takes %s bits at FPRate %v, and %s fit into"+
			" a Redis string: lower it, raise FPRate, or spread the items over several filters, as a"+
			" Sharded does", human.Count(c.Capacity), human.Count(g.Bits), c.FPRate, human.Count(limit))
	case g.Hashes < 1 || g.Hashes > format.MaxHashes && c.explicit():
		return configErrorf("Hashes", "is %d: it must be from 1 to %d", g.Hashes, format.MaxHashes)
	case g.Hashes > format.MaxHashes:
		return configErrorf("FPRate", "is %v, which takes %d positions an item, and the format ends"+
			" at %d: use 1e-18 or more", c.FPRate, g.Hashes, format.MaxHashes)
	case g.Scheme == SchemeBlocked:
		return checkWords(g)
	}
	return nil
}

// checkWords finds a blocked geometry that is not whole words.
func checkWords(g Geometry) error {
	const other = "; a filter of another scheme needs its Scheme set"
	rest := g.Bits % wordBits
	switch {
	case rest != 0 && g.Bits < wordBits:
		return configErrorf("Bits", "is %d: SchemeBlocked takes multiples of 53, from 53 up"+other, g.Bits)
	case rest != 0:
		return configErrorf("Bits", "is %d: SchemeBlocked takes multiples of 53, such as %d or %d"+other,
			g.Bits, g.Bits-rest, g.Bits-rest+wordBits)
	case g.Hashes%2 != 0:
		return configErrorf("Hashes", "is %d: SchemeBlocked takes an even number, two a word,"+
			" such as %d"+other, g.Hashes, min(g.Hashes+1, format.MaxHashes-1))
	}
	return nil
}

func (c Config) Format(s fmt.State, _ rune) { describe(s, c) }

// configErrorf returns a *ConfigError about a field, such as "FPRate" of a Config
// or "WindowConfig.Span" of another.
func configErrorf(field, format string, args ...any) error {
	of, name, found := strings.Cut(field, ".")
	if !found {
		of, name = "Config", field
	}
	return &ConfigError{Field: name, Reason: fmt.Sprintf(format, args...), of: of}
}

// describe shows the fields of a Config that are set, without the seed.
func describe(s fmt.State, config any) {
	v := reflect.ValueOf(config)
	var text []string
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		switch {
		case name == "_" || f.IsZero() && name != "Scheme" && name != "Layout":
		case name == "Seed":
			text = append(text, name+": (set)")
		default:
			text = append(text, fmt.Sprintf("%s: %v", name, f))
		}
	}
	_, _ = fmt.Fprintf(s, "bloom.%s{%s}", v.Type().Name(), strings.Join(text, ", "))
}

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
	return c.check()
}

// namesCapacity reports whether a ConfigError is about the Capacity.
func namesCapacity(err error) bool {
	e, ok := fault.As[*ConfigError](err)
	return ok && e.Field == "Capacity"
}

// ofConfig says of whose Config an error is, if it is a *ConfigError.
func ofConfig(err error, name string) error {
	if e := (*ConfigError)(nil); errors.As(err, &e) {
		return &ConfigError{Field: e.Field, Reason: e.Reason, of: name}
	}
	return err
}

// rateCode returns what a birth number says of a rate asked for. It is 0 if the
// geometry was given.
func (c Config) rateCode() uint64 {
	if c.explicit() {
		return 0
	}
	return cells.RateCode(c.FPRate)
}
