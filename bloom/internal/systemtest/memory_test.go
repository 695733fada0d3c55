package systemtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A full database refuses a look-up, because its BITFIELD counts as a write.
// The error names the option with which look-ups still work, those of each type.
// Persist, Expire and Delete take no memory, and work.
func TestFullDatabase(t *testing.T) { eachFillable(t, testFullDatabase) }

func testFullDatabase(t *testing.T, s *upstashtest.Server, fill func()) {
	f := bloomtest.Handle(t, s.Client(), bloomtest.Expiring(time.Hour))
	bloomtest.Add(t, f, "a", true)
	finders := findersOf(t, s)
	fill()

	for name, call := range map[string]func() error{
		"Exists":    func() error { _, err := f.Exists(t.Context(), "a"); return err },
		"ExistsAll": func() error { _, err := f.ExistsAll(t.Context(), []string{"a"}); return err },
		"ExistsIn":  func() error { _, err := bloom.ExistsIn(t.Context(), "a", f, f); return err },
	} {
		err := call()
		if !errors.Is(err, upstash.ErrOutOfMemory) || !upstash.SafeToRetry(err) ||
			!strings.Contains(err.Error(), "with upstash.WithReadOnly") {
			t.Errorf("%s: %v, want ErrOutOfMemory with the remedy", name, err)
		}
	}
	if _, err := f.Add(t.Context(), "b"); !errors.Is(err, upstash.ErrOutOfMemory) || !upstash.SafeToRetry(err) ||
		strings.Contains(err.Error(), "WithReadOnly") {
		t.Errorf("Add: %v, want ErrOutOfMemory", err)
	}
	reader := s.Client(upstash.WithReadOnly())
	for name, of := range finders {
		if _, err := of(s.Client()).Exists(t.Context(), "a"); !errors.Is(err, upstash.ErrOutOfMemory) ||
			!strings.Contains(err.Error(), "with upstash.WithReadOnly") {
			t.Errorf("%s: %v, want ErrOutOfMemory with the remedy", name, err)
		}
		for item, want := range map[string]bool{"a": true, "b": false} {
			if found, err := of(reader).Exists(t.Context(), item); found != want || err != nil {
				t.Errorf("%s, WithReadOnly: Exists(%q) = %v, %v, want %v", name, item, found, err, want)
			}
		}
	}
	bloomtest.Exists(t, bloomtest.Handle(t, reader, bloomtest.Expiring(time.Hour)), "a", true)
	cfg := bloomtest.Expiring(time.Hour)
	cfg.Reads = bloom.ReadsNearest
	nearest := bloomtest.Handle(t, s.Client(), cfg)
	bloomtest.Exists(t, nearest, "a", true)
	bloomtest.Exists(t, nearest, "b", false)
	if ok, err := f.Persist(t.Context()); !ok || err != nil {
		t.Errorf("Persist = %v, %v, want true", ok, err)
	}
	bloomtest.WantNoTTL(t, s)
	if ok, err := f.Expire(t.Context(), time.Minute); !ok || err != nil || !bloomtest.Settled(t, s) {
		t.Errorf("Expire = %v, %v, settled %v, want true", ok, err, bloomtest.Settled(t, s))
	}
	bloomtest.WantTTL(t, s, time.Minute)
	if ok, err := f.Delete(t.Context()); !ok || err != nil {
		t.Errorf("Delete = %v, %v, want true", ok, err)
	}
}

// eachFillable runs a test with a Redis and with the database in memory. fill
// makes it full.
func eachFillable(t *testing.T, test func(t *testing.T, s *upstashtest.Server, fill func())) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		s := upstashtest.NewServer(t)
		test(t, s, func() { s.SetFull(true) })
	})
	t.Run("redis", func(t *testing.T) {
		addr := testenv.Redis(t)
		test(t, upstashtest.NewServer(t, upstashtest.WithRedis(addr)), func() { bloomtest.FillUp(t, addr) })
	})
}

// A finder is what the types have in common.
type finder interface {
	Add(ctx context.Context, item string) (bool, error)
	Exists(ctx context.Context, item string) (bool, error)
}

