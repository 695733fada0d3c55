package format

import "math/bits"

// The kinds' own words, at bit 128. What is fixed when the string is made stands
// above what changes: two handles of a string may differ in its mutable bits.

// A WindowWord is the kind's word of a Window, from its top bit down:
//
//	1 | idle:1 | R:4 | seconds:23 | epoch:24
type WindowWord struct {
	Idle    bool
	Panes   int // R
	Seconds uint64
	Epoch   uint64
}

// EpochBits is how many bits of a WindowWord are mutable.
const (
	EpochBits = 24

	secondsShift = EpochBits
	secondsBits  = 23
	panesShift   = secondsShift + secondsBits
	idleShift    = panesShift + 4
)

// The panes that a Window has, and the seconds that one lasts.
const (
	MinPanes, MaxPanes     = 3, 6
	MinSeconds, MaxSeconds = 10, 1<<secondsBits - 1
)

// Word returns the word.
func (w WindowWord) Word() int64 {
	word := Marker | uint64(w.Panes)<<panesShift | w.Seconds<<secondsShift | w.Epoch
	if w.Idle {
		word |= 1 << idleShift
	}
	return int64(word)
}

// ParseWindow takes the word of a Window apart.
func ParseWindow(word int64) WindowWord {
	return WindowWord{
		Idle: word>>idleShift&1 == 1, Panes: int(word >> panesShift & 15),
		Seconds: uint64(word) >> secondsShift & (1<<secondsBits - 1), Epoch: EpochOf(word),
	}
}

// EpochOf returns the epoch in the word of a Window.
func EpochOf(word int64) uint64 { return uint64(word) & (1<<EpochBits - 1) }

// A LayersWord is the kind's word of a Scalable, from its top bit down:
//
//	1 | capacity:16 | layers:4 | taken:32
//
// It holds the capacity rounded down, by 1 in 2,048 at most.
type LayersWord struct {
	Capacity uint64 // of the first layer
	Layers   int    // in use
	Taken    uint64 // items, by the newest layer
}

// TakenBits is how many low bits of a LayersWord hold Taken, and LayersBits how
// many are mutable.
const (
	TakenBits  = 32
	LayersBits = TakenBits + 4

	// mantissaBits is the width of the mantissa of the capacity. An exponent of 5
	// bits stands above it.
	mantissaBits = 11
)

// Word returns the word.
func (l LayersWord) Word() int64 {
	return Marker | int64(encodeCapacity(l.Capacity))<<LayersBits | int64(l.Layers)<<TakenBits | int64(l.Taken)
}

// ParseLayers takes the word of a Scalable apart.
func ParseLayers(word int64) LayersWord {
	return LayersWord{
		decodeCapacity(uint64(word) >> LayersBits & (1<<16 - 1)), int(word >> TakenBits & 15), uint64(uint32(word)),
	}
}

// HeldCapacity returns a capacity as a LayersWord holds it.
func HeldCapacity(n uint64) uint64 { return decodeCapacity(encodeCapacity(n)) }

// encodeCapacity writes n, at least 1, as (1 + mantissa/2^11) * 2^exponent.
func encodeCapacity(n uint64) uint64 {
	exponent := bits.Len64(n) - 1
	mantissa := n << (63 - exponent) << 1 >> (64 - mantissaBits)
	return uint64(exponent)<<mantissaBits | mantissa
}

func decodeCapacity(code uint64) uint64 {
	return (1<<mantissaBits | code&(1<<mantissaBits-1)) << (code >> mantissaBits) >> mantissaBits
}

// A ShardWord is the kind's word of a shard, from its top bit down:
//
//	1 | count:12 | index:12 | 0:28
//
// The 28 bits are free for later versions.
type ShardWord struct{ Count, Index int }

// ShardFreeBits is how many bits of a ShardWord are not in use.
const (
	ShardFreeBits = 28

	shardBits = 12
)

// Word returns the word.
func (s ShardWord) Word() int64 {
	return Marker | int64(s.Count)<<(ShardFreeBits+shardBits) | int64(s.Index)<<ShardFreeBits
}

// ParseShard takes the word of a shard apart.
func ParseShard(word int64) ShardWord {
	const mask = 1<<shardBits - 1
	return ShardWord{int(word >> (ShardFreeBits + shardBits) & mask), int(word >> ShardFreeBits & mask)}
}

// A CuckooWord is the kind's word of a Cuckoo, from its top bit down:
//
//	1 | items:32 | ones:20
//
// If anything but our scripts writes, the two fall behind, and Stats notices.
type CuckooWord struct {
	Items uint64 // copies in the table
	Ones  uint64 // set bits of the cells mod 2^20
}

// OnesBits is how many low bits of a CuckooWord hold Ones.
const OnesBits = 20

// ParseCuckoo takes the word of a Cuckoo apart.
func ParseCuckoo(word int64) CuckooWord {
	return CuckooWord{uint64(word) >> OnesBits & (1<<32 - 1), uint64(word) & (1<<OnesBits - 1)}
}
