package bloom_test

import (
	"maps"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestCuckooFilled fills tables to capacity, one for each size of fingerprint,
// and compares billed commands, the false positive rate and Count with the doc.
func TestCuckooFilled(t *testing.T) {
	const n = 10_000
	s := upstashtest.NewServer(t, upstashtest.WithRedis(testenv.Redis(t)))
	for _, p := range []float64{0.01, 0.001, 1e-4, 1e-6} {
		if p != 0.01 && !testenv.Long() {
			continue
		}
		s.FlushAll()
		f := cuckoo(t, s.Client(upstash.WithTimeout(0)), bloom.CuckooConfig{Capacity: n, FPRate: p, BatchParallel: 1})
		wantBilledWhileFilling(t, s, f, n)
		countOf(t, f, n)
		wantRateAtCapacity(t, f, n, p)
		wantStateAtCapacity(t, s, f, n)
	}
}

// wantBilledWhileFilling adds n items in batches, and then, one by one, others
// in the place of some.
func wantBilledWhileFilling(t *testing.T, s *upstashtest.Server, f *bloom.Cuckoo, n int) {
	t.Helper()
	const batch = 500
	billed := func(call func() error) float64 {
		s.ResetStats()
		if err := call(); err != nil {
			t.Fatal(err)
		}
		return float64(s.Stats().Billed)
	}
	items := numbered("item", n+200)
	var half, near, last, single float64
	for i := 0; i < n; i += batch {
		b := billed(func() error { _, err := f.AddAll(t.Context(), items[i:i+batch]); return err })
		switch share := float64(i+batch) / float64(n); {
		case share <= 0.5:
			half += b / float64(n/2/batch)
		case share > 0.9 && share <= 0.95:
			near += b
		case share > 0.98:
			last += b
		}
	}
	for i, item := range items[n:] { // a Remove makes room for each
		if removed, err := f.Remove(t.Context(), items[i]); err != nil || !removed {
			t.Fatalf("Remove = %v, %v, want true", removed, err)
		}
		single += billed(func() error { _, err := f.Add(t.Context(), item); return err }) / 200
	}
	t.Logf("k=%d: billed up to half %.2f, at 0.95 %.1f, at capacity %.0f, one %.2f",
		f.Geometry().Hashes, half, near, last, single)
	if half > 3.8 || near > 9 || last > 10 || single > 4.4 {
		t.Errorf("billed: %.2f up to half, %.1f at 0.95, %.0f at capacity, %.2f one; want at most 3.8, 9, 10, 4.4",
			half, near, last, single)
	}
}

// wantRateAtCapacity compares the false positive rate of n items with the
// formula, and the formula with p.
func wantRateAtCapacity(t *testing.T, f *bloom.Cuckoo, n uint64, p float64) {
	t.Helper()
	asked := numbered("absent", 50_000)
	found, err := f.ExistsAll(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	formula := f.Geometry().FalsePositiveRate(n)
	t.Logf("p=%v: rate %.3g, formula %.3g", p, float64(count(found))/float64(len(asked)), formula)
	expect := formula * float64(len(asked))
	if formula > p*1.1 || math.Abs(float64(count(found))-expect) > 4*math.Sqrt(expect)+1 {
		t.Errorf("p=%v: %d of %d found, want about %.0f", p, count(found), len(asked), expect)
	}
}

// wantStateAtCapacity checks Stats, Inspect and EstimateItems of n items.
func wantStateAtCapacity(t *testing.T, s *upstashtest.Server, f *bloom.Cuckoo, n uint64) {
	t.Helper()
	formula := f.Geometry().FalsePositiveRate(n)
	st, err := f.Stats(t.Context())
	if err != nil || st.Damaged || st.Items != n || math.Abs(float64(st.LiveFPRate)/formula-1) > 1e-9 {
		t.Errorf("Stats = %+v, %v, want %d items, a rate of %v and no damage", st, err, n, formula)
	}
	in, err := bloom.Inspect(t.Context(), s.Client(), key)
	if err != nil || in.Items != n || in.LiveFPRate != st.LiveFPRate || in.Fill != st.Fill {
		t.Errorf("Inspect: %v, %v, want the numbers of Stats:\n%v", in, err, st)
	}
	const begins = "cuckoo           "
	if !strings.HasPrefix(in.String(), begins) || !strings.HasPrefix(st.String(), begins) {
		t.Errorf("Inspect and Stats say\n%v\n%v\nand not %q", in, st, begins)
	}
	if got := f.Geometry().EstimateItems(in.SetBits); math.Abs(got/float64(n)-1) > 0.02 {
		t.Errorf("EstimateItems: %.0f, want about %d", got, n)
	}
}

// TestCuckooBilled checks what one call of each kind costs while there is room.
func TestCuckooBilled(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c, w := watch(t, s)
		cfg := bloom.CuckooConfig{Capacity: 5000, FPRate: 1e-6, BatchBytes: 8000}
		f := cuckoo(t, c, cfg)
		if _, err := f.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		items := numbered("item", 300)
		for _, step := range []struct {
			name             string
			requests, billed int64
			call             func() error
		}{
			{"Add", 1, 3, func() error { _, err := f.Add(t.Context(), "a"); return err }},
			{"Remove", 1, 3, func() error { _, err := f.Remove(t.Context(), "a"); return err }},
			{"Remove of nothing", 1, 2, func() error { _, err := f.Remove(t.Context(), "a"); return err }},
			{"Exists", 1, 1, func() error { _, err := f.Exists(t.Context(), "a"); return err }},
			{"Count", 1, 1, func() error { _, err := f.Count(t.Context()); return err }},
			{"Stats", 1, 5, func() error { _, err := f.Stats(t.Context()); return err }},
			{"AddAll", 3, 9, func() error { _, err := f.AddAll(t.Context(), items); return err }},
			{"RemoveAll", 3, 9, func() error { _, err := f.RemoveAll(t.Context(), items); return err }},
		} {
			for range 2 { // the first sends the script's text, if it is not cached
				s.ResetStats()
				w.Bodies = nil
				if err := step.call(); err != nil {
					t.Fatal(err)
				}
				if step.name == "Remove" {
					break
				}
			}
			n := s.Stats()
			t.Logf("%s: %d requests, billed %d", step.name, n.Requests, n.Billed)
			for _, body := range w.Bodies {
				if len(body) > cfg.BatchBytes {
					t.Errorf("%s: a request of %d bytes, want at most %d",
						step.name, len(body), cfg.BatchBytes)
				}
			}
			if n.Requests != step.requests || n.Billed != step.billed {
				t.Errorf("%s: %d requests, billed %d, want %d and %d", step.name, n.Requests, n.Billed,
					step.requests, step.billed)
			}
		}
	})
}

