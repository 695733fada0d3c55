package systemtest

import (
	"errors"
	"reflect"
	"regexp"
	"strconv"
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

	for _, name := range []string{"Exists", "ExistsAll", "ExistsIn"} {
		err := bloomtest.Reads[name](t.Context(), f)
		if !errors.Is(err, upstash.ErrOutOfMemory) || !upstash.SafeToRetry(err) ||
			!strings.Contains(err.Error(), "Config.ReadsNearest or upstash.WithReadOnly") {
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
			!strings.Contains(err.Error(), "Config.ReadsNearest or upstash.WithReadOnly") {
			t.Errorf("%s: %v, want ErrOutOfMemory with the remedy", name, err)
		}
		bloomtest.Exists(t, of(reader), "a", true)
		bloomtest.Exists(t, of(reader), "b", false)
	}
	bloomtest.Exists(t, bloomtest.Handle(t, reader, bloomtest.Expiring(time.Hour)), "a", true)
	cfg := bloomtest.Expiring(time.Hour)
	cfg.ReadsNearest = true
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

// findersOf makes a filter of each of the other types, with the item "a", and
// returns how a client gets a handle.
func findersOf(t *testing.T, s *upstashtest.Server) map[string]func(*upstash.Client) bloomtest.Adder {
	t.Helper()
	const n, p = 100, 0.01
	finders := make(map[string]func(*upstash.Client) bloomtest.Adder)
	for key, cfg := range map[string]any{
		"window":   bloom.WindowConfig{Capacity: n, FPRate: p, Span: time.Hour},
		"scalable": bloom.ScalableConfig{Capacity: n, FPRate: p},
		"sharded":  bloom.ShardedConfig{Capacity: n, FPRate: p, Shards: 2},
		"cuckoo":   bloom.CuckooConfig{Capacity: n, FPRate: p},
	} {
		finders[key] = func(c *upstash.Client) bloomtest.Adder { return bloomtest.Made(t, c, key, cfg) }
		f := finders[key](s.Client())
		bloomtest.Create(t, f, true)
		bloomtest.Add(t, f, "a", true)
	}
	return finders
}

// A full Redis queues no command of a transaction, not even a read. Calls that
// only read the filter's state then do so without a transaction, with the same
// answers.
func TestAFullDatabaseStillTellsItsState(t *testing.T) { eachFillable(t, testFullState) }

func testFullState(t *testing.T, s *upstashtest.Server, fill func()) {
	headed := bloomtest.Handle(t, s.Client(), bloomtest.Expiring(time.Hour))
	bare := bloomtest.HandleAt(t, s.Client(), "bare", bloomtest.SparseOf(bloom.LayoutBare))
	bloomtest.MustAdd(t, headed, bloomtest.Numbered("item", 100)...)
	bloomtest.MustAdd(t, bare, bloomtest.Numbered("item", 100)...)
	read := func() (state [8]any) {
		var errs [7]error
		state[0], errs[0] = headed.Cardinality(t.Context())
		state[1], errs[1] = bare.Cardinality(t.Context())
		state[2], errs[2] = timeless(headed.Stats(t.Context()))
		state[3], errs[3] = timeless(bare.Stats(t.Context()))
		state[4], errs[4] = timeless(bloom.Inspect(t.Context(), s.Client(), bloomtest.Key))
		opened, err := bloom.Open(t.Context(), s.Client(), bloomtest.Key)
		bloomtest.NoError(t, err)
		local, err := headed.Snapshot(t.Context())
		bloomtest.NoError(t, err)
		backup, err := bloom.TakeBackup(t.Context(), s.Client(), bloomtest.Key)
		bloomtest.NoError(t, err)
		var stream strings.Builder
		bloomtest.NoError(t, bloomtest.ErrorOf(backup.WriteTo(&stream)))
		state[5], state[6], state[7] = opened.Geometry(), string(local.Bytes()), stream.String()
		bloomtest.NoError(t, errors.Join(errs[:]...))
		return state
	}
	before := read()
	fill()
	for i, after := range read() {
		if !reflect.DeepEqual(after, before[i]) {
			t.Errorf("read %d in a full database: %q, want %q", i, after, before[i])
		}
	}
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
		if st, err := state(same, after).Stats(t.Context()); err == nil || !reflect.DeepEqual(st, bloom.Stats{}) ||
			errors.Is(err, bloom.ErrRecreated) != (after == other || after == "[0,0]") {
			t.Errorf("%s after %s: %v, %v", after, same, st, err)
		}
	}
}

// An error of the database says what to change in the Config.
func TestLimitsNameTheRemedy(t *testing.T) {
	says := func(err, want error, remedy string) {
		t.Helper()
		if !errors.Is(err, want) || !strings.Contains(err.Error(), remedy) {
			t.Errorf("%v, want %v and %q", err, want, remedy)
		}
	}
	many := bloomtest.Numbered("a", 1000)
	s := upstashtest.NewServer(t, upstashtest.WithMaxRecord(1000))
	f := bloomtest.Handle(t, s.Client(), bloomtest.Small())
	says(bloomtest.ErrorOf(f.Create(t.Context())), upstash.ErrRecordTooLarge, "lower the Capacity")
	says(bloomtest.ErrorOf(f.AddAll(t.Context(), many)), upstash.ErrRecordTooLarge, "lower the Capacity")

	s = upstashtest.NewServer(t, upstashtest.WithMaxRequest(10_000))
	f = bloomtest.Handle(t, s.Client(), bloomtest.Small())
	bloomtest.Add(t, f, "a", true)
	says(bloomtest.ErrorOf(f.AddAll(t.Context(), many)), upstash.ErrRequestTooLarge, "lower upstash.WithMaxRequest")
	says(bloomtest.ErrorOf(f.ExistsAll(t.Context(), many)), upstash.ErrRequestTooLarge, "lower upstash.WithMaxRequest")
}

// Exists recommends MissingIsEmpty. Calls that it does not change must not, nor a
// handle with MustExist, for which it would turn a lost filter into a "no".
func TestNotFoundNamesTheRemedy(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), s.Client()
	strict := bloomtest.Small()
	strict.MustExist = true
	f, lost := bloomtest.Handle(t, c, bloomtest.Small()), bloomtest.Handle(t, c, strict)
	names := func(err error, want bool) {
		t.Helper()
		if !errors.Is(err, bloom.ErrNotFound) || strings.Contains(err.Error(), "MissingIsEmpty") != want {
			t.Errorf("%v, want ErrNotFound, MissingIsEmpty in it: %t", err, want)
		}
	}
	names(bloomtest.ErrorOf(f.Exists(ctx, "a")), true)
	names(bloomtest.ErrorOf(lost.Exists(ctx, "a")), false)
	names(bloomtest.ErrorOf(f.Stats(ctx)), false)
	names(f.Rename(ctx, "other"), false)
	names(bloomtest.ErrorOf(bloom.Open(ctx, c, bloomtest.Key)), false)
	names(bloomtest.ErrorOf(bloom.Inspect(ctx, c, bloomtest.Key)), false)
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

// The largest filter is a string of 512 MiB. The test checks its requests
// without a database.
func TestLargestFilter(t *testing.T) {
	cfg := bloom.Config{Bits: 1<<32 - 192, Hashes: 7, Scheme: bloom.SchemeXXH3}
	h := bloomtest.HeaderWordOf(cfg)

	c, w := bloomtest.CannedWatched(t, `{"result":[`+h+`,0,4503599627370496,0]}`)
	if created, err := bloomtest.Handle(t, c, cfg).Create(t.Context()); err != nil || created {
		t.Fatalf("Create = %v, %v, want false: the birth number is another's", created, err)
	}
	if last := w.Bodies[0]; !strings.HasSuffix(last, `,"4294967295","0","0"]`) {
		t.Errorf("Create sent %s, want the last bit's offset as a string", last)
	}

	zeros := strings.Repeat(",0", 7)
	c, w = bloomtest.CannedWatched(t, `{"result":[null,`+h+`,null`+zeros+`]}`)
	bloomtest.Add(t, bloomtest.Handle(t, c, cfg), "user-123@example.com", true)
	c, r := bloomtest.CannedWatched(t, `{"result":[`+h+zeros+`]}`)
	bloomtest.Exists(t, bloomtest.Handle(t, c, cfg), "user-123@example.com", false)
	g := bloom.Geometry{Bits: cfg.Bits, Hashes: 7, Scheme: bloom.SchemeXXH3}
	want, above := bloomtest.PositionsOf(g, "user-123@example.com"), 0
	for op, body := range map[string]string{"SET": w.Bodies[0], "GET": r.Bodies[0]} {
		offsets := regexp.MustCompile(`"`+op+`","u1","(\d+)"`).FindAllStringSubmatch(body, -1)
		if len(offsets) != len(want) {
			t.Fatalf("%d offsets in %s, want %d", len(offsets), body, len(want))
		}
		for i, o := range offsets {
			if o[1] != strconv.FormatUint(192+want[i], 10) {
				t.Errorf("%s %d at %s, want %d", op, i, o[1], 192+want[i])
			}
			if want[i] >= 1<<31 {
				above++
			}
		}
	}
	if above == 0 {
		t.Error("no offset above 2^31: choose another item")
	}
	for _, body := range append(w.Bodies, r.Bodies...) {
		if number := regexp.MustCompile(`[,\[]-?\d{2,}[,\]]|[eE][+-]\d`).FindString(body); number != "" {
			t.Errorf("%s travels as a JSON number", number)
		}
	}
}

// On plans with a record limit of 100 MB the server refuses it, and nothing is
// left behind.
func TestLargestFilterIsRefused(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := bloomtest.Handle(t, s.Client(), bloom.Config{Bits: 1<<32 - 192, Hashes: 7, Scheme: bloom.SchemeXXH3})
	var server *upstash.Error
	if _, err := f.Create(t.Context()); !errors.As(err, &server) || !upstash.SafeToRetry(err) {
		t.Errorf("Create: %v, want the server's refusal", err)
	}
	bloomtest.WantNoKey(t, s, bloomtest.Key)
}
