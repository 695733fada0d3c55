package database

// bitfield is BITFIELD.
func (d *Memory) bitfield(args []string) Reply {
	return d.runBitfield(args, false)
}

// bitfieldRO is BITFIELD_RO, which refuses other operations than GET.
func (d *Memory) bitfieldRO(args []string) Reply {
	return d.runBitfield(args, true)
}

// runBitfield parses the whole command first: a malformed one changes nothing.
// Before the first operation runs, the string grows to the end of the farthest
// write. It stays that long even if OVERFLOW FAIL forbids the write. A command
// with GETs alone neither grows nor copies the string. Any other costs one copy
// of the string, and up to nine bytes for each operation.
func (d *Memory) runBitfield(args []string, readOnly bool) Reply {
	key := args[1]
	p, f := parseBitfield(args[2:])
	if f != "" {
		return f
	}
	if p.writes && readOnly {
		return errFieldRO
	}
	old, _, f := d.get(key)
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
	d.setBytes(key, data)
	return out
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
	below := !above && b < 0 && -uint64(b) > a
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
	above := a > limit || narrow && b > up || a >= 0 && b > 0 && b > up
	below := !above && (a < least || narrow && b < down || a < 0 && b < 0 && b < down)
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