// If a request moves many items, it needs more than one command to read, and
// more than one to write.
func TestCuckooManyMoves(t *testing.T) {
	testenv.AskedLong(t)
	const n = 30_500
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := cuckoo(t, s.Client(upstash.WithTimeout(0)), bloom.CuckooConfig{Capacity: 30_000, FPRate: 1e-4})
		if _, err := f.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		model, items := newTable(f.Geometry()), numbered("x", n+500)
		for i := 0; i < n; i += 500 {
			if _, full := model.add(items[i : i+500]); full >= 0 {
				t.Fatalf("full at item %d", i+full)
			}
		}
		do(t, s, "SETRANGE", key, "24", model.body())
		do(t, s, "BITFIELD", key, "SET", "u53", "128",
			strconv.FormatUint(1<<52|uint64(model.items)<<20|uint64(model.ones)%(1<<20), 10))
		before := maps.Clone(model.words)
		model.add(items[n:])
		changed := 0
		for b, w := range model.words {
			if w != before[b] {
				changed++
			}
		}
		if model.reads < 4000 || changed < 1500 {
			t.Fatalf("%d words read and %d changed: the test shows nothing", model.reads, changed)
		}
		s.ResetStats()
		if _, err := f.AddAll(t.Context(), items[n:]); err != nil {
			t.Fatal(err)
		}
		t.Logf("billed %d", s.Stats().Billed)
		if b := model.compare(stored(t, s)); b >= 0 {
			t.Errorf("bucket %d differs", b)
		}
		if st, err := f.Stats(t.Context()); err != nil || st.Damaged || st.Items != n+500 {
			t.Errorf("Stats = %+v, %v, want %d items and no damage", st, err, n+500)
		}
	})
}

// No number in a script is larger than Lua represents exactly.
func TestCuckooWidestNumbers(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := cuckoo(t, s.Client(), bloom.CuckooConfig{Capacity: 40, FPRate: 6e-8})
		model := newTable(f.Geometry())
		// Fingerprints with the top bit set. They fill both slots of many
		// buckets.
		var items []string
		for _, item := range numbered("item", 4000) {
			if p := model.placeOf(item); p.fp >= cells.WordBits<<19 && len(items) < 30 {
				items = append(items, item)
			}
		}
		if _, err := f.AddAll(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		model.add(items)
		if b := model.compare(stored(t, s)); b >= 0 || len(items) < 20 || strings.Count(stored(t, s), "\x00") == 0 {
			t.Errorf("bucket %d differs after %d items", b, len(items))
		}
	})
}

// The cost of a script follows its items, and not the size of the table, also
// on a server whose Lua makes an array up to the largest key.
func TestCuckooScriptsAreLight(t *testing.T) {
	f := cuckoo(t, upstashtest.NewServer(t).Client(upstash.WithTimeout(0)),
		bloom.CuckooConfig{Capacity: 1_000_000, FPRate: 0.01})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := f.AddAll(t.Context(), numbered("item", 100)); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	// The first write makes the table, which has less than 2 MB.
	if took := after.TotalAlloc - before.TotalAlloc; took > 50<<20 {
		t.Errorf("100 items took %d MiB", took>>20)
	}
}
