package bloom

import "strconv"

// A Layout says what a Redis string holds beside the cells. The zero value is
// LayoutHeaded, the one to use.
type Layout uint8

const (
	// LayoutHeaded puts a header of 24 bytes in front of the cells. Every
	// command reads it, so that a missing filter or one of another geometry is
	// an error and never a wrong "no".
	LayoutHeaded Layout = 0

	// LayoutBare has the cells alone, from bit 0: for strings that other
	// programs wrote. Nothing can be checked: a wrong number of bits or hashes,
	// a wrong scheme or seed leads to wrong answers without an error, and a
	// missing filter counts as an empty one. SchemeBlocked has no bare form.
	LayoutBare Layout = 1
)

const (
	maxStringBits = 1 << 32 // a Redis string holds 512 MiB
	headerBits    = 192
	headerBytes   = headerBits / 8
)

// String returns "headed", "bare", or "Layout(9)" for an unknown one.
func (l Layout) String() string {
	switch l {
	case LayoutHeaded:
		return "headed"
	case LayoutBare:
		return "bare"
	}
	return "Layout(" + strconv.Itoa(int(l)) + ")"
}

// bodyOffset returns the bit at which cell 0 starts.
func (l Layout) bodyOffset() uint64 {
	if l == LayoutBare {
		return 0
	}
	return headerBits
}
