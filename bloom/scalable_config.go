package bloom

import (
	"fmt"
	"io"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/internal/human"
)

const (
	// minLayerCapacity is the least a first layer is sized for: 32 words, the
	// least of a blocked filter, hold some hundred items anyway.
	minLayerCapacity = 1000
	// Each layer may use up one part of the rate in layerShare.
	layerShare = 5
)

// A ScalableConfig says how large the first layer of a [Scalable] is, how often
// the whole may be wrong, and how far it grows. All programs that share the
// filter must use the same Capacity, FPRate and Seed. Otherwise their calls
// fail with a [*MismatchError].
//
// The zero value is not valid: set Capacity and FPRate. It is plain data, to be
// copied freely. Its String does not show the seed.
type ScalableConfig struct {
	_ struct{}

	// Capacity is the number of distinct items the first layer is sized for, at
	// least 1. Less than 1,000 counts as 1,000. The filter takes up to 341
	// times as many: 5 times with two layers, 21 with three, 85 with four. Up
	// to 900,000 at 1 in 100, all five layers fit into a Redis string.
	Capacity uint64

	// FPRate is the false positive rate of the whole filter when all of its
	// layers are full: from 5e-9 to below 1. Each layer has a fifth of it.
	FPRate float64

	// Seed is that of [Config].
	Seed uint64 `json:"-"`

	// TTL is that of [Config]: the time from the filter's creation until it
	// expires. Growing does not prolong it.
	TTL time.Duration

	// MaxBytes ends the growth: no layer is added if it would make the string
	// longer. Then the filter takes more items with a rising false positive
	// rate, as any filter does, and WarnFill says so. The default, for 0, is
	// 100,000,000, the longest record that most plans allow. It must have room
	// for the first layer. With the default, a longer first layer is accepted,
	// and does not grow. If the database allows less than MaxBytes, its limit
	// ends the growth.
	MaxBytes uint64

	// BatchBytes and BatchParallel are those of [Config]. But an item takes about
	// 20 to 32 bytes a hash in an Add, and 36 to 58 in a look-up, by the number of
	// possible layers and their length; and a request of an AddAll has at most
	// 1,000 items.
	BatchBytes    int
	BatchParallel int

	// MissingIsEmpty, MustExist and Reads are those of [Config].
	MissingIsEmpty bool
	MustExist      bool
	Reads          Reads

	// WarnFill is called with the filter's Stats if an Add or AddAll takes the
	// newest layer over its capacity, because the filter cannot grow further;
	// the default, nil, never looks. Each Add says how many items the newest
	// layer has taken. From 3% over its capacity on, the one write of all
	// handles that takes it a sixteenth of the capacity further reads the
	// [Scalable.Stats]. If this fails, its error is dropped. After a warning the
	// handle is silent until the layer has taken as many items again as it is
	// for. The write calls WarnFill on its caller's goroutine, before it returns,
	// and a handle makes one call at a time.
	WarnFill func(ScalableStats) `json:"-"`
}

// Geometry checks the whole config and works out the geometry of the first
// layer. The error is a [*ConfigError].
func (c ScalableConfig) Geometry() (Geometry, error) {
	switch {
	case c.Capacity == 0:
		return Geometry{}, scalableErrorf("Capacity", "is 0: set the number of items to begin with, at least 1")
	// Written so that NaN is refused as well.
	case !(c.FPRate > 0 && c.FPRate < 1):
		return Geometry{}, scalableErrorf("FPRate", "is %v: it must be above 0 and below 1, e.g. 0.01", c.FPRate)
	case c.FPRate/layerShare < cells.MinBlockedRate:
		return Geometry{}, scalableErrorf("FPRate", "is %v: the layers reach 5e-9 together", c.FPRate)
	}
	geo, err := c.layer().Geometry()
	if namesCapacity(err) {
		return Geometry{}, scalableErrorf("Capacity", "is %s, and at FPRate %v the first layer does not fit into"+
			" a Redis string: lower it, for the filter grows, or raise FPRate", human.Count(c.Capacity), c.FPRate)
	}
	if err != nil {
		return Geometry{}, ofConfig(err, "ScalableConfig")
	}
	return geo, c.hasRoom(geo)
}

// hasRoom returns an error if the first layer is longer than MaxBytes.
func (c ScalableConfig) hasRoom(geo Geometry) error {
	if length := geo.Bytes(LayoutHeaded); c.MaxBytes != 0 && c.MaxBytes < length {
		return scalableErrorf("MaxBytes", "is %d: the first layer takes %d; raise it, or lower Capacity",
			c.MaxBytes, length)
	}
	return nil
}

func scalableErrorf(field, format string, args ...any) error {
	return &ConfigError{Field: field, Reason: fmt.Sprintf(format, args...), of: "ScalableConfig"}
}

// layer is the Config of a filter like the first layer.
func (c ScalableConfig) layer() Config {
	return Config{
		Capacity: c.capacity(), FPRate: c.FPRate / layerShare, Seed: c.Seed, TTL: c.TTL,
		BatchBytes: c.BatchBytes, BatchParallel: c.BatchParallel, MissingIsEmpty: c.MissingIsEmpty,
		MustExist: c.MustExist, Reads: c.Reads,
	}
}

// capacity is that of the first layer; 0 if it is not known.
func (c ScalableConfig) capacity() uint64 {
	if c.Capacity == 0 {
		return 0
	}
	return max(c.Capacity, minLayerCapacity)
}

func (c ScalableConfig) maxBytes() uint64 {
	if c.MaxBytes == 0 {
		return mostPlansRecord
	}
	return c.MaxBytes
}

// String shows the fields that are set. Of the seed and of WarnFill it shows only
// that they are set.
func (c ScalableConfig) String() string { return describe(c) }

// Format is String for every verb: none shows the seed.
func (c ScalableConfig) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, c.String()) }
