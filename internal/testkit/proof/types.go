package proof

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
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
	default:
		return nil, fmt.Errorf("proof: no type has the name %q", name)
	}
	return t, json.Unmarshal(text, t)
}

// DrawType draws the Config of a history. name is "filter", "near", "window",
// "cuckoo", "scalable" or "sharded". Only a filter has themes.
func DrawType(rng *rand.Rand, name string, themes Theme) Type {
	switch name {
	case "filter":
		f := DrawFilters(rng, themes)
		return &f
	case "near":
		return drawNear(rng)
	case "window":
		return DrawWindows(rng)
	case "cuckoo":
		return DrawCuckoos(rng)
	case "scalable":
		return DrawScalables(rng)
	case "sharded":
		return DrawShardeds(rng)
	}
	panic("proof: no type has the name " + name)
}
