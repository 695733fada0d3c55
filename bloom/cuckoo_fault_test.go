package bloom_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

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
		add(t, f, "first", true) // which sends the script's text
		noError(t, errorOf(f.Remove(t.Context(), "first")))
		for _, lost := range []struct {
			call  func(ctx context.Context, item string) (bool, error)
			when  upstashtest.When
			count uint64 // after the call
		}{
			{f.Add, upstashtest.BeforeExec, 0},
			{f.Add, upstashtest.AfterExec, 1},
			{f.Remove, upstashtest.BeforeExec, 1},
			{f.Remove, upstashtest.AfterExec, 0},
		} {
			s.ResetStats()
			s.Inject(upstashtest.Drop(lost.when))
			_, err := lost.call(t.Context(), "a")
			var call *upstash.CallError
			if !errors.Is(err, bloom.ErrUncertain) || bloom.InFilter(err) || upstash.SafeToRetry(err) ||
				!errors.As(err, &call) || !strings.Contains(err.Error(), "not known") {
				t.Errorf("%v (InFilter %v), want ErrUncertain, not safe to retry",
					err, bloom.InFilter(err))
			}
			wantRequests(t, s, 1)
			countOf(t, f, lost.count)
			// Of an item that is never in twice, Exists says what has happened.
			exists(t, f, "a", lost.count == 1)
		}
		s.Inject(upstashtest.RateLimit(0))
		add(t, f, "b", true)
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

// In tables made by hand, a script finds the one path to an empty slot, although most
// fingerprints on it lead back. In a full table it looks at 400 buckets, and says that an
// item is in as often as it can be only if both of its buckets hold nothing else.
func TestCuckooTablesMadeByHand(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := cuckoo(t, s.Client(patient), bloom.CuckooConfig{Capacity: 10_000, FPRate: 0.001})
		create(t, f, true)
		model := newTable(f.Geometry())
		slots, buckets, p := f.Geometry().Hashes, model.buckets(), model.placeOf("item")
		fill := func(bucket uint64, fp func(slot int) uint64) {
			for slot := range slots {
				model.put(bucket, slot, fp(slot))
			}
		}
		leads := func(from, to uint64) (fp uint64) {
			for fp = 1; cells.CuckooOther(fp, from, buckets) != to; fp++ {
			}
			return fp
		}
		path := []uint64{p.second, p.first}
		for range 7 {
			path = append(path, (path[len(path)-1]+buckets/11)%buckets)
		}
		for i, b := range path[:len(path)-1] {
			fill(b, func(slot int) uint64 {
				if i > 0 && slot < slots-1 {
					return leads(b, path[i-1])
				}
				return leads(b, path[i+1])
			})
		}
		do(t, s, "SETRANGE", key, "24", model.body())
		add(t, f, "item", true)
		_, full := model.add([]string{"item"})
		if b := model.compare(stored(t, s)); b >= 0 || full >= 0 {
			t.Errorf("bucket %d differs from the model's, which is full: %t", b, full >= 0)
		}

		for b := range buckets {
			fill(b, func(slot int) uint64 { return 1 + (b*uint64(slots)+uint64(slot))%(p.fp-1) })
		}
		others := [2]uint64{model.words[p.first], model.words[p.second]}
		for copies, says := range []string{"no place", "no place", "no place", "as often as it can be"} {
			for i, b := range []uint64{p.first, p.second} {
				if model.words[b] = others[i]; copies>>i&1 == 1 {
					fill(b, func(int) uint64 { return p.fp })
				}
			}
			do(t, s, "SETRANGE", key, "24", model.body())
			s.ResetStats()
			_, err := f.Add(t.Context(), "item")
			if !errors.Is(err, bloom.ErrFull) || !strings.Contains(err.Error(), says) {
				t.Errorf("copies in its buckets, by bits %b: %v, want ErrFull that says %q", copies, err, says)
			}
			if n := s.Stats().Billed; copies == 0 && n != 6 {
				t.Errorf("%d commands in a full table, want 6", n)
			}
		}
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

// If the key holds something else, no call changes it.
func TestCuckooMeetsAnother(t *testing.T) {
	three := numbered("b", 3)
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		seeded := table1000()
		seeded.Seed = 7
		mine := cuckoo(t, s.Client(), table1000())
		create(t, mine, true)
		header := stored(t, s)[:8]
		made := func(f bloomtest.Adder) string {
			s.FlushAll()
			add(t, f, "theirs", true)
			return stored(t, s)
		}
		for name, data := range map[string]string{
			"a filter":       made(handle(t, s.Client(), small())),
			"another cuckoo": made(cuckoo(t, s.Client(), bloom.CuckooConfig{Capacity: 9, FPRate: 0.1})),
			"another seed":   made(cuckoo(t, s.Client(), seeded)),
			"text":           "some text of theirs",
			"zeros":          strings.Repeat("\x00", 40),
			"a header alone": header,
			"no kind's word": header + strings.Repeat("\x00", 99),
		} {
			do(t, s, "SET", key, data)
			refused := func(call string, err error, zeros bool) { // zeros: or no filter is there
				t.Helper()
				missing := err == nil || errors.Is(err, bloom.ErrNotFound)
				if !isRefusal(err) && !(zeros && name == "zeros" && missing) {
					t.Errorf("%s meets %s: %v, want a refusal", call, name, err)
				}
				if stored(t, s) != data {
					t.Fatalf("%s has changed %s", call, name)
				}
			}
			fresh := func() *bloom.Cuckoo { return cuckoo(t, s.Client(), table1000()) }
			refused("Add", errorOf(fresh().Add(t.Context(), "a")), false)
			refused("AddAll", errorOf(fresh().AddAll(t.Context(), three)), false)
			refused("RemoveAll", errorOf(fresh().RemoveAll(t.Context(), three)), true)
			refused("Exists", errorOf(fresh().Exists(t.Context(), "a")), true)
			refused("Count", errorOf(fresh().Count(t.Context())), true)
			refused("Stats", errorOf(fresh().Stats(t.Context())), true)
			if !strings.HasPrefix(data, header) { // these check the header alone
				refused("Create", errorOf(fresh().Create(t.Context())), false)
				refused("Delete", errorOf(fresh().Delete(t.Context())), true)
			}
		}
		s.FlushAll()
		do(t, s, "RPUSH", key, "theirs")
		wantError(t, errorOf(cuckoo(t, s.Client(), table1000()).Add(t.Context(), "a")), bloom.ErrNotFilter)
	})
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
		add(t, f, "theirs", true)
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
		add(t, f, "theirs", true)
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
	if err := open(); !errors.As(err, &mismatch) || mismatch.Got.Scheme != bloom.SchemeBlocked ||
		mismatch.GotKind != bloom.KindFilter {
		t.Errorf("OpenCuckoo of a Filter: %v, want a mismatch with its geometry", err)
	}
	s.FlushAll()
	cfg := table1000()
	cfg.Seed = 12345
	add(t, cuckoo(t, c, cfg), "theirs", true)
	if err := open(); !errors.As(err, &mismatch) || !mismatch.OtherSeed {
		t.Errorf("OpenCuckoo without its seed: %v, want a mismatch of seeds", err)
	}
	f, err := bloom.OpenCuckoo(t.Context(), c, key, bloom.CuckooConfig{Seed: 12345})
	noError(t, err)
	st, err := f.Stats(t.Context())
	if err != nil || st.Capacity < 1000 || st.Capacity > 1002 || !st.Seeded {
		t.Errorf("Stats = %+v, %v, want a seeded filter for about 1,000 items", st, err)
	}
}

