package bloom

import (
	"encoding/json"
	"math/bits"
	"os"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/upstash"
)

// kindVectors are made by testdata/kinds.py, from the description of the format
// alone, and pin the arithmetic of the kinds beside a plain filter.
type kindVectors struct {
	Window        []windowVector `json:"window"`
	WindowRefused []windowVector `json:"window_refused"`
	WindowPairs   []struct {
		Panes         int      `json:"panes"`
		E             uint64   `json:"e"`
		C             uint64   `json:"c"`
		Meaning       string   `json:"meaning"`
		CountingPanes []uint64 `json:"counting_panes"`
	} `json:"window_pairs"`
	Cuckoo []struct {
		partVector
		Width  int `json:"width"`
		Places []struct {
			Item        string `json:"item"`
			Fingerprint uint64 `json:"fingerprint"`
			Bucket      uint64 `json:"bucket"`
			Other       uint64 `json:"other"`
		} `json:"places"`
	} `json:"cuckoo"`
}

// partVector is a Config, and the part that it comes to.
type partVector struct {
	Capacity uint64  `json:"capacity"`
	P        float64 `json:"p"`
	Seed     uint64  `json:"seed,string"`
	M        uint64  `json:"m"`
	K        int     `json:"k"`
	Header   uint64  `json:"header_u53,string"`
}

type windowVector struct {
	partVector
	Span        int64    `json:"span_seconds"`
	Panes       int      `json:"panes"`
	Idle        bool     `json:"idle"`
	Ring        int      `json:"ring"`
	PaneSeconds uint64   `json:"pane_seconds"`
	Epochs      uint64   `json:"epochs"`
	PaneOffsets []uint64 `json:"pane_offsets"`
	Bytes       uint64   `json:"bytes"`
	Times       []struct {
		Unix  int64  `json:"unix"`
		Epoch uint64 `json:"epoch"`
		Pane  uint64 `json:"pane"`
		Word  int64  `json:"word_u53,string"`
	} `json:"times"`
}

func loadKindVectors(t *testing.T) kindVectors {
	t.Helper()
	data, err := os.ReadFile("testdata/v1-kinds.json")
	if err != nil {
		t.Fatal(err)
	}
	var v kindVectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ got, want int }{
		"window":         {len(v.Window), 11},
		"window_refused": {len(v.WindowRefused), 8},
		"window_pairs":   {len(v.WindowPairs), 640},
		"cuckoo":         {len(v.Cuckoo), 13},
	} {
		if c.got != c.want {
			t.Fatalf("%s has %d vectors, want %d", name, c.got, c.want)
		}
	}
	return v
}

// check compares the geometry of a part and the header of its kind.
func (v partVector) check(t *testing.T, kind Kind, got Geometry) {
	t.Helper()
	want := Geometry{Bits: v.M, Hashes: v.K, Scheme: got.Scheme, Seed: v.Seed}
	if got != want {
		t.Errorf("n=%d p=%v: %v, want %v", v.Capacity, v.P, got, want)
	}
	if h := encodeHeader(kind, got); h != v.Header {
		t.Errorf("n=%d p=%v: header %d, want %d", v.Capacity, v.P, h, v.Header)
	}
}

func (v windowVector) config() WindowConfig {
	return WindowConfig{
		Capacity: v.Capacity, FPRate: v.P, Span: time.Duration(v.Span) * time.Second,
		Panes: v.Panes, Seed: v.Seed, ExpireIdle: v.Idle,
	}
}

func TestVectorsWindow(t *testing.T) {
	vectors := loadKindVectors(t)
	c, err := upstash.New("https://example.com", "token") // nothing is sent
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors.Window {
		w, err := NewWindow(c, "key", v.config())
		if err != nil {
			t.Errorf("%+v: %v", v.config(), err)
			continue
		}
		v.check(t, KindWindow, w.Geometry())
		s := w.shape
		if s.seconds != v.PaneSeconds || s.cycle() != v.Epochs || int(s.panes()) != v.Ring {
			t.Errorf("%+v: %d panes of %d s, %d epochs, want %d, %d, %d",
				v.config(), s.panes(), s.seconds, s.cycle(), v.Ring, v.PaneSeconds, v.Epochs)
		}
		for i, a := range s.areas {
			if a.offset != v.PaneOffsets[i] || a.words*wordBits != v.M {
				t.Errorf("%+v: pane %d is %+v, want it at %d", v.config(), i, a, v.PaneOffsets[i])
			}
		}
		if end := s.areas[len(s.areas)-1].end(); end != 8*v.Bytes {
			t.Errorf("%+v: the string ends at bit %d, want %d", v.config(), end, 8*v.Bytes)
		}
		for _, at := range v.Times {
			e := s.epochAt(time.Unix(at.Unix, 999_999_999))
			if e != at.Epoch || e%s.panes() != at.Pane || s.wordAt(e) != at.Word {
				t.Errorf("%+v at %d: epoch %d, pane %d, word %d, want %+v",
					v.config(), at.Unix, e, e%s.panes(), s.wordAt(e), at)
			}
		}
	}
	for _, v := range vectors.WindowRefused {
		if g, err := v.config().Geometry(); err == nil {
			t.Errorf("%+v is accepted: %v", v.config(), g)
		}
	}
}

func TestVectorsWindowEpochs(t *testing.T) {
	for _, v := range loadKindVectors(t).WindowPairs {
		s := &windowShape{areas: make([]area, v.Panes+2), seconds: 60}
		var want uint8
		for _, pane := range v.CountingPanes {
			want |= 1 << pane
		}
		if got := s.counting(v.E, v.C); got != want {
			t.Errorf("%d panes, e=%d, C=%d: panes %b count, want %b", v.Panes, v.E, v.C, got, want)
		}
		meaning := "idle"
		switch {
		case v.E == v.C:
			meaning = "now"
		case s.since(v.E, v.C) == 1:
			meaning = "next"
		case s.isBehind(v.E, v.C):
			meaning = "behind"
		}
		if meaning != v.Meaning {
			t.Errorf("%d panes, e=%d, C=%d: %q, want %q", v.Panes, v.E, v.C, meaning, v.Meaning)
		}
	}
}

func TestVectorsCuckoo(t *testing.T) {
	for _, v := range loadKindVectors(t).Cuckoo {
		m, k, ok := cells.CuckooSize(v.Capacity, v.P)
		if !ok {
			t.Errorf("n=%d p=%v is refused", v.Capacity, v.P)
			continue
		}
		v.check(t, KindFilter, Geometry{Bits: m, Hashes: k, Scheme: SchemeCuckoo, Seed: v.Seed})
		if w := cells.CuckooWidth(k); w != v.Width {
			t.Errorf("width of %d slots: %d, want %d", k, w, v.Width)
		}
		for _, p := range v.Places {
			h := cells.Digest(p.Item, v.Seed)
			fp, first, second := cells.CuckooPlace(h.Hi, h.Lo, m/wordBits, k)
			if fp != p.Fingerprint || first != p.Bucket || second != p.Other {
				t.Errorf("%q in m=%d k=%d: %d in %d or %d, want %+v", p.Item, m, k, fp, first, second, p)
			}
			if back := cells.CuckooOther(fp, second, m/wordBits); back != first {
				t.Errorf("%q in m=%d: the other of %d is %d, want %d", p.Item, m, second, back, first)
			}
			if hi, lo := bits.Mul64(fp, 96280213); hi != 0 || lo >= 1<<53 {
				t.Errorf("the product of fingerprint %d does not fit 53 bits", fp)
			}
		}
	}
}
