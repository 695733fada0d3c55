package bloom

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"

	"github.com/upbloom/upbloom/bloom/internal/cells"
)

// A Local is a Bloom filter in memory. Its bytes are those of the Redis string
// with the same items: one can be made of the other. It answers in some 20 ns
// and sends nothing.
//
// The zero value is a filter without cells. It finds nothing, and [Local.Add]
// panics; [Local.UnmarshalBinary] and [Local.ReadFrom] fill it. Any number of
// goroutines may read a Local at once: Exists, [Local.ExistsAll],
// [Local.Cardinality], Stats, [Local.Clone], [Local.Bytes],
// [Local.MarshalBinary] and [Local.WriteTo] only read it, and so does a Merge of
// it into another. A call that changes it (Add, [Local.AddAll], [Local.AddSeq],
// [Local.Merge], ReadFrom, UnmarshalBinary) must be the only call at the time:
// if there may be others, guard all calls with a sync.RWMutex. A Local must not
// be copied: use Clone.
type Local struct {
	geo     Geometry
	words   uint64 // blocked: in the body; 0 for the others
	inverse uint64 // reciprocal(words), with shift
	shift   uint64
	pairs   *pairTable
	size    int    // of the string, in bytes
	buf     []byte // the string and some zero bytes: see padded
}

// NewLocal makes an empty filter of a geometry from [Config.Geometry] or
// [Filter.Geometry], which have checked it. It allocates the whole string,
// g.Bytes(LayoutHeaded) bytes. It panics if no filter can have the geometry:
// this is a mistake in the program, and a filter without cells would answer
// "no" to everything.
func NewLocal(g Geometry) *Local {
	if wrong := g.impossible(); wrong != "" {
		panic("bloom: NewLocal: no filter has " + wrong +
			": take the Geometry from Config.Geometry or Filter.Geometry")
	}
	return newLocal(g)
}

// newLocal is NewLocal for a checked geometry.
func newLocal(g Geometry) *Local {
	size := int(g.Bytes(LayoutHeaded))
	return localOf(g, size, make([]byte, padded(size)))
}

// localOf makes a Local of a padded buffer, and writes its header.
func localOf(g Geometry, size int, buf []byte) *Local {
	l := &Local{geo: g, size: size, buf: buf}
	if g.Scheme == SchemeBlocked {
		l.words = g.Bits / wordBits
		l.inverse, l.shift = reciprocal(l.words)
		l.pairs = sharedPairs()
	}
	putHeader(buf, g)
	return l
}

// Add adds an item to the filter and reports whether it was new. If Add returns
// false, the item was added before, or is a false positive. Add costs one hash
// of the item and k/2 memory accesses ([SchemeBlocked]; k for the others), and
// allocates nothing.
func (l *Local) Add(item string) (added bool) {
	if l.words == 0 {
		return l.addBits(item)
	}
	x, y := cells.Digest(item, l.geo.Seed)
	words, inverse, shift, pairs := l.words, l.inverse, l.shift, l.pairs
	bit, pair := wordAt(x, words, inverse, shift, pairs)
	z := uint64(l.geo.Hashes) / 2
	if z == 1 {
		return setPair(l.buf, bit, pair) != 0
	}
	// Two words without a loop: most filters have no more.
	x += y
	bit2, pair2 := wordAt(x, words, inverse, shift, pairs)
	missing := setPair(l.buf, bit, pair) | setPair(l.buf, bit2, pair2)
	for i := uint64(2); i < z; i++ {
		y += i - 1
		x += y
		bit, pair = wordAt(x, words, inverse, shift, pairs)
		missing |= setPair(l.buf, bit, pair)
	}
	return missing != 0
}

// Exists reports whether the item is in the filter. If it returns false, the
// item was never added; if true, the item was added, or is a false positive.
// Exists costs what [Local.Add] does, less if the item is not there, and
// allocates nothing.
func (l *Local) Exists(item string) bool {
	if l.words == 0 {
		return l.hasBits(item)
	}
	x, y := cells.Digest(item, l.geo.Seed)
	words, inverse, shift, pairs, buf := l.words, l.inverse, l.shift, l.pairs, l.buf
	for i, z := uint64(0), uint64(l.geo.Hashes)/2; i < z; {
		bit, pair := wordAt(x, words, inverse, shift, pairs)
		if pair&^(load(buf, bit/8)<<(bit%8)) != 0 {
			return false
		}
		i++
		x += y
		y += i
	}
	return true
}

