package bloom_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func cuckoo(t testing.TB, c *upstash.Client, cfg bloom.CuckooConfig) *bloom.Cuckoo {
	t.Helper()
	f, err := bloom.NewCuckoo(c, key, cfg)
	noError(t, err)
	return f
}

// An item is found from its Add until it is removed.
func TestCuckoo(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := cuckoo(t, s.Client(), bloom.CuckooConfig{Capacity: 1000, FPRate: 1e-6})
		wantError(t, errorOf(f.Exists(t.Context(), "alice")), bloom.ErrNotFound)
		wantError(t, errorOf(f.Remove(t.Context(), "alice")), bloom.ErrNotFound)
		add(t, f, "alice", true)
		add(t, f, "alice", false)
		for copies := 2; copies >= 0; copies-- {
			exists(t, f, "alice", copies > 0)
			if removed, err := f.Remove(t.Context(), "alice"); err != nil || removed != (copies > 0) {
				t.Errorf("Remove of %d copies = %v, %v", copies, removed, err)
			}
		}
		exists(t, f, "bob", false)
	})
}

// After any calls, the scripts leave the same words as the model and give the
// same answers, until the table is full and beyond.
func TestCuckooScriptsAgainstModel(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for seed, p := range []float64{0.01, 0.001, 1e-4, 1e-6} {
			for _, capacity := range []uint64{40, 300} {
				if capacity > 40 && p != 0.01 && !testenv.Long() {
					continue
				}
				t.Run(fmt.Sprintf("p=%v,n=%d", p, capacity), func(t *testing.T) {
					s.FlushAll()
					checkAgainstModel(t, s, bloom.CuckooConfig{Capacity: capacity, FPRate: p}, uint64(seed))
				})
			}
		}
	})
}

func checkAgainstModel(t *testing.T, s *upstashtest.Server, cfg bloom.CuckooConfig, seed uint64) {
	f := cuckoo(t, s.Client(), cfg)
	r := &modelRun{f: f, model: newTable(f.Geometry()), rng: rand.New(rand.NewPCG(seed, cfg.Capacity))}
	for step := 0; step < 60 && (r.fulls < 3 || r.removes < 3); step++ {
		if len(r.in) > 0 && r.rng.IntN(4) == 0 {
			r.remove(t)
		} else {
			r.add(t, min(int(cfg.Capacity), 500))
		}
		text := stored(t, s)
		if b := r.model.compare(text); b >= 0 {
			t.Fatalf("step %d: bucket %d is %#x, want %#x",
				step, b, wordIn(text, uint64(b)), r.model.words[uint64(b)])
		}
	}
	if r.removes == 0 || r.fulls == 0 {
		t.Errorf("%d removals, and %d times full: the test shows nothing", r.removes, r.fulls)
	}
	r.wantSameAnswers(t)
}

// A modelRun makes the same calls of a filter and of its model.
type modelRun struct {
	f              *bloom.Cuckoo
	model          *table
	rng            *rand.Rand
	in             []string // added, and not removed since
	next           int      // the number of the next new item
	fulls, removes int
}

// remove removes some of the items, sometimes with one that was never added.
func (r *modelRun) remove(t *testing.T) {
	t.Helper()
	n := 1 + r.rng.IntN(min(len(r.in), 100))
	r.rng.Shuffle(len(r.in), func(i, j int) { r.in[i], r.in[j] = r.in[j], r.in[i] })
	taken := slices.Clone(r.in[:n])
	if r.rng.IntN(4) == 0 {
		taken = append(taken, "never")
	}
	r.in = r.in[n:]
	got, err := r.f.RemoveAll(t.Context(), taken)
	if want := r.model.remove(taken); err != nil || !slices.Equal(got, want) {
		t.Fatalf("RemoveAll = %v, %v, want %v", got, err, want)
	}
	r.removes++
}

// add adds up to most items, some of them for the second time.
func (r *modelRun) add(t *testing.T, most int) {
	t.Helper()
	items := make([]string, 1+r.rng.IntN(most))
	if r.rng.IntN(3) == 0 {
		items = items[:1]
	}
	for i := range items {
		if items[i] = "item" + strconv.Itoa(r.next); r.rng.IntN(20) == 0 && r.next > 0 {
			items[i] = "item" + strconv.Itoa(r.rng.IntN(r.next))
		}
		r.next++
	}
	got, err := r.f.AddAll(t.Context(), items)
	want, full := r.model.add(items)
	if full >= 0 {
		r.fulls++
		var batch *bloom.BatchError
		if !errors.Is(err, bloom.ErrFull) || !errors.As(err, &batch) || batch.Count(bloom.ItemNotDone) != len(items) {
			t.Fatalf("AddAll: %v, want ErrFull", err)
		}
		return
	}
	if r.in = append(r.in, items...); err != nil || !slices.Equal(got, want) {
		t.Fatalf("AddAll = %v, %v, want %v", got, err, want)
	}
}

