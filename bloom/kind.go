package bloom

import "strconv"

// A Kind says what a stored filter is part of. It is in the header, so that one
// kind is not taken for another. The zero value is KindFilter, the only one
// that this package writes today.
type Kind uint8

// KindFilter is a filter by itself.
const KindFilter Kind = 0

// The kinds that the format reserves for parts of a larger structure.
const (
	kindShard Kind = 1
	kindLayer Kind = 2
	kindPane  Kind = 3
)

// String returns "filter", "shard", "layer", "pane", or "Kind(9)" for an
// unknown one.
func (k Kind) String() string {
	switch k {
	case KindFilter:
		return "filter"
	case kindShard:
		return "shard"
	case kindLayer:
		return "layer"
	case kindPane:
		return "pane"
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}
