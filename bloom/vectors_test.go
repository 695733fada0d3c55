package bloom

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/bits"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

// vectors fix the stored format. Another implementation, in JavaScript, made
// them. They never change for version 1: if a test fails here, stored filters
// no longer match.
type vectors struct {
	Blocked []keyed `json:"blocked"`
	XXH3    []keyed `json:"xxh3"`
	FNV1a   []keyed `json:"fnv1a"`
	Header  []struct {
		M       uint64 `json:"m"`
		K       int    `json:"k"`
		Kind    uint8  `json:"kind"`
		Scheme  uint8  `json:"scheme"`
		Seed    uint64 `json:"seed,string"`
		SeedTag uint8  `json:"seed_tag"`
		Word    uint64 `json:"header_u53,string"`
		Bytes   string `json:"first_8_bytes_hex"`
	} `json:"header"`
	Sizing        []sized `json:"sizing"`
	BlockedSizing []struct {
		sized
		Units   uint64  `json:"words_an_item_20_bits"`
		Words   uint64  `json:"words"`
		Rate    float64 `json:"rate_at_capacity"`
		AtTwice float64 `json:"rate_at_twice"`
	} `json:"blocked_sizing"`
}

// keyed is an item and its positions in a geometry. fnv1a has no seed and no
// digest.
type keyed struct {
	Item      string   `json:"item"`
	Seed      uint64   `json:"seed,string"`
	M         uint64   `json:"m"`
	K         int      `json:"k"`
	Digest    string   `json:"xxh3_128"` // high 64 bits, then low
	Positions []uint64 `json:"positions"`
}

// sized is the size for n items at rate p.
type sized struct {
	N uint64  `json:"n"`
	P float64 `json:"p"`
	M uint64  `json:"m"`
	K int     `json:"k"`
}

func loadVectors(t *testing.T) vectors {
	t.Helper()
	data, err := os.ReadFile("testdata/v1.json")
	noError(t, err)
	var v vectors
	noError(t, json.Unmarshal(data, &v))
	for name, c := range map[string]struct{ got, want int }{
		"blocked":        {len(v.Blocked), 204},
		"xxh3":           {len(v.XXH3), 272},
		"fnv1a":          {len(v.FNV1a), 136},
		"header":         {len(v.Header), 248},
		"sizing":         {len(v.Sizing), 12},
		"blocked_sizing": {len(v.BlockedSizing), 12},
	} {
		if c.got != c.want {
			t.Fatalf("%s has %d vectors, want %d", name, c.got, c.want)
		}
	}
	return v
}

// check compares the digest, unless the scheme has none, and the positions.
func (v keyed) check(t *testing.T, s Scheme) {
	t.Helper()
	if s != SchemeFNV1a {
		x, y := cells.Digest(v.Item, v.Seed)
		if got := fmt.Sprintf("%016x%016x", x, y); got != v.Digest {
			t.Errorf("cells.Digest(%q, %d) = %s, want %s", v.Item, v.Seed, got, v.Digest)
		}
	}
	g := Geometry{Bits: v.M, Hashes: v.K, Scheme: s, Seed: v.Seed}
	if got := g.Positions(nil, v.Item); !slices.Equal(got, v.Positions) {
		t.Errorf("%v of %q: %d, want %d", g, v.Item, got, v.Positions)
	}
}

func TestVectorsPositions(t *testing.T) {
	vectors := loadVectors(t)
	for scheme, all := range map[Scheme][]keyed{
		SchemeBlocked: vectors.Blocked, SchemeXXH3: vectors.XXH3, SchemeFNV1a: vectors.FNV1a,
	} {
		for _, v := range all {
			v.check(t, scheme)
		}
	}
}

func TestVectorsHeader(t *testing.T) {
	parsed := 0
	for _, v := range loadVectors(t).Header {
		kind, scheme := Kind(v.Kind), Scheme(v.Scheme)
		g := Geometry{Bits: v.M, Hashes: v.K, Scheme: scheme, Seed: v.Seed}
		if got := format.SeedTag(v.Seed); got != v.SeedTag {
			t.Errorf("format.SeedTag(%d) = %d, want %d", v.Seed, got, v.SeedTag)
		}
		word := g.header(kind).Word()
		if word != v.Word {
			t.Errorf("%v.header(%v).Word() = %d, want %d", kind, g, word, v.Word)
		}
		// A u53 at bit 0 is the top 53 bits of the first eight bytes.
		first := binary.BigEndian.AppendUint64(nil, word<<11)
		if got := hex.EncodeToString(first); got != v.Bytes {
			t.Errorf("%v, %v: first bytes %s, want %s", kind, g, got, v.Bytes)
		}
		info, err := format.ParseHeader(word)
		if v.M > format.Scheme(scheme).MaxCells(format.HeaderBits) {
			// More cells than a string holds: encoded, but never stored.
			if err == nil {
				t.Errorf("format.ParseHeader(%d) accepts %v", word, g)
			}
			continue
		}
		parsed++
		if err != nil || Kind(info.Kind) != kind || geometryOf(info, v.Seed) != g {
			t.Errorf("format.ParseHeader(%d) = %+v, %v, want %v, %v", word, info, err, kind, g)
		}
	}
	if parsed != 223 {
		t.Errorf("parsed %d headers, want 223", parsed)
	}
}

