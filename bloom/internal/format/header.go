// Package format says what the bits of a filter's string mean: its header, its
// birth number, the kind's own word, where the cells of its parts are, and the
// frame of a stream. FORMAT.md describes it. It knows no server.
package format

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/internal/lots"
)

// A string begins with three words, and the cells follow. The header is at bit
// 0. The birth number is at bit 64, from its top bit down:
//
//	1 | random:42 | rate:10
//
// Every command that can create a filter sets it if it is zero, each attempt at it
// another one (package lots): so a filter that was deleted and made again has
// another, also if a late attempt made it. The rate is what the filter was made
// for, 0 if that is not known; nobody compares it. Bits 117 to 126 are 0. Bit 127
// is 1 if the TTL is settled: EXPIRE was run, or Persist or Expire was called. The
// kind's own word is at bit 128. The first bit of each word is 1: a write sets it
// if it is zero.
//
// Each word has 53 bits: that is the widest integer that JSON readers, JavaScript
// and Lua all carry exactly.
const (
	WordBits      = cells.WordBits
	BirthOffset   = 64
	SettledOffset = 127
	KindOffset    = 128
	HeaderBits    = 192
	HeaderBytes   = HeaderBits / 8

	MaxStringBits = 1 << 32 // a Redis string holds 512 MiB

	// Marker is the first bit of a word.
	Marker = 1 << (WordBits - 1)
	// RateMask has the bits of the rate in a birth number.
	RateMask = 1<<10 - 1

	// lowBits is how many bits of eight bytes are behind a word.
	lowBits = 64 - WordBits
)

// Package bloom documents these.
var (
	ErrNotFilter  = errors.New("bloom: the key holds data that is not a filter")
	ErrHeaderBits = error(&notFilter{"bits of its header are set that are always 0"})
)

// A Kind is what a string is. All but a Cuckoo have their number in the header.
type Kind uint8

// The kinds.
const (
	Filter Kind = iota
	Shard
	Layers
	Window
	Cuckoo
)

// A Scheme turns items into positions. It has its number in the header.
type Scheme uint8

// The schemes. The counters are not in use yet.
const (
	Blocked Scheme = iota
	FNV1a
	Counters4
	Counters8
	XXH3
	Buckets // of a Cuckoo
)

