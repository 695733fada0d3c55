package bloom

import "strconv"

// A Kind says what a stored string is: a filter by itself, or one of the types
// that are made of several parts. It is in the header, so that one kind is not
// taken for another. The zero value is KindFilter.
type Kind uint8

const (
	KindFilter Kind = 0 // a filter by itself
	KindShard  Kind = 1 // one shard of a sharded filter
	KindLayers Kind = 2 // the layers of a scalable filter
	KindWindow Kind = 3 // the panes of a window
)

// String returns "filter", "shard", "layers", "window", or "Kind(9)" for an
// unknown one.
func (k Kind) String() string {
	switch k {
	case KindFilter:
		return "filter"
	case KindShard:
		return "shard"
	case KindLayers:
		return "layers"
	case KindWindow:
		return "window"
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}