// findersOf makes a filter of each of the other types, with the item "a", and
// returns how a client gets a handle.
func findersOf(t *testing.T, s *upstashtest.Server) map[string]func(*upstash.Client) finder {
	t.Helper()
	must := func(f finder, err error) finder {
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	finders := map[string]func(*upstash.Client) finder{
		"Window": func(c *upstash.Client) finder {
			return must(bloom.NewWindow(c, "window",
				bloom.WindowConfig{Capacity: 100, FPRate: 0.01, Span: time.Hour}))
		},
		"Scalable": func(c *upstash.Client) finder {
			return must(bloom.NewScalable(c, "scalable", bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01}))
		},
		"Sharded": func(c *upstash.Client) finder {
			f, err := bloom.NewSharded([]*upstash.Client{c}, "sharded",
				bloom.ShardedConfig{Capacity: 100, FPRate: 0.01, Shards: 2})
			if err == nil && !c.ReadOnly() {
				_, err = f.Create(t.Context())
			}
			return must(f, err)
		},
		"Cuckoo": func(c *upstash.Client) finder {
			return must(bloom.NewCuckoo(c, "cuckoo", bloom.CuckooConfig{Capacity: 100, FPRate: 0.01}))
		},
	}
	for name, of := range finders {
		if added, err := of(s.Client()).Add(t.Context(), "a"); !added || err != nil {
			t.Fatalf("%s: Add = %v, %v, want true", name, added, err)
		}
	}
	return finders
}

// A full Redis queues no command of a transaction, not even a read. Calls that
// only read the filter's state then do so without a transaction, with the same
// answers.
func TestAFullDatabaseStillTellsItsState(t *testing.T) { eachFillable(t, testFullState) }

func testFullState(t *testing.T, s *upstashtest.Server, fill func()) {
	headed, bare := bloomtest.Handle(t, s.Client(), bloomtest.Expiring(time.Hour)), bareBeside(t, s)
	for _, f := range []*bloom.Filter{headed, bare} {
		if _, err := f.AddAll(t.Context(), bloomtest.Numbered("item", 100)); err != nil {
			t.Fatal(err)
		}
	}
	states := func() (state [7]any) {
		for i, read := range []func() (any, error){
			func() (any, error) { return headed.Cardinality(t.Context()) },
			func() (any, error) { return bare.Cardinality(t.Context()) },
			func() (any, error) { return timeless(headed.Stats(t.Context())) },
			func() (any, error) { return timeless(bare.Stats(t.Context())) },
			func() (any, error) { return timeless(bloom.Inspect(t.Context(), s.Client(), bloomtest.Key)) },
			func() (any, error) {
				f, err := bloom.Open(t.Context(), s.Client(), bloomtest.Key)
				if err != nil {
					return nil, err
				}
				return f.Geometry(), nil
			},
			func() (any, error) {
				l, err := headed.Snapshot(t.Context())
				if err != nil {
					return nil, err
				}
				return string(l.Bytes()), nil
			},
		} {
			var err error
			if state[i], err = read(); err != nil {
				t.Errorf("read %d before the database was full: %v", i, err)
			}
		}
		return state
	}
	before := states()
	fill()
	for i, after := range states() {
		if after != before[i] {
			t.Errorf("read %d in a full database: %q, want %q", i, after, before[i])
		}
	}
}

