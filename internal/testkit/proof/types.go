package proof

import (
	"fmt"
	"math/rand/v2"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/upstash"
)

// newType returns the empty type of a name. "near" is none of a history over
// sockets, which has no regions.
func newType(name string) drawn {
	switch name {
	case "filter":
		return &Filters{}
	case "near":
		return &Filters{Near: true}
	case "window":
		return &Windows{}
	case "cuckoo":
		return &Cuckoos{}
	case "scalable":
		return &Scalables{}
	case "sharded":
		return &Shardeds{}
	case "mixed":
		return &Mixed{}
	}
	panic(fmt.Sprintf("proof: no type has the name %q", name))
}

// A drawn type draws the Config of a history. Only a filter has themes.
type drawn interface {
	Type
	drawConfig(rng *rand.Rand, themes Theme)
}

// DrawType draws the Config of a history. name is "filter", "near", "window",
// "cuckoo", "scalable", "sharded" or "mixed".
func DrawType(rng *rand.Rand, name string, themes Theme) Type {
	t := newType(name)
	t.Base().Parallel = 1 + rng.IntN(2)
	t.drawConfig(rng, themes)
	return t
}

// ReadType reads the JSON of a type.
func ReadType(name string, text []byte) (Type, error) {
	t := newType(name)
	return t, json.Unmarshal(text, t)
}

// NewSession returns the handles of a process, which has a client for each database.
// Their observer must be Observe.
func NewSession(of Type, clients []*upstash.Client, key string) *Session {
	m, ok := of.(*Mixed)
	if !ok {
		return sessionOf(of.(maker), clients, key)
	}
	s := sessionOf(&m.Filter, clients, m.keyOf(key, 0))
	s.beside = sessionOf(m.other(), clients, m.keyOf(key, 1))
	return s
}
