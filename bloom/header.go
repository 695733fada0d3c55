package bloom

import (
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"
)

// The header word is a u53 at bit 0 of the string, from its top bit down:
//
//	1 | kind:2 | version:2 | scheme:3 | k:6 | seedTag:7 | m:32
//
// It has 53 bits: JavaScript reads it exactly. The top bit is always 1, and the
// sum of two words is larger than the largest u53. This makes BITFIELD's
// OVERFLOW FAIL INCRBY a "set if zero". Bits 53 to 63 are 0.
const (
	formatVersion = 1
	maxHashes     = 63

	seedTagShift = 32
	hashesShift  = 39
	schemeShift  = 45
	versionShift = 48
	kindShift    = 50
	markerBit    = 1 << 52
)

// headerInfo is a header word in its parts. The seed is known by its tag only.
type headerInfo struct {
	kind    Kind
	scheme  Scheme
	hashes  int
	seedTag uint8
	bits    uint64 // cells, m
}

// encodeHeader returns the header word of a filter. The geometry must be valid:
// a value too large for its field would spill into the next.
func encodeHeader(kind Kind, g Geometry) uint64 {
	h := g.info()
	h.kind = kind
	return h.word()
}

// info is the header of a plain filter of this geometry.
func (g Geometry) info() headerInfo {
	return headerInfo{KindFilter, g.Scheme, g.Hashes, seedTag(g.Seed), g.Bits}
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

// geometry returns the geometry in the header, with the caller's seed if the
// tag agrees with it, else with seed 0.
func (h headerInfo) geometry(seed uint64) Geometry {
	if seedTag(seed) != h.seedTag {
		seed = 0
	}
	return Geometry{Bits: h.bits, Hashes: h.hashes, Scheme: h.scheme, Seed: seed}
}

// hasWord reports whether the kind has a word of its own at bit 128.
func (h headerInfo) hasWord() bool { return h.kind != KindFilter || h.scheme == SchemeCuckoo }

// parseHeader reads a header word. It refuses a word no filter of version 1
// has; the error wraps ErrNotFilter. A word of 0 is a missing filter, and the
// caller's to deal with.
func parseHeader(word uint64) (headerInfo, error) {
	h := headerInfo{
		kind:    Kind(word >> kindShift & 3),
		scheme:  Scheme(word >> schemeShift & 7),
		hashes:  int(word >> hashesShift & 63),
		seedTag: uint8(word >> seedTagShift & 127),
		bits:    word & (1<<32 - 1),
	}
	if word>>52 != 1 {
		return headerInfo{}, fmt.Errorf("%w: its first 53 bits hold no header; use a key that"+
			" holds nothing else", ErrNotFilter)
	}
	if v := word >> versionShift & 3; v != formatVersion {
		return headerInfo{}, fmt.Errorf(
			"%w that this package can read: its header says format version %d, not %d: upgrade the"+
				" package if a newer one made it; if not, it is other data, whose first bytes an Add"+
				" has changed; use a key that holds nothing else",
			ErrNotFilter, v, formatVersion)
	}
	if wrong := h.impossible(); wrong != "" {
		return headerInfo{}, fmt.Errorf("%w: its header says %s; use a key that holds nothing else",
			ErrNotFilter, wrong)
	}
	return h, nil
}

// impossible says what no filter has, or "".
func (h headerInfo) impossible() string {
	switch {
	case h.scheme.cellBits() == 0:
		return h.scheme.String()
	case h.hashes == 0 || h.bits == 0 || h.bits > maxCells(h.scheme, LayoutHeaded):
		return fmt.Sprintf("k=%d and %d cells", h.hashes, h.bits)
	case h.scheme == SchemeFNV1a && h.seedTag != 0:
		return "fnv1a with a seed"
	case h.scheme == SchemeBlocked && (h.hashes%2 != 0 || h.bits%wordBits != 0):
		return fmt.Sprintf("blocked with k=%d and %d cells", h.hashes, h.bits)
	case h.scheme == SchemeCuckoo && (h.hashes < 2 || h.hashes > 5 || h.bits%wordBits != 0):
		return fmt.Sprintf("cuckoo with k=%d and %d cells", h.hashes, h.bits)
	}
	return ""
}

// seedTags is how many tags a seed other than 0 can have.
const seedTags = 127

// seedTag returns seven bits for the header, by which filters of different
// seeds differ: 0 for seed 0, else 1 to 127. It reveals less than seven bits of
// a secret seed. In return two secret seeds have the same tag once in 127.
func seedTag(seed uint64) uint8 {
	if seed == 0 {
		return 0
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], seed)
	return uint8(1 + xxh3.Hash(b[:])%seedTags)
}

func newMismatchError(kind Kind, want Geometry, got headerInfo) *MismatchError {
	return &MismatchError{
		Want: want, Got: got.geometry(want.Seed),
		WantKind: kind, GotKind: got.kind,
		OtherSeed: got.seedTag != seedTag(want.Seed), GotSeeded: got.seedTag != 0,
	}
}
