package database

import "math/bits"

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
	if !found {
		return int64(0)
	}
	if f != "" {
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
	if start < 0 && start > end {
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
	switch keyword(args[0]) {
	case "BIT":
		return 1, ""
	case "BYTE":
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
		if data[from>>3] == skip {
			from = (from | 7) + 1
			continue
		}
		if readBits(data, from, 1) == bit {
			return from
		}
		from++
	}
	return to
}

// bitfield returns BITFIELD, or BITFIELD_RO, which refuses other operations than
// GET. It parses the whole command first: a malformed one changes nothing.
// Before the first operation runs, the string grows to the end of the farthest
// write. It stays that long even if OVERFLOW FAIL forbids the write. A command
// with GETs alone neither grows nor copies the string. Any other costs one copy
// of the string, and up to nine bytes for each operation.
func bitfield(readOnly bool) func(*Memory, []string) Reply {
	return func(d *Memory, args []string) Reply {
		p, f := parseBitfield(args[2:])
		if f != "" {
			return f
		}
		if p.writes && readOnly {
			return errFieldRO
		}
		old, _, f := d.get(args[1])
		if f != "" {
			return f
		}
		out := make(Array, len(p.ops))
		if !p.writes {
			for i, op := range p.ops {
				out[i] = op.decode(readBits(old, op.offset, op.bits))
			}
			return out
		}
		data := grown(old, int(p.size))
		for i, op := range p.ops {
			if v, ok := op.apply(data); ok {
				out[i] = v
			}
		}
		d.setBytes(args[1], data)
		return out
	}
}

// apply runs one operation, and reports false if OVERFLOW FAIL forbids it.
func (op fieldOp) apply(data []byte) (result int64, ok bool) {
	old := op.decode(readBits(data, op.offset, op.bits))
	base, add := old, op.value
	switch op.verb {
	case fieldGet:
		return old, true
	case fieldSet:
		base, add = op.value, 0
	}
	next, over := op.sum(base, add)
	if over && op.overflow == fail {
		return 0, false
	}
	writeBits(data, op.offset, op.bits, uint64(next))
	if op.verb == fieldSet {
		return old, true
	}
	return next, true
}

// sum adds within the field's type, and reports whether the sum overflowed. If
// so, it wraps around or stays at the limit, as the mode says.
func (op fieldOp) sum(a, b int64) (n int64, over bool) {
	if op.signed {
		return op.sumSigned(a, b)
	}
	return op.sumUnsigned(uint64(a), b)
}

// sumUnsigned works in uint64. A negative value of a SET becomes a very large
// one, and saturates at the greatest value of the field, not at 0.
func (op fieldOp) sumUnsigned(a uint64, b int64) (int64, bool) {
	limit := uint64(1)<<op.bits - 1
	above := a > limit || b > 0 && uint64(b) > limit-a
	// Negating in uint64 is right for the least int64 too.
	below := b < 0 && -uint64(b) > a
	switch {
	case !above && !below:
		return int64(a + uint64(b)), false
	case op.overflow == wrap:
		return int64((a + uint64(b)) & limit), true
	case above:
		return int64(limit), true
	}
	return 0, true
}

// sumSigned compares as Redis does, before adding, because the sum of two int64
// may be none.
func (op fieldOp) sumSigned(a, b int64) (int64, bool) {
	limit := int64(1)<<(op.bits-1) - 1
	least := -limit - 1
	total := a + b // right modulo 2^64
	// The differences wrap around for a SET near the ends of int64. So the least
	// int64 saturates at the field's greatest value, as it does in Redis.
	up, down, narrow := limit-a, least-a, op.bits < 64
	above := b > up && (narrow || a >= 0)
	below := b < down && (narrow || a < 0)
	switch {
	case !above && !below:
		return total, false
	case op.overflow == wrap:
		return op.decode(uint64(total)), true
	case above:
		return limit, true
	}
	return least, true
}

// decode reads the low bits of v as a value of the field's type.
func (op fieldOp) decode(v uint64) int64 {
	unused := 64 - op.bits
	if op.signed {
		return int64(v<<unused) >> unused
	}
	return int64(v << unused >> unused)
}

// readBits reads n bits, most significant first. Bits past the end are 0.
func readBits[T string | []byte](data T, offset uint64, n uint8) uint64 {
	var v uint64
	for n > 0 {
		var b byte
		if i := offset >> 3; i < uint64(len(data)) {
			b = data[i]
		}
		skip := uint8(offset & 7)
		take := min(8-skip, n)
		v = v<<take | uint64(b<<skip>>(8-take))
		offset += uint64(take)
		n -= take
	}
	return v
}

// writeBits writes the low n bits of v. The string must be long enough.
func writeBits(data []byte, offset uint64, n uint8, v uint64) {
	for n > 0 {
		skip := uint8(offset & 7)
		take := min(8-skip, n)
		n -= take
		shift := 8 - skip - take
		mask := byte(1<<take-1) << shift
		b := &data[offset>>3]
		*b = *b&^mask | byte(v>>n)<<shift&mask
		offset += uint64(take)
	}
}

// bitOp is BITOP. That of miniredis leaves the time to live of the destination,
// even if no destination is left.
func (d *Memory) bitOp(args []string) Reply {
	reply, to := d.dispatch(args), args[2]
	if _, ok := reply.(int64); ok {
		value, _ := d.db.Get(to)
		_ = d.db.Set(to, value) // without a time to live
		if value == "" {
			d.db.Del(to)
		}
	}
	return reply
}
