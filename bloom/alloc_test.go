//go:build !race

package bloom

import (
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/cells"
)

func TestPositionsAllocateNothing(t *testing.T) {
	items := []string{"", "user-123@example.com", strings.Repeat("x", 10_000)}
	dst, words := make([]uint64, 0, maxHashes), make([]cells.Word, 0, maxHashes)
	for _, scheme := range schemes {
		for _, hashes := range []int{4, 62} {
			for _, seed := range []uint64{0, 42} {
				g := Geometry{Bits: 10_746_333, Hashes: hashes, Scheme: scheme, Seed: seed}
				for _, item := range items {
					n := testing.AllocsPerRun(100, func() { dst = g.Positions(dst[:0], item) })
					if n != 0 || len(dst) != hashes {
						t.Errorf("%v, item of %d bytes: %v allocations, want 0; %d positions",
							g, len(item), n, len(dst))
					}
					n = testing.AllocsPerRun(100, func() { words = g.appendWords(words[:0], item) })
					if n != 0 || len(words) != hashes/2 {
						t.Errorf("%v, item of %d bytes: %v allocations, want 0; %d words",
							g, len(item), n, len(words))
					}
				}
			}
		}
	}
}

func TestConfigGeometryAllocatesNothing(t *testing.T) {
	for _, scheme := range schemes {
		cfg := Config{Capacity: 1_000_000, FPRate: 0.001, Scheme: scheme}
		n := testing.AllocsPerRun(100, func() {
			if _, err := cfg.Geometry(); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%v: %v allocations, want 0", scheme, n)
		}
	}
}

func TestHeaderAllocatesNothing(t *testing.T) {
	g := Geometry{Bits: 10_746_333, Hashes: 4, Seed: 42}
	n := testing.AllocsPerRun(100, func() {
		if info, err := parseHeader(encodeHeader(KindFilter, g)); err != nil || info.geometry(42) != g {
			t.Fatalf("the header of %v says %v, %v", g, info, err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestLocalAddAndExistsAllocateNothing(t *testing.T) {
	for _, g := range localGeometries() {
		l := NewLocal(g)
		i := 0
		items := make([]string, 400)
		for i := range items {
			items[i] = nthItem("user", i)
		}
		n := testing.AllocsPerRun(100, func() {
			l.Add(items[i%400])
			l.Exists(items[(i+1)%400])
			i += 2
		})
		if n != 0 {
			t.Errorf("%v: %v allocations", g, n)
		}
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
		f := newWireFilter(t, scheme, nil)
		r := &f.rec.Record
		for name, work := range map[string]func(){
			"encode an Add":    func() { testWrite(r, 1).Free() },
			"encode an Exists": func() { testRead(r, 1).Free() },
		} {
			work() // the request grows once
			if n := testing.AllocsPerRun(100, work); n != 0 {
				t.Errorf("%v: %s: %v allocations, want 0", scheme, name, n)
			}
		}
		q := answered(testWrite(r, 1), t, true)
		judge := func() {
			if err := q.JudgeWrite(); err != nil || !q.Added[0] {
				t.Fatalf("added %v, %v, want true", q.Added, err)
			}
		}
		judge()
		if n := testing.AllocsPerRun(100, judge); n != 0 {
			t.Errorf("%v: judge the reply to an Add: %v allocations, want 0", scheme, n)
		}
		q = answered(testRead(r, 1), t, false)
		judge = func() {
			q.Found = q.Found[:0]
			if err := q.JudgeRead(true); err != nil || q.Found[0] {
				t.Fatal(q.Found, err)
			}
		}
		judge()
		if n := testing.AllocsPerRun(100, judge); n != 0 {
			t.Errorf("%v: judge the reply to an Exists: %v allocations, want 0", scheme, n)
		}
	}
}

// TestKindsAllocateNothing: an Add to a Cuckoo has a text for each item.
func TestKindsAllocateNothing(t *testing.T) {
	for kind, rec := range newWireKinds(t) {
		texts := 0.0
		if kind == "Cuckoo" {
			texts = 10
		}
		for name, work := range map[string]func(){
			"an Add":    func() { testWrite(rec, 10).Free() },
			"a look-up": func() { testRead(rec, 10).Free() },
		} {
			work() // the request grows once
			if n := testing.AllocsPerRun(100, work); n != 0 && (n != texts || name != "an Add") {
				t.Errorf("%s: encode %s of 10 items: %v allocations", kind, name, n)
			}
		}
	}
}
