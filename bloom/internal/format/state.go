package format

import (
	"encoding/binary"
	"time"
)

// A Look is what one look at a key found that holds a string with a header.
type Look struct {
	Header, Birth int64
	Word          int64  // the kind's own
	Length        uint64 // of the string, in bytes
	SetBits       uint64 // behind the words, if counted
	TTL           time.Duration
	// Stray is true if bits are set that are 0 in every string with a header,
	// StrayKind if bits behind the kind's word are, which a plain filter ignores.
	Stray, StrayKind bool
}

// A State is a Look at a string that certainly is a filter's.
type State struct {
	Header  Header
	Birth   int64
	Word    int64
	Length  uint64
	SetBits uint64
	TTL     time.Duration
}

// Words checks the header, and the bits that are always 0. The length may be unknown.
func (l Look) Words() (State, error) {
	h, err := ParseHeader(uint64(l.Header))
	if err != nil {
		return State{}, err
	}
	s := State{h, l.Birth, l.Word, l.Length, l.SetBits, l.TTL}
	if l.Stray || h.HasWord() && (s.Word>>(WordBits-1) != 1 || l.StrayKind) {
		return State{}, ErrHeaderBits
	}
	return s, nil
}

// Check is Words, and checks the length allowed by FORMAT.md. Without all of these,
// other data would pass.
func (l Look) Check() (State, error) {
	s, err := l.Words()
	if err != nil {
		return State{}, err
	}
	// Every command that makes a filter writes to its body too. An Add of a
	// larger filter lengthens the string, and gives it a birth number if it has
	// none.
	if s.Length <= HeaderBytes || s.IsOverlong() && s.Birth&Marker == 0 {
		return State{}, notFilterf("it is %d bytes long, and its header allows %d to %d", s.Length, HeaderBytes+1,
			s.MaxBytes())
	}
	return s, nil
}

// CheckWord checks what the kind's own word says of the parts.
func (s *State) CheckWord() error {
	wrong := false
	switch s.Header.Kind {
	case Window:
		w := ParseWindow(s.Word)
		wrong = w.Panes < MinPanes || w.Panes > MaxPanes || w.Seconds < MinSeconds
	case Layers:
		n := ParseLayers(s.Word).Layers
		wrong = n < 1 || n > len(LayerAreas(s.Header.Bits))
	case Shard:
		w := ParseShard(s.Word)
		wrong = w.Index >= w.Count
	case Cuckoo:
		if ParseCuckoo(s.Word).Items > s.Header.Slots() {
			return notFilterf("it is a damaged Cuckoo, which counts more copies than it has room for: make it again")
		}
		return nil
	default:
		return nil
	}
	if wrong || s.Header.Scheme != Blocked {
		return ErrHeaderBits
	}
	return nil
}

// Words reads the words at the beginning of a string, and checks that they are
// those of a filter with this header.
func Words(h Header, data []byte) (State, error) {
	word := func(at int) uint64 { return binary.BigEndian.Uint64(data[at:]) }
	l := Look{
		Header: int64(word(0) >> lowBits), Birth: int64(word(BirthOffset/8) >> lowBits),
		Word: int64(word(KindOffset/8) >> lowBits), Length: uint64(len(data)),
		Stray:     word(0)<<WordBits != 0 || word(BirthOffset/8)<<WordBits != 0,
		StrayKind: word(KindOffset/8)<<WordBits != 0,
	}
	if l.Header != int64(h.Word()) {
		return State{}, ErrHeaderBits
	}
	s, err := l.Check()
	if err == nil {
		err = s.CheckWord()
	}
	return s, err
}

// IsOverlong reports whether the string is longer than its parts.
func (s *State) IsOverlong() bool { return s.Length > s.MaxBytes() }

// Parts returns how many panes or layers the string has, at least 1.
func (s *State) Parts() int {
	switch s.Header.Kind {
	case Window:
		return max(1, ParseWindow(s.Word).Panes)
	case Layers:
		return max(1, ParseLayers(s.Word).Layers)
	}
	return 1
}

// MaxBytes returns the length of the whole string.
func (s *State) MaxBytes() uint64 {
	switch s.Header.Kind {
	case Window:
		return End(PaneAreas(s.Header.Bits, s.Parts())) / 8
	case Layers:
		return End(LayerAreas(s.Header.Bits)) / 8
	}
	return Bytes(HeaderBits, s.Header.Bits, s.Header.Scheme.CellBits())
}

// LeastBytes returns the length of a string with all the parts in use. They must
// be possible.
func (s *State) LeastBytes() uint64 {
	if s.Header.Kind == Layers {
		return End(LayerAreas(s.Header.Bits)[:s.Parts()]) / 8
	}
	return s.MaxBytes()
}

// An Area is a part of a string and a filter by itself: a pane, or a layer.
type Area struct {
	Offset uint64 // of its first cell, in bits
	Words  uint64
}

// End returns the bit behind the area, the first of a byte.
func (a Area) End() uint64 { return a.Offset + (a.Words*WordBits+7)/8*8 }

// End returns the bit behind the last area.
func End(areas []Area) uint64 { return areas[len(areas)-1].End() }

// PaneAreas places n panes of m cells, each on its own bytes.
func PaneAreas(m uint64, n int) []Area {
	areas := make([]Area, n)
	next := uint64(HeaderBits)
	for i := range areas {
		areas[i] = Area{next, m / WordBits}
		next = areas[i].End()
	}
	return areas
}

const (
	// MaxLayers is how many layers a filter has at most. Each look-up reads them
	// all: more would make every look-up longer.
	MaxLayers = 5
	// LayerGrowth is how many times as large as the one before a layer is.
	LayerGrowth = 4
)

// LayerAreas places the possible layers, of which the first has m cells: as many
// as end within a Redis string.
func LayerAreas(m uint64) []Area {
	areas := make([]Area, 0, MaxLayers)
	next, words := uint64(HeaderBits), m/WordBits
	for range MaxLayers {
		if next+words*WordBits > MaxStringBits {
			break
		}
		a := Area{next, words}
		areas = append(areas, a)
		next, words = a.End(), words*LayerGrowth
	}
	return areas
}
