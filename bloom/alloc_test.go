//go:build !race

package bloom

import (
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/format"
)

// wantAllocs checks how often some work allocates, once it has run.
func wantAllocs(t *testing.T, what string, want float64, work func()) {
	t.Helper()
	work() // a request grows once
	if n := testing.AllocsPerRun(100, work); n != want {
		t.Errorf("%s: %v allocations, want %v", what, n, want)
	}
}

func TestPositionsAllocateNothing(t *testing.T) {
	dst, words := make([]uint64, 0, format.MaxHashes), make([]cells.Word, 0, format.MaxHashes)
	for _, scheme := range schemes {
		for _, hashes := range []int{4, 62} {
			for _, seed := range []uint64{0, 42} {
				g := Geometry{Bits: 10_746_333, Hashes: hashes, Scheme: scheme, Seed: seed}
				for _, item := range []string{"", "user-123@example.com", strings.Repeat("x", 10_000)} {
					wantAllocs(t, g.String(), 0, func() { dst = g.Positions(dst[:0], item) })
					wantAllocs(t, g.String(), 0, func() { words = g.appendWords(words[:0], item) })
					if len(dst) != hashes || len(words) != hashes/2 {
						t.Errorf("%v: %d positions, %d words, want %d, %d", g, len(dst), len(words), hashes, hashes/2)
					}
				}
			}
		}
	}
}

func TestConfigGeometryAllocatesNothing(t *testing.T) {
	for _, scheme := range schemes {
		cfg := Config{Capacity: 1_000_000, FPRate: 0.001, Scheme: scheme}
		wantAllocs(t, scheme.String(), 0, func() {
			if _, err := cfg.Geometry(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestHeaderAllocatesNothing(t *testing.T) {
	g := Geometry{Bits: 10_746_333, Hashes: 4, Seed: 42}
	wantAllocs(t, "a header there and back", 0, func() {
		if info, err := format.ParseHeader(g.header(KindFilter).Word()); err != nil || geometryOf(info, 42) != g {
			t.Fatalf("the header of %v says %v, %v", g, info, err)
		}
	})
}

func TestLocalAddAndExistsAllocateNothing(t *testing.T) {
	items := make([]string, 400)
	for i := range items {
		items[i] = nthItem("user", i)
	}
	for _, g := range localGeometries() {
		l, i := NewLocal(g), 0
		wantAllocs(t, g.String(), 0, func() {
			l.Add(items[i%400])
			l.Exists(items[(i+1)%400])
			i += 2
		})
	}
}

func TestLocalBatchesAllocateTheirAnswers(t *testing.T) {
	items := make([]string, 400)
	for i := range items {
		items[i] = nthItem("user", i)
	}
	for _, l := range []*Local{NewLocal(localGeometries()[0]), largeLocal(t)} {
		if n := testing.AllocsPerRun(100, func() { l.AddAll(items) }); n > 1 {
			t.Errorf("%v: AddAll allocates %v times", l, n)
		}
		if n := testing.AllocsPerRun(100, func() { l.ExistsAll(items) }); n > 1 {
			t.Errorf("%v: ExistsAll allocates %v times", l, n)
		}
		one := slices.Values(items[:1])
		few := testing.AllocsPerRun(100, func() { l.AddSeq(one) })
		all := slices.Values(items)
		if n := testing.AllocsPerRun(100, func() { l.AddSeq(all) }); n > few {
			t.Errorf("%v: AddSeq allocates %v times, %v for one item", l, n, few)
		}
	}
}

func TestWireAllocatesNothing(t *testing.T) {
	for _, scheme := range wireSchemes {
		r := &newWireFilter(t, scheme, nil).rec.Record
		wantAllocs(t, "encode an Add", 0, func() { testWrite(r, 1).Free() })
		wantAllocs(t, "encode an Exists", 0, func() { testRead(r, 1).Free() })
		q := answered(testWrite(r, 1), t, true)
		wantAllocs(t, "judge the reply to an Add", 0, func() {
			if err := q.JudgeWrite(); err != nil || !q.Added[0] {
				t.Fatalf("added %v, %v, want true", q.Added, err)
			}
		})
		q = answered(testRead(r, 1), t, false)
		wantAllocs(t, "judge the reply to an Exists", 0, func() {
			q.Found = q.Found[:0]
			if err := q.JudgeRead(true); err != nil || q.Found[0] {
				t.Fatal(q.Found, err)
			}
		})
	}
}

// TestKindsAllocateNothing: an Add to a Cuckoo has a text for each item.
func TestKindsAllocateNothing(t *testing.T) {
	for kind, rec := range newWireKinds(t) {
		texts := 0.0
		if kind == "Cuckoo" {
			texts = 10
		}
		wantAllocs(t, kind+": encode an Add of 10 items", texts, func() { testWrite(rec, 10).Free() })
		wantAllocs(t, kind+": encode a look-up of 10 items", 0, func() { testRead(rec, 10).Free() })
	}
}
