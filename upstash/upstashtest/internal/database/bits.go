package database

import (
	"math/bits"
	"strings"
)

const (
	errBit    = Failure("ERR bit is not an integer or out of range")
	errBitArg = Failure("ERR The bit argument must be 1 or 0.")
)

// setBit is SETBIT. The offsets of miniredis are ints, which are too small on
// 32-bit platforms.
func (d *Memory) setBit(args []string) Reply {
	at, ok := bitOffset(args[2], 0)
	if !ok {
		return errBitOffset
	}
	bit, ok := parseInt(args[3])
	if !ok || bit != 0 && bit != 1 {
		return errBit
	}
	old, _, f := d.get(args[1])
	if f != "" {
		return f
	}
	data := grown(old, int(at>>3)+1)
	was := readBits(data, at, 1)
	writeBits(data, at, 1, uint64(bit))
	d.setBytes(args[1], data)
	return int64(was)
}

// getBit is GETBIT. Bits past the end of the string, and those of a missing
// key, are 0.
func (d *Memory) getBit(args []string) Reply {
	at, ok := bitOffset(args[2], 0)
	if !ok {
		return errBitOffset
	}
	data, _, f := d.get(args[1])
	if f != "" {
		return f
	}
	return int64(readBits(data, at, 1))
}

// bitCount is BITCOUNT key [start end [BYTE|BIT]]. That of miniredis has no
// unit. As in Redis 7.0, the answer for a missing key or an empty range comes
// before the check of the other arguments. Later versions check them first.
func (d *Memory) bitCount(args []string) Reply {
	data, found, f := d.get(args[1])
	switch {
	case !found:
		return int64(0)
	case f != "":
		return f
	}
	if len(args) == 2 {
		return int64(countBits(data, 0, uint64(len(data))*8))
	}
	if len(args) > 5 || len(args) == 3 {
		return errSyntax
	}
	start, ok1 := parseInt(args[2])
	end, ok2 := parseInt(args[3])
	if !ok1 || !ok2 {
		return errNotInt
	}
	if start < 0 && end < 0 && start > end {
		return int64(0)
	}
	unit, f := bitUnit(args[4:])
	if f != "" {
		return f
	}
	from, to := clampBits(start, end, unit, len(data))
	return int64(countBits(data, from, to))
}

// bitPos is BITPOS key bit [start [end [BYTE|BIT]]]. A search for 0 without an
// end finds the first bit past the string if the string has none. With an end
// it does not.
func (d *Memory) bitPos(args []string) Reply {
	bit, ok := parseInt(args[2])
	if !ok {
		return errNotInt
	}
	if bit != 0 && bit != 1 {
		return errBitArg
	}
	data, found, f := d.get(args[1])
	switch {
	case !found:
		return -bit // as in a string of zeros without an end
	case f != "":
		return f
	case len(args) > 6:
		return errSyntax
	}
	start, end := int64(0), int64(-1)
	if len(args) > 3 {
		if start, ok = parseInt(args[3]); !ok {
			return errNotInt
		}
	}
	unit := int64(8)
	if len(args) == 6 {
		if unit, f = bitUnit(args[5:]); f != "" {
			return f
		}
	}
	if len(args) > 4 {
		if end, ok = parseInt(args[4]); !ok {
			return errNotInt
		}
	}
	from, to := clampBits(start, end, unit, len(data))
	if at := findBit(data, from, to, uint64(bit)); at < to {
		return int64(at)
	}
	if bit == 0 && len(args) < 5 && from < to {
		return int64(to) // past the end there are zeros
	}
	return int64(-1)
}

// bitUnit returns how many bits an index counts: 8 for BYTE, the default, and 1
// for BIT.
func bitUnit(args []string) (int64, Failure) {
	if len(args) == 0 {
		return 8, ""
	}
	switch strings.ToLower(cString(args[0])) {
	case "bit":
		return 1, ""
	case "byte":
		return 8, ""
	}
	return 0, errSyntax
}

// clampBits turns two Redis indexes into a half-open range of bits. Both
// indexes are inclusive, and negative ones count from the end.
func clampBits(start, end, unit int64, length int) (from, to uint64) {
	total := int64(length) * 8 / unit
	if start < 0 {
		start = max(0, start+total)
	}
	if end < 0 {
		end = max(0, end+total)
	}
	end = min(end, total-1)
	if start > end {
		return 0, 0
	}
	return uint64(start * unit), uint64((end + 1) * unit)
}

// countBits counts the 1 bits in a half-open range of bits. It reads the ends
// bit by bit, and whole bytes in between.
func countBits(data string, from, to uint64) (n int) {
	for ; from < to && from&7 != 0; from++ {
		n += int(readBits(data, from, 1))
	}
	for ; to > from && to&7 != 0; to-- {
		n += int(readBits(data, to-1, 1))
	}
	for i := from >> 3; i < to>>3; i++ {
		n += bits.OnesCount8(data[i])
	}
	return n
}

// findBit returns the offset of the first bit with this value, or to. It skips
// whole bytes without one.
func findBit(data string, from, to, bit uint64) uint64 {
	skip := byte(0xff) // a byte without a bit to find
	if bit == 1 {
		skip = 0
	}
	for from < to {
		if from&7 == 0 && to-from >= 8 && data[from>>3] == skip {
			from += 8
			continue
		}
		if readBits(data, from, 1) == bit {
			return from
		}
		from++
	}
	return to
}