// bareBeside makes a Bare filter at another key.
func bareBeside(t *testing.T, s *upstashtest.Server) *bloom.Filter {
	t.Helper()
	f, err := bloom.New(s.Client(), "bare", bloomtest.SparseOf(bloom.LayoutBare))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// timeless returns Stats without what changes from moment to moment.
func timeless(st bloom.Stats, err error) (any, error) {
	if st.TTL > 0 {
		st.TTL = time.Hour
	}
	return st, err
}

// Without a transaction the filter can be replaced between two commands.
func TestStateOutsideATransactionIsOfOneFilter(t *testing.T) {
	const aborted = `{"error":"EXECABORT Transaction discarded because of previous errors."}`
	h := bloomtest.HeaderWordOf(bloomtest.Small())
	state := func(before, after string) *bloom.Filter {
		c := bloomtest.Canned(t, aborted, `[{"result":`+before+`},{"result":[`+h+`,0,0]},{"result":40},`+
			`{"result":1361},{"result":-1},{"result":`+after+`}]`)
		return bloomtest.Handle(t, c, bloomtest.Small())
	}
	same, other := "["+h+",4503599627370497]", "["+h+",4503599627370498]"
	if st, err := state(same, same).Stats(t.Context()); err != nil || st.SetBits != 40 {
		t.Errorf("of one filter: %v, %v", st, err)
	}
	for _, after := range []string{other, "[0,0]", "[" + h + "]", "[null,null]"} {
		if st, err := state(same, after).Stats(t.Context()); err == nil || st != (bloom.Stats{}) ||
			errors.Is(err, bloom.ErrRecreated) != (after == other || after == "[0,0]") {
			t.Errorf("%s after %s: %v, %v", after, same, st, err)
		}
	}
}

// An error of the database says what to change in the Config.
func TestLimitsNameTheRemedy(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithMaxRecord(1000))
	f := bloomtest.Handle(t, s.Client(), bloomtest.Small())
	for name, call := range map[string]func() error{
		"Create": func() error { _, err := f.Create(t.Context()); return err },
		"AddAll": func() error { _, err := f.AddAll(t.Context(), bloomtest.Numbered("a", 100)); return err },
	} {
		err := call()
		if !errors.Is(err, upstash.ErrRecordTooLarge) || !strings.Contains(err.Error(), "lower the Capacity") {
			t.Errorf("%s: %v, want ErrRecordTooLarge and what to lower", name, err)
		}
	}
	s = upstashtest.NewServer(t, upstashtest.WithMaxRequest(10_000))
	f = bloomtest.Handle(t, s.Client(), bloomtest.Small())
	bloomtest.Add(t, f, "a", true)
	for name, call := range map[string]func() error{
		"AddAll":    func() error { _, err := f.AddAll(t.Context(), bloomtest.Numbered("a", 1000)); return err },
		"ExistsAll": func() error { _, err := f.ExistsAll(t.Context(), bloomtest.Numbered("a", 1000)); return err },
	} {
		err := call()
		if !errors.Is(err, upstash.ErrRequestTooLarge) ||
			!strings.Contains(err.Error(), "lower Config.BatchBytes") {
			t.Errorf("%s: %v, want ErrRequestTooLarge and what to lower", name, err)
		}
	}
}

// MissingIsEmpty does not change some calls, and turns a lost filter, which
// MustExist expects, into a "no". Their errors must not recommend it.
func TestNotFoundNamesTheRemedy(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := bloomtest.Handle(t, s.Client(), bloomtest.Small())
	cfg := bloomtest.Small()
	cfg.MustExist = true
	lost := bloomtest.Handle(t, s.Client(), cfg)
	for name, call := range map[string]func() error{
		"Open":    func() error { _, err := bloom.Open(t.Context(), s.Client(), bloomtest.Key); return err },
		"Inspect": func() error { _, err := bloom.Inspect(t.Context(), s.Client(), bloomtest.Key); return err },
		"Stats":   func() error { _, err := f.Stats(t.Context()); return err },
		"Rename":  func() error { return f.Rename(t.Context(), "other") },
		"Exists":  func() error { _, err := f.Exists(t.Context(), "a"); return err },
		"must":    func() error { _, err := lost.Exists(t.Context(), "a"); return err },
	} {
		err := call()
		names := strings.Contains(err.Error(), "MissingIsEmpty")
		if !errors.Is(err, bloom.ErrNotFound) || names != (name == "Exists") {
			t.Errorf("%s: %v, want ErrNotFound, and MissingIsEmpty only for Exists", name, err)
		}
	}
}

// If a BITFIELD is refused for the size of the record, nothing is known about
// the key, and no TTL is set.
func TestRefusedAddLeavesNoTTL(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithMaxRecord(100))
	bloomtest.Do(t, s, "SET", bloomtest.Key, "some text of theirs")
	_, err := bloomtest.Handle(t, s.Client(), bloomtest.Expiring(time.Hour)).Add(t.Context(), "a")
	if !errors.Is(err, upstash.ErrRecordTooLarge) {
		t.Errorf("Add: %v, want ErrRecordTooLarge", err)
	}
	bloomtest.WantNoTTL(t, s)
	if got := bloomtest.Stored(t, s); got != "some text of theirs" {
		t.Errorf("their text became %q", got)
	}
}