// Merge adds all items of the other filter, and leaves that as it is. Both must
// have the same geometry and seed, else the error is a [*MismatchError] and
// nothing is changed. Merge takes about 0.1 ms a megabyte.
func (l *Local) Merge(other *Local) error {
	if l.geo != other.geo {
		return &MismatchError{
			Want: l.geo, Got: other.geo, OtherSeed: l.geo.Seed != other.geo.Seed,
			GotSeeded: other.geo.Seed != 0, local: true,
		}
	}
	orInto(l.buf, other.buf)
	return nil
}

// Cardinality estimates how many distinct items were added, as
// [Filter.Cardinality] does. If all cells are set, the error is [ErrSaturated].
// It reads the whole string, about 0.1 ms a megabyte.
func (l *Local) Cardinality() (uint64, error) {
	s := l.Stats()
	if s.Saturated {
		return 0, ErrSaturated
	}
	return s.Items, nil
}

// Stats returns the state of the filter. Its Capacity is not known, and 0, and
// it has no TTL. It reads the whole string, about 0.1 ms a megabyte.
func (l *Local) Stats() Stats {
	if l.size == 0 {
		return Stats{}
	}
	s := statsOf(l.geo, LayoutHeaded, 0, l.setBits())
	s.Seeded, s.Bytes = l.geo.Seed != 0, uint64(l.size)
	return s
}

// setBits returns how many cells are set.
func (l *Local) setBits() (n uint64) {
	for at := uint64(headerBytes); at < uint64(len(l.buf)); at += 8 {
		n += uint64(bits.OnesCount64(load(l.buf, at)))
	}
	return n
}

// Clone returns a filter with the same items and memory of its own.
func (l *Local) Clone() *Local {
	twin := *l
	twin.buf = bytes.Clone(l.buf)
	return &twin
}

// Bytes returns a copy of the Redis string: 24 bytes of header and then the
// cells. The last 16 bytes of the header belong to the key, and are 0 here. Of
// the seed it holds only the tag in the header. It does not show whether its
// end is missing: to keep a filter, use [Local.MarshalBinary] or
// [Local.WriteTo].
func (l *Local) Bytes() []byte { return bytes.Clone(l.raw()) }

// raw is the Redis string itself.
func (l *Local) raw() []byte { return l.buf[:l.size:l.size] }

// Geometry returns the filter's geometry with its seed, or the zero Geometry
// for a zero [Local].
func (l *Local) Geometry() Geometry { return l.geo }

// String describes the filter without its seed.
func (l *Local) String() string { return "bloom.Local(" + l.geo.String() + ")" }

// Format is String for every verb: %+v and %#v show neither the seed nor the
// cells.
func (l *Local) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, l.String()) }

// learnWord sets the bits of one word of the body, as GET u53 answered it.
func (l *Local) learnWord(index uint64, word int64) {
	bit := headerBits + wordBits*index
	at := bit / 8
	store(l.buf, at, load(l.buf, at)|uint64(word)<<(64-wordBits)>>(bit%8))
}

// orBytes sets the bits of a part of a Redis string, which starts at the byte
// offset. It leaves out the header, and what is behind the last cell.
func (l *Local) orBytes(offset int, part []byte) {
	if skip := headerBytes - offset; skip > 0 {
		part = part[min(skip, len(part)):]
		offset = headerBytes
	}
	if offset >= l.size {
		return
	}
	part = part[:min(len(part), l.size-offset)]
	orInto(l.buf[offset:], part)
	l.clearTail()
}

// clearTail clears the bits of the last byte behind the cells.
func (l *Local) clearTail() { l.buf[l.size-1] &= 0xff << (-l.geo.Bits & 7) }

// orInto sets the bits of src in dst, which is as long or longer.
func orInto(dst, src []byte) {
	for len(src) >= 8 {
		word := binary.LittleEndian.Uint64(dst) | binary.LittleEndian.Uint64(src)
		binary.LittleEndian.PutUint64(dst, word)
		dst, src = dst[8:], src[8:]
	}
	for i, b := range src {
		dst[i] |= b
	}
}

// putHeader writes the header of a filter that is a string by itself; bits 53
// to 191 are 0.
func putHeader(buf []byte, g Geometry) {
	store(buf, 0, encodeHeader(KindFilter, g)<<(64-wordBits))
	store(buf, 8, 0)
	store(buf, 16, 0)
}
