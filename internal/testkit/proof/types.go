package proof

import (
	"fmt"
	"math/rand/v2"

	"github.com/goccy/go-json"
)

// ReadType reads the JSON of a type. DrawType lists the names. "near" is none of
// a history over sockets, which has no regions.
func ReadType(name string, text []byte) (Type, error) {
	var t Type
	switch name {
	case "filter":
		t = &Filters{}
	case "window":
		t = &Windows{}
	case "cuckoo":
		t = &Cuckoos{}
	case "scalable":
		t = &Scalables{}
	case "sharded":
		t = &Shardeds{}
	case "mixed":
		t = &Mixed{}
	default:
		return nil, fmt.Errorf("proof: no type has the name %q", name)
	}
	return t, json.Unmarshal(text, t)
}

// DrawType draws the Config of a history. name is "filter", "near", "window",
// "cuckoo", "scalable", "sharded" or "mixed". Only a filter has themes.
func DrawType(rng *rand.Rand, name string, themes Theme) (t Type) {
	switch name {
	case "filter":
		f := DrawFilters(rng, themes)
		t = &f
	case "near":
		return drawNear(rng)
	case "window":
		t = DrawWindows(rng)
	case "cuckoo":
		t = DrawCuckoos(rng)
	case "scalable":
		t = DrawScalables(rng)
	case "sharded":
		t = DrawShardeds(rng)
	case "mixed":
		t = DrawMixed(rng)
	default:
		panic("proof: no type has the name " + name)
	}
	t.drawParallel(rng)
	return t
}
