package bloom_test

import (
	"bytes"
	"errors"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func (t *table) clone() *table {
	other := *t
	other.words = maps.Clone(t.words)
	return &other
}

// Under faults, if a call answers, it agrees with the model. An uncertain one
// ran once or not at all. After any other error nothing has changed.
func TestCuckooUnderFaults(t *testing.T) {
	s := upstashtest.NewServer(t)
	rng := rand.New(rand.NewPCG(9, 9))
	cfg := bloom.CuckooConfig{Capacity: 60, FPRate: 0.001}
	f := cuckoo(t, impatient(s, upstash.WithMaxResponse(32<<10)), cfg)
	create(t, f, true)
	faults, struck := immediateFaults(), 0
	model, ends := newTable(f.Geometry()), map[string]int{}
	calls := 300
	if testenv.Long() {
		calls = 600
	}
	for range calls {
		if rng.IntN(3) == 0 {
			s.Inject(faults[rng.IntN(len(faults))])
			struck++
		}
		c := callCuckoo(t, f, model, rng)
		ends[c.judge(t, stored(t, s))]++
		model = c.model
	}
	t.Logf("%d faults, %v", struck, ends)
	for _, end := range []string{"answered", "full", "uncertain", "refused"} {
		if ends[end] == 0 {
			t.Errorf("no operation was %s", end)
		}
	}
	fresh := cuckoo(t, s.Client(), cfg)
	countOf(t, fresh, uint64(model.items))
	if st, err := fresh.Stats(t.Context()); err != nil || st.Damaged {
		t.Errorf("Stats = %+v, %v, want no damage", st, err)
	}
}

// immediateFaults are those that neither take effect later nor make the client
// wait.
func immediateFaults() []upstashtest.Fault {
	skipped := []string{
		upstashtest.LateExec(1).String(), upstashtest.Stall(upstashtest.BeforeExec).String(),
		upstashtest.Stall(upstashtest.AfterExec).String(), upstashtest.RateLimit(time.Second).String(),
	}
	faults := slices.DeleteFunc(upstashtest.EveryFault(), func(f upstashtest.Fault) bool {
		return slices.Contains(skipped, f.String())
	})
	return append(faults, upstashtest.RateLimit(0))
}

// A cuckooCall is a call of a Cuckoo and of its model.
type cuckooCall struct {
	name         string
	model, after *table // the model before the call, and after it if it ran
	full         int    // the item without room, or -1
	got, want    []bool
	err          error
}

// callCuckoo makes a random call.
func callCuckoo(t *testing.T, f *bloom.Cuckoo, model *table, rng *rand.Rand) *cuckooCall {
	all, items := numbered("item", 40), make([]string, 1+rng.IntN(6))
	for i := range items {
		items[i] = all[rng.IntN(len(all))]
	}
	c := &cuckooCall{model: model, after: model.clone(), full: -1}
	switch rng.IntN(6) {
	case 0, 1, 2:
		c.name = "AddAll"
		c.got, c.err = f.AddAll(t.Context(), items)
		c.want, c.full = c.after.add(items)
	case 3, 4:
		c.name = "RemoveAll"
		c.got, c.err = f.RemoveAll(t.Context(), items)
		c.want = c.after.remove(items)
	default:
		c.name = "ExistsAll"
		c.got, c.err = f.ExistsAll(t.Context(), items)
		for _, item := range items {
			c.want = append(c.want, model.has(item))
		}
	}
	return c
}

// judge compares the call and the table after it with the model, and returns
// how the call ended. The model is then that of the table.
func (c *cuckooCall) judge(t *testing.T, text string) (end string) {
	t.Helper()
	ran, same := c.after.compare(text) < 0, c.model.compare(text) < 0
	switch {
	case c.err == nil:
		end = "answered"
		if !ran || c.full >= 0 || !slices.Equal(c.got, c.want) {
			t.Fatalf("%s: %v, want %v; in place: %v", c.name, c.got, c.want, ran)
		}
	case errors.Is(c.err, bloom.ErrFull):
		end = "full"
		if c.full < 0 || !same {
			t.Fatalf("%s: %v", c.name, c.err)
		}
	case errors.Is(c.err, bloom.ErrUncertain):
		end = "uncertain"
		if !ran && !same {
			t.Fatalf("%s: the table is neither as before nor as after: %v", c.name, c.err)
		}
	default:
		end = "refused"
		if !same {
			t.Fatalf("%s has run: %v", c.name, c.err)
		}
	}
	if ran && c.full < 0 {
		c.model = c.after
	}
	return end
}

// table1000 has room for 1,000 copies at 1 in 17 million.
func table1000() bloom.CuckooConfig { return bloom.CuckooConfig{Capacity: 1000, FPRate: 1e-7} }

// countOf checks that Count returns want.
func countOf(t *testing.T, f *bloom.Cuckoo, want uint64) {
	t.Helper()
	if n, err := f.Count(t.Context()); err != nil || n != want {
		t.Errorf("Count = %d, %v, want %d", n, err, want)
	}
}

// A write with a lost reply is not repeated, and its error is ErrUncertain. One
// that was not sent, or was refused, is repeated.
func TestCuckooLostReplies(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := cuckoo(t, impatient(s), table1000())
		add := func(item string) error { return errorOf(f.Add(t.Context(), item)) }
		remove := func(item string) error { return errorOf(f.Remove(t.Context(), item)) }
		if err := add("first"); err != nil { // which sends the script's text
			t.Fatal(err)
		}
		noError(t, remove("first"))
		for _, c := range []struct {
			call  func(string) error
			when  upstashtest.When
			count uint64 // after the call
		}{
			{add, upstashtest.BeforeExec, 0},
			{add, upstashtest.AfterExec, 1},
			{remove, upstashtest.BeforeExec, 1},
			{remove, upstashtest.AfterExec, 0},
		} {
			s.ResetStats()
			s.Inject(upstashtest.Drop(c.when))
			err := c.call("a")
			var call *upstash.CallError
			if !errors.Is(err, bloom.ErrUncertain) || bloom.InFilter(err) || upstash.SafeToRetry(err) ||
				!errors.As(err, &call) || !strings.Contains(err.Error(), "not known") {
				t.Errorf("%v (InFilter %v), want ErrUncertain, not safe to retry",
					err, bloom.InFilter(err))
			}
			wantRequests(t, s, 1)
			countOf(t, f, c.count)
			// Of an item that is never in twice, Exists says what has happened.
			if found, err := f.Exists(t.Context(), "a"); err != nil || found != (c.count == 1) {
				t.Errorf("Exists = %v, %v with a count of %d", found, err, c.count)
			}
		}
		s.Inject(upstashtest.RateLimit(0))
		if err := add("b"); err != nil {
			t.Errorf("Add after a 429: %v", err)
		}
		countOf(t, f, 1)
		s.Inject(upstashtest.Drop(upstashtest.AfterExec))
		_, err := f.AddAll(t.Context(), numbered("x", 3))
		var batch *bloom.BatchError
		if !errors.Is(err, bloom.ErrUncertain) || !errors.As(err, &batch) || batch.Count(bloom.ItemUnknown) != 3 ||
			bloom.InFilter(err) || upstash.SafeToRetry(err) {
			t.Errorf("AddAll: %v, want three unknown items and ErrUncertain", err)
		}
	})
}