// A word that counts more copies than there are slots is damaged, however many
// bits are set. Everything that reads it says so, and there is no backup of it.
func TestCuckooCountsMoreCopiesThanSlots(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		f := cuckoo(t, c, bloom.CuckooConfig{Capacity: 500, FPRate: 0.01})
		add(t, f, "a", true)
		var stream bytes.Buffer
		noError(t, errorOf(takeBackup(t, c, key).WriteTo(&stream)))
		do(t, s, "SETRANGE", key, "17", "\xff") // of the number of copies
		got := map[string]bloom.Stats{}
		var err error
		got["Stats"], err = f.Stats(ctx)
		noError(t, err)
		got["Inspect"], err = bloom.Inspect(ctx, c, key)
		noError(t, err)
		all, err := bloom.InspectAll(ctx, c, []string{key})
		noError(t, err)
		got["InspectAll"] = all[0].Stats
		for name, st := range got {
			if !st.Damaged || st.Items != 0xff<<17+1 || !strings.Contains(st.String(), "damaged") {
				t.Errorf("%s: %+v, want a damaged filter", name, st)
			}
		}
		if _, err := bloom.TakeBackup(ctx, c, key); !errors.Is(err, bloom.ErrNotFilter) ||
			!strings.Contains(err.Error(), "damaged Cuckoo") {
			t.Errorf("TakeBackup: %v, want ErrNotFilter of a damaged Cuckoo", err)
		}
		damaged := stream.Bytes()
		damaged[24+17] = 0xff // behind the head of the stream
		sum := len(damaged) - 8
		binary.BigEndian.PutUint64(damaged[sum:], xxh3.Hash(damaged[:sum]))
		if _, err := bloom.ReadBackup(bytes.NewReader(damaged)); !errors.Is(err, bloom.ErrBadStream) ||
			!strings.Contains(err.Error(), "damaged Cuckoo") {
			t.Errorf("ReadBackup: %v, want ErrBadStream of a damaged Cuckoo", err)
		}
	})
}

// The Stats of a backup of a table that something else wrote to say so.
func TestBackupOfADamagedCuckoo(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := cuckoo(t, s.Client(), table1000())
	mustAdd(t, f, numbered("item", 500)...)
	if st := takeBackup(t, s.Client(), key).Stats(); st.Damaged || st.Items != 500 {
		t.Errorf("%+v, want 500 items", st)
	}
	do(t, s, "SETRANGE", key, "100", "\xff\xff\xff")
	if st := takeBackup(t, s.Client(), key).Stats(); !st.Damaged || st.Items != 500 {
		t.Errorf("%+v, want a damaged filter", st)
	}
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