func TestVectorsSizing(t *testing.T) {
	for _, v := range loadVectors(t).Sizing {
		m := OptimalBits(v.N, v.P)
		if k := OptimalHashes(m, v.N); m != v.M || k != v.K {
			t.Errorf("n=%d p=%v: m=%d k=%d, want m=%d k=%d", v.N, v.P, m, k, v.M, v.K)
		}
		for _, s := range []Scheme{SchemeXXH3, SchemeFNV1a} {
			v.check(t, s)
		}
	}
}

func TestVectorsBlockedSizing(t *testing.T) {
	for _, v := range loadVectors(t).BlockedSizing {
		v.check(t, SchemeBlocked)
		if got := cells.BlockedUnits(v.K/2, v.P); got != v.Units || v.M != wordBits*v.Words {
			t.Errorf("p=%v: %d units and %d words, want %d and %d",
				v.P, got, v.M/wordBits, v.Units, v.Words)
		}
		g := Geometry{Bits: v.M, Hashes: v.K}
		for n, want := range map[uint64]float64{v.N: v.Rate, 2 * v.N: v.AtTwice} {
			// The rates are estimates and decide nothing, so they may differ in
			// the last few digits.
			if got := g.FalsePositiveRate(n); math.Abs(got/want-1) > 1e-12 {
				t.Errorf("%v with %d items: rate %v, want %v", g, n, got, want)
			}
		}
	}
}

// check compares the size that follows from a Config.
func (v sized) check(t *testing.T, s Scheme) {
	t.Helper()
	g, err := Config{Capacity: v.N, FPRate: v.P, Scheme: s}.Geometry()
	if want := (Geometry{Bits: v.M, Hashes: v.K, Scheme: s}); err != nil || g != want {
		t.Errorf("n=%d p=%v: %v, %v, want %v", v.N, v.P, g, err, want)
	}
}