// ErrFull says which item had no room. The table is unchanged.
func TestCuckooFull(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		// A script that finds no room searches for a long time.
		c := s.Client(upstash.WithTimeout(0))
		f := cuckoo(t, c, bloom.CuckooConfig{Capacity: 1000, FPRate: 0.001})
		most := 2 * f.Geometry().Hashes
		for i := range most {
			if added, err := f.Add(t.Context(), "a"); err != nil || added != (i == 0) {
				t.Fatalf("Add number %d = %v, %v, want true of the first alone", i, added, err)
			}
		}
		before := stored(t, s)
		_, err := f.Add(t.Context(), "a")
		if !errors.Is(err, bloom.ErrFull) || !strings.Contains(err.Error(), "as often as it can be") ||
			!upstash.SafeToRetry(err) || bloom.InFilter(err) {
			t.Errorf("one copy too many: %v, want ErrFull, safe to retry", err)
		}
		_, err = f.AddAll(t.Context(), []string{"b", "a", "c"})
		var batch *bloom.BatchError
		if !errors.Is(err, bloom.ErrFull) || !errors.As(err, &batch) || batch.Count(bloom.ItemNotDone) != 3 ||
			!strings.Contains(err.Error(), "item 2 of 3") || !upstash.SafeToRetry(err) {
			t.Errorf("a batch with one copy too many: %v, want ErrFull and nothing done", err)
		}
		if stored(t, s) != before {
			t.Error("the string has changed")
		}
		removed, err := f.RemoveAll(t.Context(), []string{"a", "a", "nobody"})
		if err != nil || !removed[0] || !removed[1] || removed[2] {
			t.Errorf("RemoveAll = %v, %v, want [true true false]", removed, err)
		}
		countOf(t, f, uint64(most)-2)

		// The table takes slightly more different items than its capacity.
		s.FlushAll()
		n := 0
		for err = nil; err == nil; n++ {
			_, err = f.AddAll(t.Context(), numbered("item", 100*(n+1))[100*n:])
		}
		if !errors.Is(err, bloom.ErrFull) || !strings.Contains(err.Error(), "larger Capacity") ||
			n <= 10 || n > 13 {
			t.Errorf("after %d times 100 items: %v, want ErrFull between 1,000 and 1,300", n, err)
		}
		countOf(t, f, uint64(100*(n-1)))
	})
}

