// Package opsize has the lengths of operations in the JSON of a BITFIELD.
package opsize

import "strconv"

// Get returns how many bytes a Get, or an offset of GetWords, adds to
// the size of an upstash.BitField.
func Get(typ string, offset uint64) int {
	return len(`,"GET","",""`) + len(typ) + decimals(offset)
}

// Set is [Get] for a Set, or each bit of SetBits.
func Set(typ string, offset uint64, value int64) int {
	size := len(`,"SET","","",`) + len(typ) + decimals(offset)
	if value == 1 {
		return size + 1
	}
	var room [20]byte
	return size + len(`""`) + len(strconv.AppendInt(room[:0], value, 10))
}

func decimals(n uint64) int {
	d := 1
	for ; n >= 10; n /= 10 {
		d++
	}
	return d
}