// kindVectors fix the arithmetic of the types besides a plain filter.
// testdata/kinds.py makes them from the description of the format alone.
type kindVectors struct {
	Rates []struct {
		P    float64 `json:"p"`
		Rate uint64  `json:"rate"`
	} `json:"rates"`
	Filters []struct {
		partVector
		Scheme Scheme `json:"scheme"`
	} `json:"filters"`
	Window        []windowVector `json:"window"`
	WindowRefused []windowVector `json:"window_refused"`
	WindowPairs   []struct {
		Panes         int      `json:"panes"`
		E             uint64   `json:"e"`
		C             uint64   `json:"c"`
		Meaning       string   `json:"meaning"`
		CountingPanes []uint64 `json:"counting_panes"`
	} `json:"window_pairs"`
	Scalable []struct {
		partVector
		Layers []struct {
			Offset uint64 `json:"offset"`
			M      uint64 `json:"m"`
		} `json:"layers"`
		Words []string `json:"words_u53"`
	} `json:"scalable"`
	LayerWords []struct {
		Capacity uint64 `json:"capacity"`
		Layers   int    `json:"layers"`
		Taken    uint64 `json:"taken"`
		Held     uint64 `json:"held"`
		Word     int64  `json:"word_u53,string"`
	} `json:"layer_words"`
	LayerCounts []struct {
		M      uint64 `json:"m"`
		Layers int    `json:"layers"`
	} `json:"layer_counts"`
	Sharded []struct {
		partVector
		Shards        int    `json:"shards"`
		ShardCapacity uint64 `json:"shard_capacity"`
		ShardHolds    uint64 `json:"shard_holds"`
		Words         []struct {
			Index int   `json:"index"`
			Word  int64 `json:"word_u53,string"`
		} `json:"words"`
	} `json:"sharded"`
	ShardSizes []struct {
		Mean  uint64 `json:"mu,string"`
		Items uint64 `json:"items,string"`
	} `json:"shard_sizes"`
	ShardsOfItems []struct {
		Item   string      `json:"item"`
		Seed   uint64      `json:"seed,string"`
		Shards map[int]int `json:"shards"`
	} `json:"shards_of_items"`
	CuckooWords []struct {
		Items uint64 `json:"items"`
		Ones  uint64 `json:"ones"`
		Word  int64  `json:"word_u53,string"`
	} `json:"cuckoo_words"`
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

// partVector is a Config and the geometry it leads to.
type partVector struct {
	Capacity uint64  `json:"capacity"`
	P        float64 `json:"p"`
	Seed     uint64  `json:"seed,string"`
	M        uint64  `json:"m"`
	K        int     `json:"k"`
	Rate     uint64  `json:"rate"`
	Holds    uint64  `json:"holds"`
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
	noError(t, err)
	var v kindVectors
	noError(t, json.Unmarshal(data, &v))
	for name, c := range map[string]struct{ got, want int }{
		"rates":          {len(v.Rates), 27},
		"filters":        {len(v.Filters), 23},
		"window":         {len(v.Window), 11},
		"window_refused": {len(v.WindowRefused), 8},
		"window_pairs":   {len(v.WindowPairs), 640},
		"scalable":       {len(v.Scalable), 12},
		"layer_counts":   {len(v.LayerCounts), 9},
		"sharded":        {len(v.Sharded), 10},
		"shard_sizes":    {len(v.ShardSizes), 19},
		"shards of":      {len(v.ShardsOfItems), 22},
		"cuckoo":         {len(v.Cuckoo), 13},
		"cuckoo_words":   {len(v.CuckooWords), 5},
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
	if h := got.header(kind).Word(); h != v.Header {
		t.Errorf("n=%d p=%v: header %d, want %d", v.Capacity, v.P, h, v.Header)
	}
}

// checkRate compares the rate in birth numbers, and the Capacity that follows.
func (v partVector) checkRate(t *testing.T, rate, holds uint64) {
	t.Helper()
	if rate != v.Rate || holds != v.Holds {
		t.Errorf("n=%d p=%v: rate %d, which holds %d, want %d, %d", v.Capacity, v.P, rate, holds, v.Rate, v.Holds)
	}
}

func TestVectorsRates(t *testing.T) {
	vectors := loadKindVectors(t)
	for _, v := range vectors.Rates {
		code := cells.RateCode(v.P)
		if p, ok := cells.RateOf(code); code != v.Rate || ok != (code != 0) || ok && (p/v.P > 1.011 || p/v.P < 0.989) {
			t.Errorf("rate %v: code %d, which is %v, want %d", v.P, code, p, v.Rate)
		}
	}
	for _, v := range vectors.Filters {
		cfg := Config{Capacity: v.Capacity, FPRate: v.P, Scheme: v.Scheme}
		g, err := cfg.Geometry()
		if err != nil || g.Bits != v.M || g.Hashes != v.K {
			t.Errorf("%v: %v, %v, want m=%d, k=%d", cfg, g, err, v.M, v.K)
			continue
		}
		v.checkRate(t, cfg.rateCode(), g.holds(cfg.rateCode(), 1))
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
	noError(t, err)
	for _, v := range vectors.Window {
		w, err := NewWindow(c, "key", v.config())
		if err != nil {
			t.Errorf("%+v: %v", v.config(), err)
			continue
		}
		v.check(t, KindWindow, w.Geometry())
		s := w.shape
		v.checkRate(t, w.rec.Rate, s.holds(w.rec.Rate))
		if s.seconds != v.PaneSeconds || s.cycle() != v.Epochs || int(s.panes()) != v.Ring {
			t.Errorf("%+v: %d panes of %d s, %d epochs, want %d, %d, %d",
				v.config(), s.panes(), s.seconds, s.cycle(), v.Ring, v.PaneSeconds, v.Epochs)
		}
		for i, a := range s.areas {
			if a.Offset != v.PaneOffsets[i] || a.Words*wordBits != v.M {
				t.Errorf("%+v: pane %d is %+v, want it at %d", v.config(), i, a, v.PaneOffsets[i])
			}
		}
		if end := s.areas[len(s.areas)-1].End(); end != 8*v.Bytes {
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
		s := &windowShape{areas: make([]format.Area, v.Panes+2), seconds: 60}
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
		case s.ahead(v.E, v.C) == 1:
			meaning = "next"
		case s.ahead(v.E, v.C) == 0:
			meaning = "behind"
		}
		if meaning != v.Meaning {
			t.Errorf("%d panes, e=%d, C=%d: %q, want %q", v.Panes, v.E, v.C, meaning, v.Meaning)
		}
	}
}

func TestVectorsCuckoo(t *testing.T) {
	for _, v := range loadKindVectors(t).Cuckoo {
		g, err := CuckooConfig{Capacity: v.Capacity, FPRate: v.P, Seed: v.Seed}.Geometry()
		if err != nil || g.Scheme != SchemeCuckoo {
			t.Errorf("n=%d p=%v: %v, %v, want a cuckoo geometry", v.Capacity, v.P, g, err)
			continue
		}
		v.check(t, KindCuckoo, g)
		m, k := g.Bits, g.Hashes
		if w := cells.CuckooWidth(k); w != v.Width {
			t.Errorf("width of %d slots: %d, want %d", k, w, v.Width)
		}
		for _, p := range v.Places {
			x, y := cells.Digest(p.Item, v.Seed)
			fp, first, second := cells.CuckooPlace(x, y, m/wordBits, k)
			if fp != p.Fingerprint || first != p.Bucket || second != p.Other {
				t.Errorf("%q in m=%d k=%d: %d in %d or %d, want %+v",
					p.Item, m, k, fp, first, second, p)
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

func TestVectorsCuckooWord(t *testing.T) {
	for _, v := range loadKindVectors(t).CuckooWords {
		if got := format.ParseCuckoo(v.Word); got.Items != v.Items || got.Ones != v.Ones%(1<<20) {
			t.Errorf("word %d: %+v, want %+v", v.Word, got, v)
		}
	}
}

func TestVectorsLayers(t *testing.T) {
	vectors := loadKindVectors(t)
	for _, v := range vectors.Scalable {
		g, err := ScalableConfig{Capacity: v.Capacity, FPRate: v.P, Seed: v.Seed}.Geometry()
		if err != nil {
			t.Errorf("n=%d p=%v: %v", v.Capacity, v.P, err)
			continue
		}
		v.check(t, KindScalable, g)
		areas := format.LayerAreas(g.Bits)
		if len(areas) != len(v.Layers) {
			t.Fatalf("m=%d: %d layers, want %d", v.M, len(areas), len(v.Layers))
		}
		for i, a := range areas {
			want := format.Area{Offset: v.Layers[i].Offset, Words: v.Layers[i].M / wordBits}
			if a != want || v.Layers[i].M%wordBits != 0 {
				t.Errorf("m=%d: layer %d is %+v, want %+v", v.M, i, a, want)
			}
			word := format.LayersWord{Capacity: max(v.Capacity, minLayerCapacity), Layers: i + 1}.Word()
			if fmt.Sprint(word) != v.Words[i] {
				t.Errorf("%d layers: word %d, want %s", i+1, word, v.Words[i])
			}
		}
	}
	for _, v := range vectors.LayerWords {
		if word := (format.LayersWord{Capacity: v.Capacity, Layers: v.Layers, Taken: v.Taken}).Word(); word != v.Word {
			t.Errorf("%+v: word %d", v, word)
		}
		want := format.LayersWord{Capacity: v.Held, Layers: v.Layers, Taken: v.Taken}
		if got := format.ParseLayers(v.Word); got != want {
			t.Errorf("%+v: the word says %+v", v, got)
		}
	}
	for _, v := range vectors.LayerCounts {
		if n := len(format.LayerAreas(v.M)); n != v.Layers {
			t.Errorf("m=%d: %d layers, want %d", v.M, n, v.Layers)
		}
	}
}

func TestVectorsShards(t *testing.T) {
	vectors := loadKindVectors(t)
	for _, v := range vectors.Sharded {
		if n := shardCapacity(v.Capacity, uint64(v.Shards)); n != v.ShardCapacity {
			t.Errorf("%d items in %d shards: %d in one, want %d",
				v.Capacity, v.Shards, n, v.ShardCapacity)
		}
		cfg := ShardedConfig{Capacity: v.Capacity, FPRate: v.P, Shards: v.Shards, Seed: v.Seed}
		g, err := cfg.Geometry()
		if err != nil {
			t.Errorf("%v: %v", cfg, err)
			continue
		}
		v.check(t, KindShard, g)
		room := g.holds(cells.RateCode(v.P), 1)
		v.checkRate(t, cells.RateCode(v.P), shardsHold(room, uint64(v.Shards)))
		if room != v.ShardHolds {
			t.Errorf("%v: a shard holds %d, want %d", cfg, room, v.ShardHolds)
		}
		for _, w := range v.Words {
			shape := &shardShape{count: v.Shards, index: w.Index}
			if got := shape.KindWord(nil); got != w.Word {
				t.Errorf("shard %d of %d: word %d, want %d", w.Index, v.Shards, got, w.Word)
			}
		}
	}
	for _, v := range vectors.ShardSizes {
		if n := shardCapacity(v.Mean, 1); n != v.Items {
			t.Errorf("a mean of %d: %d items, want %d", v.Mean, n, v.Items)
		}
	}
	c, err := upstash.New("https://example.com", "token") // nothing is sent
	noError(t, err)
	for _, v := range vectors.ShardsOfItems {
		for shards, want := range v.Shards {
			s, err := NewSharded([]*upstash.Client{c}, "key",
				ShardedConfig{Capacity: 1000, FPRate: 0.01, Shards: shards, Seed: v.Seed})
			noError(t, err)
			if got := s.ShardOf(v.Item); got != want {
				t.Errorf("%q of %d shards: %d, want %d", v.Item, shards, got, want)
			}
		}
	}
}
