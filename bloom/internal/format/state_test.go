package format

import (
	"errors"
	"testing"
)

// A look at a string is a filter's if its words, the bits beside them and its
// length are: the rules of FORMAT.md.
func TestLookIsAFilters(t *testing.T) {
	plain, window := int64(filter.Word()), int64(Header{Kind: Window, Bits: 53, Hashes: 2}.Word())
	word := WindowWord{Panes: 3, Seconds: 10}.Word()
	for name, c := range map[string]struct {
		look Look
		ok   bool
	}{
		"plain":                          {Look{Header: plain, Length: 31}, true},
		"plain, with a strange third":    {Look{Header: plain, Length: 31, Word: 7, StrayKind: true}, true},
		"not all of its string":          {Look{Header: plain, Length: 25}, true},
		"a larger one's Add":             {Look{Header: plain, Length: 99, Birth: Marker}, true},
		"longer, without a birth number": {Look{Header: plain, Length: 32, Birth: 7}, false},
		"words alone":                    {Look{Header: plain, Length: 24, Birth: Marker}, false},
		"bits behind header or birth":    {Look{Header: plain, Length: 31, Stray: true}, false},
		"no header":                      {Look{Header: 7, Length: 31}, false},
		"window":                         {Look{Header: window, Word: word, Length: 45, Birth: Marker}, true},
		"window without its word":        {Look{Header: window, Length: 45, Birth: Marker}, false},
		"bits behind a window's word":    {Look{Header: window, Word: word, Length: 45, Birth: Marker, StrayKind: true}, false},
		"window, longer than its panes":  {Look{Header: window, Word: word, Length: 46}, false},
		"window, as long as its panes":   {Look{Header: window, Word: word, Length: 45}, true},
	} {
		s, err := c.look.Check()
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrNotFilter) || err == nil && s.Length != c.look.Length {
			t.Errorf("%s: %+v, %v; want it to pass: %v", name, s, err, c.ok)
		}
	}
}

// A kind's word says what its kind can have.
func TestWordsOfKinds(t *testing.T) {
	of := func(kind Kind, word int64) State {
		h := Header{Kind: kind, Bits: 53, Hashes: 2}
		if kind == Cuckoo {
			h.Scheme = Buckets
		}
		return State{Header: h, Word: word}
	}
	window := func(panes int, seconds uint64) State {
		return of(Window, WindowWord{Panes: panes, Seconds: seconds}.Word())
	}
	layers := func(n int) State { return of(Layers, LayersWord{Capacity: 2048, Layers: n}.Word()) }
	independent := window(3, 10)
	independent.Header.Scheme = XXH3
	for name, c := range map[string]struct {
		s  State
		ok bool
	}{
		"3 panes": {window(MinPanes, 10), true}, "6 panes": {window(MaxPanes, 10), true},
		"2 panes": {window(2, 10), false}, "7 panes": {window(7, 10), false}, "9 seconds": {window(3, 9), false},
		"a layer": {layers(1), true}, "5 layers": {layers(MaxLayers), true},
		"no layer": {layers(0), false}, "6 layers": {layers(6), false},
		"the last shard":            {of(Shard, ShardWord{Count: 3, Index: 2}.Word()), true},
		"no such shard":             {of(Shard, ShardWord{Count: 3, Index: 3}.Word()), false},
		"a full table":              {of(Cuckoo, Marker|2<<OnesBits), true},
		"a damaged one":             {of(Cuckoo, Marker|3<<OnesBits), false},
		"panes of independent bits": {independent, false},
		"plain":                     {of(Filter, 7), true},
	} {
		if err := c.s.CheckWord(); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrNotFilter) {
			t.Errorf("%s: %v, want it to pass: %v", name, err, c.ok)
		}
	}
}

// The words of a string are read with all bits between them.
func TestWordsOfAString(t *testing.T) {
	window := Header{Kind: Window, Bits: 53, Hashes: 2}
	data := func() []byte {
		return stringOf(window, Marker|99, uint64(WindowWord{Panes: 3, Seconds: 10}.Word()), 45)
	}
	s, err := Words(window, data())
	if err != nil || s.Birth != Marker|99 || ParseWindow(s.Word).Panes != 3 {
		t.Errorf("Words = %+v, %v", s, err)
	}
	for _, at := range []int{7, 15, 23} { // the last byte of each word
		broken := data()
		broken[at] |= 1 << 1
		if _, err := Words(window, broken); !errors.Is(err, ErrNotFilter) {
			t.Errorf("a bit of byte %d is set: %v", at, err)
		}
	}
	if _, err := Words(filter, data()); !errors.Is(err, ErrNotFilter) {
		t.Errorf("another header: %v", err)
	}
}

// A string of words ends with a whole one.
func TestMaxCells(t *testing.T) {
	for scheme, want := range map[Scheme]uint64{
		Blocked: 4_294_967_095, Buckets: 4_294_967_095, XXH3: 1<<32 - 192, FNV1a: 1<<32 - 192,
		Counters4: 1<<30 - 48, Counters8: 1<<29 - 24, 6: 0,
	} {
		if got := scheme.MaxCells(HeaderBits); got != want {
			t.Errorf("%v: %d cells at most, want %d", scheme, got, want)
		}
	}
}
