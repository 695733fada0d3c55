package bloom

import (
	"fmt"
	"strconv"
)

// A Kind says what a stored filter is part of. It is in the header, so that a shard or a
// layer is not taken for a filter by itself. The zero value is KindFilter.
type Kind uint8

const (
	KindFilter Kind = 0 // a filter by itself
	KindShard  Kind = 1 // one of a Sharded
	KindLayer  Kind = 2 // one of a Scalable
	KindPane   Kind = 3 // one of a Window
)

// String returns "filter", "shard", "layer", "pane", or "Kind(9)" for an unknown one.
func (k Kind) String() string {
	switch k {
	case KindFilter:
		return "filter"
	case KindShard:
		return "shard"
	case KindLayer:
		return "layer"
	case KindPane:
		return "pane"
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}

// The header word is a u53 at bit 0 of the string, from its top bit down:
//
//	1 | kind:2 | version:2 | scheme:2 | k:6 | seedTag:8 | m:32
//
// 53 bits, so that JavaScript reads it exactly. The top bit is always 1, so that any two
// words add up past the largest u53: BITFIELD's OVERFLOW FAIL INCRBY is then "set if zero".
const (
	formatVersion = 1
	maxHashes     = 63

	seedTagShift = 32
	hashesShift  = 40
	schemeShift  = 46
	versionShift = 48
	kindShift    = 50
	markerBit    = 1 << 52
)

// headerInfo is what a header word says. The seed is known by its tag only.
type headerInfo struct {
	kind    Kind
	scheme  Scheme
	hashes  int
	seedTag uint8
	bits    uint64 // cells, m
}

// encodeHeader returns the header word of a filter. The geometry is a valid one: what does
// not fit its field would spill into the next.
func encodeHeader(kind Kind, g Geometry) uint64 {
	return headerInfo{kind, g.Scheme, g.Hashes, seedTag(g.Seed), g.Bits}.word()
}

func (h headerInfo) word() uint64 {
	return markerBit |
		uint64(h.kind)<<kindShift |
		formatVersion<<versionShift |
		uint64(h.scheme)<<schemeShift |
		uint64(h.hashes)<<hashesShift |
		uint64(h.seedTag)<<seedTagShift |
		h.bits
}

// geometry returns what the header says of the geometry, with the caller's seed where the
// tag agrees with it, else with seed 0.
func (h headerInfo) geometry(seed uint64) Geometry {
	if seedTag(seed) != h.seedTag {
		seed = 0
	}
	return Geometry{Bits: h.bits, Hashes: h.hashes, Scheme: h.scheme, Seed: seed}
}

// parseHeader reads a header word. It refuses what no version 1 filter has, with an error
// that wraps ErrNotFilter. The caller has dealt with 0, which is a missing filter.
func parseHeader(word uint64) (headerInfo, error) {
	h := headerInfo{
		kind:    Kind(word >> kindShift & 3),
		scheme:  Scheme(word >> schemeShift & 3),
		hashes:  int(word >> hashesShift & 63),
		seedTag: uint8(word >> seedTagShift),
		bits:    word & (1<<32 - 1),
	}
	if word>>52 != 1 {
		return headerInfo{}, fmt.Errorf("%w: its first 53 bits hold no header; use a key that"+
			" holds nothing else", ErrNotFilter)
	}
	if v := word >> versionShift & 3; v != formatVersion {
		return headerInfo{}, fmt.Errorf(
			"%w that this package can read: format version %d, not %d; upgrade the package",
			ErrNotFilter, v, formatVersion)
	}
	if h.hashes == 0 || h.bits == 0 || h.bits > maxCells(h.scheme, LayoutHeaded) {
		return headerInfo{}, fmt.Errorf("%w: its header says k=%d and %d cells",
			ErrNotFilter, h.hashes, h.bits)
	}
	if h.scheme == SchemeFNV1a && h.seedTag != 0 {
		return headerInfo{}, fmt.Errorf("%w: its header says fnv1a with a seed", ErrNotFilter)
	}
	return h, nil
}

// maxCells returns how many cells of a scheme fit into a Redis string.
func maxCells(s Scheme, l Layout) uint64 {
	return (maxStringBits - l.bodyOffset()) / s.cellBits()
}