// wantSameAnswers asks the filter and the model about all items and others.
func (r *modelRun) wantSameAnswers(t *testing.T) {
	t.Helper()
	asked := append(r.in, numbered("absent", 500)...)
	found, err := r.f.ExistsAll(t.Context(), asked)
	noError(t, err)
	for i, item := range asked {
		if found[i] != r.model.has(item) {
			t.Errorf("%s: found %v, want %v", item, found[i], r.model.has(item))
		}
	}
	items := uint64(r.model.items)
	if n, err := r.f.Count(t.Context()); err != nil || n != items {
		t.Errorf("Count = %d, %v, want %d", n, err, items)
	}
	if st, err := r.f.Stats(t.Context()); err != nil || st.Damaged || st.Items != items {
		t.Errorf("Stats = %+v, %v, want %d items and no damage", st, err, items)
	}
}

// A table is a cuckoo filter in memory. It places items as the scripts do, and
// has the same words after the same calls.
type table struct {
	geo   bloom.Geometry
	words map[uint64]uint64 // by bucket
	items int
	ones  int
	reads int // words read by the last add besides the items' own
}

func newTable(g bloom.Geometry) *table {
	return &table{geo: g, words: map[uint64]uint64{}}
}

type place struct{ fp, first, second uint64 }

func (t *table) buckets() uint64 { return t.geo.Bits / 53 }
func (t *table) width() int      { return cells.CuckooWidth(t.geo.Hashes) }

func (t *table) placeOf(item string) place {
	x, y := cells.Digest(item, t.geo.Seed)
	fp, first, second := cells.CuckooPlace(x, y, t.buckets(), t.geo.Hashes)
	return place{fp, first, second}
}

// at returns the fingerprint in a slot.
func (t *table) at(bucket uint64, slot int) uint64 {
	return t.words[bucket] >> (slot * t.width()) & (1<<t.width() - 1)
}

func (t *table) put(bucket uint64, slot int, fp uint64) {
	t.words[bucket] += (fp - t.at(bucket, slot)) << (slot * t.width())
}

// slotOf returns the lowest slot that holds fp, or -1 if none does.
func (t *table) slotOf(bucket, fp uint64) int {
	for s := range t.geo.Hashes {
		if t.at(bucket, s) == fp {
			return s
		}
	}
	return -1
}

func (t *table) has(item string) bool {
	p := t.placeOf(item)
	return t.slotOf(p.first, p.fp) >= 0 || t.slotOf(p.second, p.fp) >= 0
}

func (t *table) remove(items []string) (removed []bool) {
	for _, item := range items {
		p := t.placeOf(item)
		b, s := p.first, t.slotOf(p.first, p.fp)
		if s < 0 {
			b, s = p.second, t.slotOf(p.second, p.fp)
		}
		removed = append(removed, s >= 0)
		if s >= 0 {
			t.put(b, s, 0)
			t.items, t.ones = max(t.items-1, 0), t.ones-bits.OnesCount64(p.fp)
		}
	}
	return removed
}

// add places all items or none. full is the index of the item that found no
// room, or -1.
func (t *table) add(items []string) (added []bool, full int) {
	before := *t
	before.words = maps.Clone(t.words)
	known, waiting := map[uint64]bool{}, []int{}
	places := make([]place, len(items))
	for i, item := range items {
		p := t.placeOf(item)
		places[i] = p
		known[p.first], known[p.second] = true, true
		waiting = append(waiting, i)
	}
	seen := map[place]bool{}
	t.reads = 0
	for _, p := range places {
		id := place{p.fp, min(p.first, p.second), max(p.first, p.second)}
		added = append(added, !seen[id] && t.slotOf(p.first, p.fp) < 0 && t.slotOf(p.second, p.fp) < 0)
		seen[id] = true
		t.items, t.ones = t.items+1, t.ones+bits.OnesCount64(p.fp)
	}
	for len(waiting) > 0 {
		var later []int
		var wanted []uint64
		for _, i := range waiting {
			missing, ok := t.placeOne(places[i], known)
			switch {
			case !ok && len(missing) == 0:
				*t = before
				return nil, i
			case !ok:
				later, wanted = append(later, i), append(wanted, missing...)
			}
		}
		for _, b := range wanted {
			if !known[b] {
				t.reads++
			}
			known[b] = true
		}
		waiting = later
	}
	return added, -1
}