// All copies of an item share its two buckets. A table of copies is therefore
// full before its Capacity.
func TestCuckooFullOfCopies(t *testing.T) {
	const capacity = 1200
	s := upstashtest.NewServer(t)
	for _, tt := range []struct {
		copies int
		least  float64 // of Capacity
	}{{1, 1}, {2, 0.9}, {3, 2. / 3}} {
		for _, rate := range []float64{0.01, 0.001} {
			if rate != 0.01 && !testenv.Long() {
				continue
			}
			s.FlushAll()
			c := s.Client(upstash.WithTimeout(0))
			f := cuckoo(t, c, bloom.CuckooConfig{Capacity: capacity, FPRate: rate})
			in, least := 0, int(tt.least*capacity)
			for _, item := range numbered("item", least/tt.copies) {
				_, err := f.AddAll(t.Context(), slices.Repeat([]string{item}, tt.copies))
				if err != nil {
					t.Fatalf("%d copies at %v: full at %d of %d: %v",
						tt.copies, rate, in, capacity, err)
				}
				in += tt.copies
			}
		}
	}
}

// If the key holds something else, no write changes it.
func TestCuckooMeetsAnother(t *testing.T) {
	three := numbered("b", 3)
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name, put := range map[string]func(){
			"a filter": func() { add(t, handle(t, s.Client(), small()), "theirs", true) },
			"another cuckoo": func() {
				addTheirs(t, cuckoo(t, s.Client(), bloom.CuckooConfig{Capacity: 9, FPRate: 0.1}))
			},
			"another seed": func() {
				cfg := table1000()
				cfg.Seed = 7
				addTheirs(t, cuckoo(t, s.Client(), cfg))
			},
			"text":           func() { do(t, s, "SET", key, "some text of theirs") },
			"zeros":          func() { do(t, s, "SET", key, strings.Repeat("\x00", 40)) },
			"a header alone": func() { do(t, s, "SETRANGE", key, "0", cuckooHeader(t)) },
			"no kind's word": func() {
				do(t, s, "SETRANGE", key, "0", cuckooHeader(t)+strings.Repeat("\x00", 99))
			},
		} {
			s.FlushAll()
			put()
			before := stored(t, s)
			for op, call := range map[string]func(f *bloom.Cuckoo) error{
				"Add":       func(f *bloom.Cuckoo) error { return errorOf(f.Add(t.Context(), "a")) },
				"AddAll":    func(f *bloom.Cuckoo) error { return errorOf(f.AddAll(t.Context(), three)) },
				"RemoveAll": func(f *bloom.Cuckoo) error { return errorOf(f.RemoveAll(t.Context(), three)) },
				"Create":    func(f *bloom.Cuckoo) error { return errorOf(f.Create(t.Context())) },
				"Exists":    func(f *bloom.Cuckoo) error { return errorOf(f.Exists(t.Context(), "a")) },
				"Count":     func(f *bloom.Cuckoo) error { return errorOf(f.Count(t.Context())) },
				"Stats":     func(f *bloom.Cuckoo) error { return errorOf(f.Stats(t.Context())) },
				"Delete":    func(f *bloom.Cuckoo) error { return errorOf(f.Delete(t.Context())) },
			} {
				missing := name == "zeros" && op != "Add" && op != "AddAll" && op != "Create"
				planted := (name == "a header alone" || name == "no kind's word") && (op == "Delete" || op == "Create")
				if planted {
					continue // these check only the header, which is a cuckoo filter's
				}
				err := call(cuckoo(t, s.Client(), table1000()))
				if !isRefusal(err) && !(missing && (errors.Is(err, bloom.ErrNotFound) || err == nil)) {
					t.Errorf("%s meets %s: %v, want a refusal", op, name, err)
				}
			}
			if stored(t, s) != before {
				t.Errorf("%s has changed", name)
			}
		}
		s.FlushAll()
		do(t, s, "RPUSH", key, "theirs")
		wantError(t, errorOf(cuckoo(t, s.Client(), table1000()).Add(t.Context(), "a")), bloom.ErrNotFilter)
	})
}

