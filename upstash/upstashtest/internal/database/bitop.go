package database

import "strings"

const errBitOpNot = Failure("ERR BITOP NOT must be called with a single source key.")

// bitOp is BITOP. That of miniredis keeps the old time to live of the
// destination. It costs one pass over each source.
func (d *Memory) bitOp(args []string) Reply {
	op, to, keys := strings.ToUpper(cString(args[1])), args[2], args[3:]
	switch {
	case op != "AND" && op != "OR" && op != "XOR" && op != "NOT":
		return errSyntax
	case op == "NOT" && len(keys) != 1:
		return errBitOpNot
	}
	sources := make([]string, len(keys))
	size := 0
	for i, key := range keys {
		s, _, f := d.get(key)
		if f != "" {
			return f
		}
		sources[i] = s
		size = max(size, len(s))
	}
	d.db.Del(to)
	if size > 0 {
		d.setBytes(to, combine(op, sources, size))
	}
	return int64(size)
}

// combine treats a source shorter than size bytes as if zeros followed.
func combine(op string, sources []string, size int) []byte {
	out := make([]byte, size)
	copy(out, sources[0])
	if op == "NOT" {
		for i := range out {
			out[i] = ^out[i]
		}
	}
	for _, s := range sources[1:] {
		for i := range len(s) { // bytes, not runes
			switch op {
			case "AND":
				out[i] &= s[i]
			case "OR":
				out[i] |= s[i]
			default:
				out[i] ^= s[i]
			}
		}
		if op == "AND" {
			clear(out[len(s):])
		}
	}
	return out
}
