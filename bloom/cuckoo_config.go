package bloom

import (
	"fmt"
	"io"

	"github.com/upbloom/upbloom/bloom/internal/cells"
)

// A CuckooConfig says how large a [Cuckoo] is. All programs that share it must
// use the same Capacity, FPRate and Seed. Otherwise their calls fail with a
// [*MismatchError].
//
// The zero value is not valid: set Capacity and FPRate. A CuckooConfig is plain
// data, to be copied freely. Its String does not show the seed.
type CuckooConfig struct {
	_ struct{}

	// Capacity is the number of distinct items the filter takes, at least 1:
	// the chance of [ErrFull] before is at most 2 in 10,000. An item that was
	// added twice counts twice, and more: its copies share two buckets and
	// cannot be moved elsewhere. If all items are in twice, the filter takes
	// nine tenths of Capacity at 1 in 100 and at 1 in 1,000, if three times two
	// thirds of it, and at lower rates less: buckets have fewer slots then.
	Capacity uint64

	// FPRate is the false positive rate at Capacity: above 0 and below 1. There
	// are four sizes, and the filter has the smallest that suffices: 11.2 bits
	// an item for 1 in 100, 14.1 for 1 in 1,000, 19.4 down to 1 in 21,800 and
	// 31.5 down to 6e-8, the lowest of all: 1 in 16.7 million.
	FPRate float64

	// Seed of the hash; the default is 0. If it is random and secret, nobody else
	// can choose items that collide. A wrong seed is noticed 126 times in 127.
	Seed uint64 `json:"-"`

	// MustExist makes an Add to a missing filter return [ErrNotFound] and
	// create nothing; Create makes the filter. It costs nothing. After an
	// eviction no empty filter takes the place of the filled one.
	MustExist bool

	// MissingIsEmpty makes look-ups in a missing filter answer no, and its
	// Count 0; the default is [ErrNotFound].
	MissingIsEmpty bool

	// Reads says which copy of a global database answers look-ups; the default
	// is [ReadsPrimary]. Another copy lags behind: it may say "yes" to a
	// removed item, with [ReadsNearestFirst] too.
	Reads Reads

	// BatchBytes is the longest request body, in bytes, that AddAll, RemoveAll
	// and ExistsAll send; the default, for 0, is 1 MiB. A single item may take
	// more. A request adds or removes 500 items at most.
	BatchBytes int

	// BatchParallel is how many requests one of these calls has under way at
	// once; the default, for 0, is 4.
	BatchParallel int
}

// Geometry checks the [CuckooConfig] and works out the geometry of its filter:
// Bits is 53 a bucket, and Hashes the slots of a bucket. The error is a
// [*ConfigError]. It sends nothing.
func (c CuckooConfig) Geometry() (Geometry, error) {
	refuse := func(field, format string, args ...any) (Geometry, error) {
		return Geometry{}, &ConfigError{Field: field, Reason: fmt.Sprintf(format, args...), of: "CuckooConfig"}
	}
	switch {
	case c.Capacity == 0:
		return refuse("Capacity", "is 0: set the number of items to expect, at least 1")
	// Written so that NaN is refused as well.
	case !(c.FPRate > 0 && c.FPRate < 1):
		return refuse("FPRate", "is %v: it must be above 0 and below 1, e.g. 0.01", c.FPRate)
	case c.FPRate < cells.MinCuckooRate:
		return refuse("FPRate", "is %v: a cuckoo filter reaches 6e-8, 1 in 16.7 million; use that", c.FPRate)
	}
	if err := c.checkCalls(); err != nil {
		return Geometry{}, err
	}
	m, k, ok := cells.CuckooSize(c.Capacity, c.FPRate)
	if limit := maxCells(SchemeCuckoo, LayoutHeaded); !ok || m > limit {
		return refuse("Capacity", "is %d, which does not fit into a Redis string at FPRate %v: lower it,"+
			" raise FPRate, or spread the items over several filters", c.Capacity, c.FPRate)
	}
	return Geometry{Bits: m, Hashes: k, Scheme: SchemeCuckoo, Seed: c.Seed}, nil
}

func (c CuckooConfig) isSized() bool { return c.Capacity != 0 || c.FPRate != 0 }

// checkOpen checks what does not depend on the filter to be opened.
func (c CuckooConfig) checkOpen() error {
	if !c.isSized() {
		return c.checkCalls()
	}
	_, err := c.Geometry()
	return err
}

// checkCalls checks what does not size the filter.
func (c CuckooConfig) checkCalls() error {
	rest := Config{
		Bits: 1, Hashes: 1, Scheme: SchemeXXH3,
		BatchBytes: c.BatchBytes, BatchParallel: c.BatchParallel, Reads: c.Reads,
	}
	if err, ok := rest.check().(*ConfigError); ok {
		err.of = "CuckooConfig"
		return err
	}
	return nil
}

// String shows the fields that are set. Of the seed it shows only that it is set.
func (c CuckooConfig) String() string { return describe(c) }

// Format is String for every verb: none shows the seed.
func (c CuckooConfig) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, c.String()) }