// String returns the scheme's name, such as "blocked", or "Scheme(9)" for an
// unknown one.
func (s Scheme) String() string {
	names := [...]string{"blocked", "fnv1a", "xxh3/4-bit", "xxh3/8-bit", "xxh3", "cuckoo"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("Scheme(%d)", uint8(s))
}

// CellBits returns the width of a cell: 1, or 4 or 8 for the counting schemes.
// An unknown scheme has cells of 0 bits.
func (s Scheme) CellBits() uint64 {
	switch s {
	case Blocked, FNV1a, XXH3, Buckets:
		return 1
	case Counters4:
		return 4
	case Counters8:
		return 8
	}
	return 0
}

// OfWords reports whether the cells are whole words of 53 bits.
func (s Scheme) OfWords() bool { return s == Blocked || s == Buckets }

// MaxCells returns how many cells fit into a string whose first one is at a bit.
func (s Scheme) MaxCells(offset uint64) uint64 {
	width := s.CellBits()
	if width == 0 {
		return 0
	}
	most := (MaxStringBits - offset) / width
	if s.OfWords() {
		most -= most % WordBits
	}
	return most
}

// A Header is a header word in its parts. The seed is known by its tag only.
type Header struct {
	Kind    Kind
	Scheme  Scheme
	Hashes  int
	SeedTag uint8
	Bits    uint64 // cells of one part, m
}

// The header word, from its top bit down:
//
//	1 | kind:2 | version:2 | scheme:3 | k:6 | seedTag:7 | m:32
//
// The top bit is always 1, and the sum of two words is larger than the largest
// u53. This makes BITFIELD's OVERFLOW FAIL INCRBY a "set if zero". Bits 53 to 63
// are 0.
const (
	version   = 1
	MaxHashes = 63

	seedTagShift = 32
	hashesShift  = 39
	schemeShift  = 45
	versionShift = 48
	kindShift    = 50
)

// Word returns the header word. A value too large for its field would spill into
// the next.
func (h Header) Word() uint64 {
	return Marker |
		uint64(h.Kind&3)<<kindShift | // a Cuckoo has 0
		version<<versionShift |
		uint64(h.Scheme)<<schemeShift |
		uint64(h.Hashes)<<hashesShift |
		uint64(h.SeedTag)<<seedTagShift |
		h.Bits
}

// ParseHeader reads a header word. It refuses a word no filter of version 1 has;
// the error wraps ErrNotFilter. A word of 0 is a missing filter, and the caller's
// to deal with.
func ParseHeader(word uint64) (Header, error) {
	h := Header{
		Kind:    Kind(word >> kindShift & 3),
		Scheme:  Scheme(word >> schemeShift & 7),
		Hashes:  int(word >> hashesShift & 63),
		SeedTag: uint8(word >> seedTagShift & 127),
		Bits:    word & (1<<32 - 1),
	}
	if h.Kind == Filter && h.Scheme == Buckets {
		h.Kind = Cuckoo
	}
	if word>>(WordBits-1) != 1 {
		return Header{}, &notFilter{"its first 53 bits hold no header"}
	}
	if v := word >> versionShift & 3; v != version {
		return Header{}, notFilterf("its header says format version %d, and this package reads %d:"+
			" upgrade the package if a newer one made it; if not, it is other data, whose first bytes an Add has"+
			" changed", v, version)
	}
	if wrong := h.Impossible(); wrong != "" {
		return Header{}, notFilterf("its header says %s", wrong)
	}
	return h, nil
}

// A notFilter is ErrNotFilter of a key, with what shows it.
type notFilter struct{ why string }

func notFilterf(format string, args ...any) error { return &notFilter{fmt.Sprintf(format, args...)} }

func (e *notFilter) Error() string {
	return ErrNotFilter.Error() + ": " + e.why + "; use a key that holds nothing else"
}
func (e *notFilter) Is(target error) bool { return target == ErrNotFilter }

// Impossible says what no filter has, or "".
func (h Header) Impossible() string {
	wrong := h.Hashes == 0 || h.Bits == 0 || h.Bits > h.Scheme.MaxCells(HeaderBits)
	switch h.Scheme {
	case Blocked:
		wrong = wrong || h.Hashes%2 != 0 || h.Bits%WordBits != 0
	case Buckets:
		wrong = wrong || h.Hashes < 2 || h.Hashes > 5 || h.Bits%WordBits != 0
	case FNV1a:
		if h.SeedTag != 0 {
			return "fnv1a with a seed"
		}
	case XXH3, Counters4, Counters8:
	default:
		return h.Scheme.String()
	}
	if wrong {
		return fmt.Sprintf("%v with k=%d and %d cells", h.Scheme, h.Hashes, h.Bits)
	}
	return ""
}

// Slots returns how many copies a Cuckoo has room for.
func (h Header) Slots() uint64 { return h.Bits / WordBits * uint64(h.Hashes) }

// HasWord reports whether the kind has a word of its own at bit 128.
func (h Header) HasWord() bool { return h.Kind != Filter }

// SeedTag returns seven bits for the header, by which filters of different seeds
// differ: 0 for seed 0, else 1 to 127. It reveals less than seven bits of a secret
// seed. In return two secret seeds have the same tag once in 127.
func SeedTag(seed uint64) uint8 {
	if seed == 0 {
		return 0
	}
	const tags = 127 // of a seed other than 0
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], seed)
	return uint8(1 + xxh3.Hash(b[:])%tags)
}

// Bytes returns how long a string of so many cells is, the first of them at a
// bit.
func Bytes(offset, cells, width uint64) uint64 {
	// Rounding up by parts: cells*width may be more than a uint64 holds.
	return offset/8 + cells/8*width + (cells%8*width+7)/8
}

// NewBirth makes the birth number of a command's first attempt, of random bits and
// the code of a rate.
func NewBirth(random, rate uint64) int64 {
	return lots.OfCall(int64(Marker | random>>12&^RateMask | rate))
}

// RateIn returns the code of the rate in a birth number, 0 if there is none.
func RateIn(birth int64) uint64 {
	if birth&Marker == 0 {
		return 0
	}
	return KnownRate(uint64(birth) & RateMask)
}

// KnownRate returns the code of a rate, or 0 if no rate has it.
func KnownRate(code uint64) uint64 {
	if _, ok := cells.RateOf(code); !ok {
		return 0
	}
	return code
}