func addTheirs(t *testing.T, f *bloom.Cuckoo) {
	t.Helper()
	add(t, f, "theirs", true)
}

// cuckooHeader returns the first eight bytes of table1000's string.
func cuckooHeader(t *testing.T) string {
	s := upstashtest.NewServer(t)
	addTheirs(t, cuckoo(t, s.Client(), table1000()))
	return stored(t, s)[:8]
}

// Filter.Add at the key of a Cuckoo damages the table, and Stats says so.
func TestCuckooDamage(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := cuckoo(t, s.Client(), table1000())
		mustAdd(t, f, numbered("item", 900)...)
		if st, err := f.Stats(t.Context()); err != nil || st.Damaged || strings.Contains(st.String(), "damaged") {
			t.Fatalf("Stats = %v, %v, want no damage", st, err)
		}
		if _, err := handle(t, s.Client(), small()).Add(t.Context(), "x"); !isRefusal(err) {
			t.Errorf("Filter.Add at a Cuckoo's key: %v, want a refusal", err)
		}
		if st, err := f.Stats(t.Context()); err != nil || !st.Damaged || !strings.Contains(st.String(), "damaged") {
			t.Errorf("Stats = %v, %v, want the damage", st, err)
		}
		countOf(t, f, 900) // the kind's word is undamaged
	})
}

// A Remove can find a fingerprint that no Add stored. The number of items must
// not fall below 0, or the first bit of the kind's word would be lost too.
func TestCuckooPhantom(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := cuckoo(t, s.Client(), table1000())
		create(t, f, true)
		model := newTable(f.Geometry())
		model.add([]string{"a"})
		do(t, s, "SETRANGE", key, "24", model.body())
		if removed, err := f.Remove(t.Context(), "a"); err != nil || !removed {
			t.Errorf("Remove = %v, %v, want true", removed, err)
		}
		countOf(t, f, 0)
		addTheirs(t, f)
		countOf(t, f, 1)
	})
}

func TestCuckooMissing(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg := table1000()
		cfg.MustExist = true
		f := cuckoo(t, s.Client(), cfg)
		_, err := f.Add(t.Context(), "a")
		if !errors.Is(err, bloom.ErrNotFound) || !strings.Contains(err.Error(), "Create") {
			t.Errorf("Add: %v, want ErrNotFound and what to do", err)
		}
		wantNoKey(t, s, key)
		for i := range 2 {
			if created, err := f.Create(t.Context()); err != nil || created != (i == 0) {
				t.Errorf("Create = %v, %v, want %v", created, err, i == 0)
			}
		}
		if n := len(stored(t, s)); uint64(n) != f.Geometry().Bytes(bloom.LayoutHeaded) {
			t.Errorf("Create made a string of %d bytes, want that of %v", n, f.Geometry())
		}
		countOf(t, f, 0)
		addTheirs(t, f)
		countOf(t, f, 1)
		if err := f.Rename(t.Context(), "other"); err != nil {
			t.Errorf("Rename: %v", err)
		}
		for range 2 {
			if deleted, err := f.Delete(t.Context()); err != nil || deleted {
				t.Errorf("Delete = %v, %v, want false", deleted, err)
			}
		}
		moved, err := bloom.OpenCuckoo(t.Context(), s.Client(), "other", bloom.CuckooConfig{MustExist: true})
		if err != nil || moved.Geometry() != f.Geometry() {
			t.Fatalf("OpenCuckoo = %v, %v, want %v", moved, err, f.Geometry())
		}
		exists(t, moved, "theirs", true)
		if deleted, err := moved.Delete(t.Context()); err != nil || !deleted {
			t.Errorf("Delete = %v, %v, want true", deleted, err)
		}
		wantError(t, errorOf(moved.Add(t.Context(), "a")), bloom.ErrNotFound)
		cfg.MissingIsEmpty = true
		empty := cuckoo(t, s.Client(), cfg)
		exists(t, empty, "a", false)
		countOf(t, empty, 0)
		wantError(t, errorOf(empty.Stats(t.Context())), bloom.ErrNotFound)
	})
}