// placeOne moves fingerprints along the shortest path through the known
// buckets. If there is none, missing holds the buckets the search would have
// needed.
func (t *table) placeOne(p place, known map[uint64]bool) (missing []uint64, ok bool) {
	type node struct {
		bucket     uint64
		from, slot int
	}
	nodes := []node{{p.first, -1, 0}}
	met := map[uint64]bool{p.first: true, p.second: true}
	if p.second != p.first {
		nodes = append(nodes, node{p.second, -1, 0})
	}
	for n := 0; n < len(nodes); n++ {
		b := nodes[n].bucket
		if !known[b] {
			missing = append(missing, b)
			continue
		}
		if free := t.slotOf(b, 0); free >= 0 {
			for nodes[n].from >= 0 {
				before := nodes[nodes[n].from].bucket
				t.put(nodes[n].bucket, free, t.at(before, nodes[n].slot))
				free, n = nodes[n].slot, nodes[n].from
				t.put(before, free, 0)
			}
			t.put(nodes[n].bucket, free, p.fp)
			return nil, true
		}
		for s := range t.geo.Hashes {
			o := cells.CuckooOther(t.at(b, s), b, t.buckets())
			if len(nodes) < 400 && !met[o] {
				met[o] = true
				nodes = append(nodes, node{o, n, s})
			}
		}
	}
	return missing, false
}

// wordIn returns a bucket's word from a stored string.
func wordIn(stored string, bucket uint64) (w uint64) {
	for i := range uint64(53) {
		at := 192 + 53*bucket + i
		w <<= 1
		if at/8 < uint64(len(stored)) {
			w |= uint64(stored[at/8]>>(7-at%8)) & 1
		}
	}
	return w
}

// compare returns the first bucket that differs in a stored string, or -1.
func (t *table) compare(stored string) int {
	for b := range t.buckets() {
		if wordIn(stored, b) != t.words[b] {
			return int(b)
		}
	}
	return -1
}

// body returns the table as it is stored, after the first 192 bits of the
// string.
func (t *table) body() string {
	out := make([]byte, (t.geo.Bits+7)/8)
	for b, w := range t.words {
		for i := range uint64(53) {
			at := 53*b + i
			out[at/8] |= byte(w>>(52-i)&1) << (7 - at%8)
		}
	}
	return string(out)
}

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
		f := batched(cuckoo(t, s.Client(upstash.WithTimeout(0)), bloom.CuckooConfig{Capacity: n, FPRate: p}), 0, 1)
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
		noError(t, call())
		return float64(s.Stats().Billed)
	}
	items := numbered("item", n+200)
	var half, near, last, single float64
	for i := 0; i < n; i += batch {
		b := billed(func() error { return errorOf(f.AddAll(t.Context(), items[i:i+batch])) })
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
		single += billed(func() error { return errorOf(f.Add(t.Context(), item)) }) / 200
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
	noError(t, err)
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

// TestCuckooBilled checks what one call of each kind costs while there is room,
// and that no request is longer than 8,000 bytes.
func TestCuckooBilled(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx := t.Context()
		c, w := watch(t, s)
		const limit = 8000
		f, items := batched(cuckoo(t, c, bloom.CuckooConfig{Capacity: 5000, FPRate: 1e-6}), limit, 0), numbered("item", 300)
		create(t, f, true)
		mustAdd(t, f, "first") // which sends the scripts' texts
		noError(t, errorOf(f.Remove(ctx, "first")))
		w.Bodies = nil
		bloomtest.Costs(t, s, "Add", 1, 3, func() error { return errorOf(f.Add(ctx, "a")) })
		bloomtest.Costs(t, s, "Remove", 1, 3, func() error { return errorOf(f.Remove(ctx, "a")) })
		bloomtest.Costs(t, s, "Remove of nothing", 1, 2, func() error { return errorOf(f.Remove(ctx, "a")) })
		bloomtest.Costs(t, s, "Exists", 1, 1, func() error { return errorOf(f.Exists(ctx, "a")) })
		bloomtest.Costs(t, s, "Count", 1, 1, func() error { return errorOf(f.Count(ctx)) })
		bloomtest.Costs(t, s, "Stats", 1, 5, func() error { return errorOf(f.Stats(ctx)) })
		bloomtest.Costs(t, s, "AddAll", 3, 9, func() error { return errorOf(f.AddAll(ctx, items)) })
		bloomtest.Costs(t, s, "RemoveAll", 3, 9, func() error { return errorOf(f.RemoveAll(ctx, items)) })
		for _, body := range w.Bodies {
			if len(body) > limit {
				t.Errorf("a request of %d bytes, want at most %d", len(body), limit)
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
		create(t, f, true)
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
		mustAdd(t, f, items[n:]...)
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
		mustAdd(t, f, items...)
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
	mustAdd(t, f, numbered("item", 100)...)
	runtime.ReadMemStats(&after)
	// The first write makes the table, which has less than 2 MB.
	if took := after.TotalAlloc - before.TotalAlloc; took > 50<<20 {
		t.Errorf("100 items took %d MiB", took>>20)
	}
}