func TestOpenCuckoo(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := s.Client()
	open := func() error {
		_, err := bloom.OpenCuckoo(t.Context(), c, key)
		return err
	}
	wantError(t, open(), bloom.ErrNotFound)
	var mismatch *bloom.MismatchError
	add(t, handle(t, c, small()), "a", true)
	if err := open(); !errors.As(err, &mismatch) || mismatch.Got.Scheme != bloom.SchemeBlocked {
		t.Errorf("OpenCuckoo of a Filter: %v, want a mismatch with its geometry", err)
	}
	s.FlushAll()
	cfg := table1000()
	cfg.Seed = 12345
	addTheirs(t, cuckoo(t, c, cfg))
	if err := open(); !errors.As(err, &mismatch) || !mismatch.OtherSeed {
		t.Errorf("OpenCuckoo without its seed: %v, want a mismatch of seeds", err)
	}
	f, err := bloom.OpenCuckoo(t.Context(), c, key, bloom.CuckooConfig{Seed: 12345})
	noError(t, err)
	st, err := f.Stats(t.Context())
	if err != nil || st.Capacity < 1000 || st.Capacity > 1002 || !st.Seeded {
		t.Errorf("Stats = %+v, %v, want a seeded filter for about 1,000 items", st, err)
	}
	wantError(t, errorOf(bloom.Open(t.Context(), c, key, bloom.Config{Seed: 12345})), bloom.ErrNotFilter)
}

// Stats compares how many bits are set, so a write that leaves their number goes
// unnoticed: of one byte up to 20 in 100, of eight up to 5, as Damaged's doc says.
func TestCuckooDamageThatGoesUnnoticed(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := cuckoo(t, s.Client(), bloom.CuckooConfig{Capacity: 1000, FPRate: 0.01})
	mustAdd(t, f, numbered("item", 1000)...)
	whole := []byte(stored(t, s))
	rng := rand.New(rand.NewPCG(1, 2))
	// overwritten returns the string with n other bytes, and whether as many bits are
	// set.
	overwritten := func(n int) (text []byte, unnoticed bool) {
		text, at := bytes.Clone(whole), 24+rng.IntN(len(whole)-24-n)
		for bytes.Equal(text, whole) {
			for i := range n {
				text[at+i] = byte(rng.Uint32())
			}
		}
		before, after := 0, 0
		for i := range n {
			before, after = before+bits.OnesCount8(whole[at+i]), after+bits.OnesCount8(text[at+i])
		}
		return text, before == after
	}
	for n, percent := range map[int]float64{1: 20, 8: 5} {
		const trials = 10_000
		unnoticed := 0
		for range trials {
			if _, u := overwritten(n); u {
				unnoticed++
			}
		}
		t.Logf("%d bytes: %d of %d", n, unnoticed, trials)
		if got := float64(unnoticed) * 100 / trials; got > percent || got < percent*3/4 {
			t.Errorf("%d bytes: %.1f in 100 go unnoticed, want up to %v", n, got, percent)
		}
	}
	for range 50 { // Stats does so
		text, unnoticed := overwritten(1)
		do(t, s, "SET", key, string(text))
		if st, err := f.Stats(t.Context()); err != nil || st.Damaged == unnoticed {
			t.Errorf("Stats: damaged %t, %v, want %t", st.Damaged, err, !unnoticed)
		}
	}
}
