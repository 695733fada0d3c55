package bloom_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestRename(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		f := handle(t, c, expiring(time.Hour))
		wantError(t, f.Rename(ctx, "other"), bloom.ErrNotFound)
		add(t, f, "a", true)
		before := stored(t, s)
		do(t, s, "SET", "other", "precious")
		if err := f.Rename(ctx, ""); err == nil {
			t.Error("to an empty key: no error")
		}
		for _, to := range []string{"other", key} {
			if err := f.Rename(ctx, to); !errors.Is(err, bloom.ErrKeyExists) {
				t.Errorf("to %q: %v, want ErrKeyExists", to, err)
			}
		}
		if stored(t, s) != before || do(t, s, "GET", "other") != "precious" {
			t.Error("a refused Rename changed something")
		}
		noError(t, f.Rename(ctx, "free"))
		if got := do(t, s, "GET", "free"); got != before {
			t.Errorf("moved %q, want %q", got, before)
		}
		if ms := do(t, s, "PTTL", "free").(int64); ms <= 0 || ms > time.Hour.Milliseconds() {
			t.Errorf("the TTL became %d ms", ms)
		}
		moved, err := bloom.Open(ctx, c, "free")
		noError(t, err)
		exists(t, moved, "a", true)
		wantError(t, errorOf(f.Exists(ctx, "a")), bloom.ErrNotFound)
		add(t, f, "a", true)
		wantTTL(t, s, time.Hour)
	})
}

// A Rename of unknown outcome is not repeated, because another client may use
// the other key by now.
func TestRenameIsNotRepeated(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, impatient(s), small())
	add(t, f, "a", true)
	s.Inject(upstashtest.Drop(upstashtest.AfterExec))
	s.ResetStats()
	if err := f.Rename(t.Context(), "free"); err == nil || upstash.SafeToRetry(err) {
		t.Errorf("Rename: %v, want an error that is not safe to retry", err)
	}
	wantRequests(t, s, 1)
}

// If the first attempt of a Persist lost its answer, the second one finds no
// TTL. Nobody knows whether there was one.
func TestPersistAfterALostAnswer(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, impatient(s), expiring(time.Hour))
		add(t, f, "a", true)
		s.Inject(upstashtest.Drop(upstashtest.AfterExec))
		if had, err := f.Persist(t.Context()); had || !errors.Is(err, upstash.ErrUncertain) || upstash.SafeToRetry(err) {
			t.Errorf("Persist = %v, %v, want ErrUncertain", had, err)
		}
		wantNoTTL(t, s)
		if had, err := f.Persist(t.Context()); had || err != nil {
			t.Errorf("Persist again = %v, %v, want false", had, err)
		}
	})
}

func TestDelete(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, impatient(s), small())
		if deleted, err := f.Delete(t.Context()); err != nil || deleted {
			t.Errorf("missing: Delete = %v, %v, want false", deleted, err)
		}
		add(t, f, "a", true)
		if deleted, err := f.Delete(t.Context()); err != nil || !deleted {
			t.Errorf("Delete = %v, %v, want true", deleted, err)
		}
		wantError(t, errorOf(f.Exists(t.Context(), "a")), bloom.ErrNotFound)
		add(t, f, "a", true)
		s.Inject(upstashtest.Drop(upstashtest.AfterExec))
		if deleted, err := f.Delete(t.Context()); err == nil || deleted || upstash.SafeToRetry(err) {
			t.Errorf("no answer: Delete = %v, %v, want an error that is not safe to retry", deleted, err)
		}
	})
}

func TestExpireAndPersist(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, f := t.Context(), handle(t, s.Client(), small())
		want := func(name string, want bool) func(bool, error) {
			return func(got bool, err error) {
				t.Helper()
				if err != nil || got != want {
					t.Errorf("%s = %v, %v, want %v", name, got, err, want)
				}
			}
		}
		want("Expire, missing", false)(f.Expire(ctx, time.Hour))
		want("Persist, missing", false)(f.Persist(ctx))
		add(t, f, "a", true)
		want("Persist, no TTL", false)(f.Persist(ctx))
		want("Expire", true)(f.Expire(ctx, time.Hour))
		wantTTL(t, s, time.Hour)
		want("Expire, again", true)(f.Expire(ctx, 90*time.Second+500*time.Millisecond))
		wantTTL(t, s, 90*time.Second+500*time.Millisecond)
		want("Persist", true)(f.Persist(ctx))
		wantNoTTL(t, s)
		wantError(t, errorOf(f.Expire(ctx, time.Microsecond)), upstash.ErrArgument)
		exists(t, f, "a", true)
	})
}

// Items are hashed, not sent, so they can be any bytes.
func TestAnyBytesAreAnItem(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), sparse())
		for _, item := range []string{"", "\x00", "\xff\xfe", "\"\\\n", "日本", string(make([]byte, 1<<20))} {
			add(t, f, item, true)
			add(t, f, item, false)
			exists(t, f, item, true)
		}
	})
}

func TestCreate(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, bits := range []uint64{53, 7 * 53, 8 * 53, 9 * 53, 53 * 20_000} {
			s.FlushAll()
			f := handle(t, s.Client(), bloom.Config{Bits: bits, Hashes: 4})
			if created, err := f.Create(t.Context()); err != nil || !created {
				t.Fatalf("%d bits: Create = %v, %v, want true", bits, created, err)
			}
			if n := do(t, s, "STRLEN", key).(int64); uint64(n) != f.Geometry().Bytes(bloom.LayoutHeaded) {
				t.Errorf("%d bits: %d bytes, want %d", bits, n, f.Geometry().Bytes(bloom.LayoutHeaded))
			}
			add(t, f, "a", true)
			before := stored(t, s)
			if created, err := f.Create(t.Context()); err != nil || created {
				t.Errorf("%d bits: the second Create = %v, %v, want false", bits, created, err)
			}
			if stored(t, s) != before {
				t.Errorf("%d bits: the second Create changed the filter", bits)
			}
		}
	})
}

// If the record is too large for the plan, Create writes nothing.
func TestCreateBeyondTheRecordLimit(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithMaxRecord(1000))
	cfg := expiring(time.Hour) // 1,369 bytes
	_, err := handle(t, s.Client(), cfg).Create(t.Context())
	var server *upstash.Error
	if !errors.As(err, &server) || !upstash.SafeToRetry(err) ||
		!strings.Contains(server.Message, "max single record size") || !strings.Contains(err.Error(), "NewSharded") {
		t.Errorf("Create: %v, want what to do, the server's error about the record's size, and safe to retry", err)
	}
	wantNoKey(t, s, key)
}

func TestCreateAfterALostAnswer(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, when := range []upstashtest.When{upstashtest.BeforeExec, upstashtest.AfterExec} {
			s.FlushAll()
			f := handle(t, impatient(s), expiring(time.Hour))
			s.Inject(upstashtest.Drop(when))
			if created, err := f.Create(t.Context()); !created || err != nil {
				t.Errorf("%v: Create = %v, %v, want true", when, created, err)
			}
			if n := do(t, s, "STRLEN", key).(int64); uint64(n) != f.Geometry().Bytes(bloom.LayoutHeaded) {
				t.Errorf("%v: the string has %d bytes, want that of %v", when, n, f.Geometry())
			}
			wantTTL(t, s, time.Hour)
		}
	})
}

// A Create whose answer was lost asks which birth number is at the key. If its
// own filter is gone and another client made one, Create did not create that
// one. An Add does not ask. Its item is new if a bit was 0; otherwise it is
// uncertain.
func TestWhoseCreationItWas(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		other := handle(t, s.Client(), sparse())
		for name, between := range map[string]func(){
			"nothing happens":          func() {},
			"it is deleted":            func() { do(t, s, "DEL", key) },
			"another makes it again":   func() { do(t, s, "DEL", key); _, _ = other.Create(t.Context()) },
			"another adds to it":       func() { _, _ = other.Add(t.Context(), "b") },
			"another adds the same":    func() { _, _ = other.Add(t.Context(), "a") },
			"another makes it with it": func() { do(t, s, "DEL", key); _, _ = other.Add(t.Context(), "a") },
		} {
			own := name != "another makes it again" && name != "another makes it with it"
			isNew := name == "another makes it again" || name == "it is deleted"
			s.FlushAll()
			c := afterCommand(s, "EVAL", 1, between)
			s.Inject(upstashtest.Drop(upstashtest.AfterExec))
			if created, err := handle(t, c, sparse()).Create(t.Context()); err != nil || created != own {
				t.Errorf("%s: Create = %v, %v, want %v", name, created, err, own)
			}

			s.FlushAll()
			c = afterCommand(s, "BITFIELD", 1, between)
			s.Inject(upstashtest.Drop(upstashtest.AfterExec))
			added, err := handle(t, c, sparse()).Add(t.Context(), "a")
			if !isNew {
				if added || !errors.Is(err, bloom.ErrUncertain) {
					t.Errorf("%s: Add = %v, %v, want ErrUncertain", name, added, err)
				}
			} else if err != nil || !added {
				t.Errorf("%s: Add = %v, %v, want true", name, added, err)
			}

			s.FlushAll()
			c = afterCommand(s, "BITFIELD", 1, between)
			s.Inject(upstashtest.Drop(upstashtest.AfterExec))
			got, err := handle(t, c, sparse()).AddAll(t.Context(), []string{"a", "a"})
			if !isNew {
				if count(got) != 0 || !errors.Is(err, bloom.ErrUncertain) {
					t.Errorf("%s: AddAll = %v, %v, want ErrUncertain", name, got, err)
				}
			} else if err != nil || !got[0] || got[1] {
				t.Errorf("%s: AddAll = %v, %v, want the first new", name, got, err)
			}
		}
	})
}

// After Create nothing is left to do: header, birth number, length, TTL and bit
// 127 are there at once, and no later Add settles.
func TestCreateDoesAllAtOnce(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, ttl := range []time.Duration{0, time.Hour} {
			s.FlushAll()
			f := handle(t, s.Client(), expiring(ttl))
			create(t, f, true)
			if got := uint64(len(stored(t, s))); got != f.Geometry().Bytes(bloom.LayoutHeaded) {
				t.Errorf("%d bytes, want %d", got, f.Geometry().Bytes(bloom.LayoutHeaded))
			}
			if do(t, s, "GETBIT", key, "64") != int64(1) {
				t.Error("no birth number")
			}
			if settled(t, s) != (ttl != 0) {
				t.Errorf("TTL %v: settled is %v, want %v", ttl, settled(t, s), ttl != 0)
			}
			if ttl == 0 {
				wantNoTTL(t, s)
				continue
			}
			wantTTL(t, s, ttl)
			s.ResetStats()
			add(t, f, "a", true)
			wantRequests(t, s, 1)
		}
	})
}

// If Redis is out of memory at Create's first write, Create leaves nothing
// behind.
func TestCreateWithoutMemory(t *testing.T) {
	addr := testenv.Redis(t)
	s := upstashtest.NewServer(t, upstashtest.WithRedis(addr))
	fillUp(t, addr)
	_, err := handle(t, s.Client(), expiring(time.Hour)).Create(t.Context())
	if !errors.Is(err, upstash.ErrOutOfMemory) || !upstash.SafeToRetry(err) {
		t.Errorf("Create: %v, want ErrOutOfMemory, safe to retry", err)
	}
	wantNoKey(t, s, key)
}

// In TestOneOfManyWins, clients with different configurations create the same
// key at once. Each has its own connection to the database.
func TestOneOfManyWins(t *testing.T) {
	const clients, rounds = 8, 60
	calls := map[string]func(t *testing.T, f *bloom.Filter) (bool, error){
		"Create": func(t *testing.T, f *bloom.Filter) (bool, error) { return f.Create(t.Context()) },
		"Add":    func(t *testing.T, f *bloom.Filter) (bool, error) { return f.Add(t.Context(), "a") },
	}
	race := func(t *testing.T, shared []*upstash.Client) {
		for name, call := range calls {
			for round := range rounds {
				k := fmt.Sprintf("%s:%d", name, round)
				filters := make([]*bloom.Filter, clients)
				for i := range filters {
					cfg := bloom.Config{Bits: uint64(53 * (20 + i)), Hashes: 6}
					if i%2 == 1 { // same bits as the one before, another seed
						cfg = bloom.Config{Bits: uint64(53 * (20 + i - 1)), Hashes: 6, Seed: 1, TTL: time.Hour}
					}
					f, err := bloom.New(shared[i%len(shared)], k, cfg)
					noError(t, err)
					filters[i] = f
				}
				won, errs := make([]bool, clients), make([]error, clients)
				var running sync.WaitGroup
				start := make(chan struct{})
				for i, f := range filters {
					running.Go(func() {
						<-start
						won[i], errs[i] = call(t, f)
					})
				}
				close(start)
				running.Wait()

				if n := count(won); n != 1 {
					t.Fatalf("%s: %d clients of %d won, want 1: %v", name, n, clients, errs)
				}
				for i := range filters {
					var m *bloom.MismatchError
					if won[i] && errs[i] != nil || !won[i] && !errors.As(errs[i], &m) {
						t.Errorf("%s: client %d: won %v, %v; want a mismatch of the losers alone",
							name, i, won[i], errs[i])
					}
					if _, err := filters[i].Stats(t.Context()); won[i] != (err == nil) {
						t.Errorf("%s: client %d: won %v, but then Stats: %v", name, i, won[i], err)
					}
				}
			}
		}
	}
	t.Run("embedded", func(t *testing.T) { race(t, []*upstash.Client{upstashtest.NewServer(t).Client()}) })
	t.Run("redis", func(t *testing.T) {
		addr := testenv.Redis(t)
		shared := make([]*upstash.Client, clients)
		for i := range shared {
			shared[i] = upstashtest.NewServer(t, upstashtest.WithRedis(addr)).Client()
		}
		race(t, shared)
	})
}

// The same race among clients that agree. Exactly one makes the filter, and
// none gets an error.
func TestOneOfManyCreates(t *testing.T) {
	addr := testenv.Redis(t)
	const clients, rounds = 8, 40
	filters, shared := make([]*bloom.Filter, clients), make([]*upstash.Client, clients)
	for i := range shared {
		shared[i] = upstashtest.NewServer(t, upstashtest.WithRedis(addr)).Client()
	}
	for round := range rounds {
		for i := range filters {
			f, err := bloom.New(shared[i], fmt.Sprint("key:", round), expiring(time.Hour))
			noError(t, err)
			filters[i] = f
		}
		won, errs := make([]bool, clients), make([]error, clients)
		var running sync.WaitGroup
		for i, f := range filters {
			running.Go(func() { won[i], errs[i] = f.Create(t.Context()) })
		}
		running.Wait()
		if err := errors.Join(errs...); count(won) != 1 || err != nil {
			t.Fatalf("%d clients of %d made it, want 1: %v", count(won), clients, err)
		}
	}
}

func errorOf[T any](v T, err error) error { return bloomtest.ErrorOf(v, err) }

// Short names for the commonest words of these tests.

const key = bloomtest.Key

var (
	add                = bloomtest.Add
	adds               = bloomtest.Adds
	afterCommand       = bloomtest.AfterCommand
	birthOf            = bloomtest.BirthOf
	calls              = bloomtest.Calls
	canned             = bloomtest.Canned
	count              = bloomtest.Count
	create             = bloomtest.Create
	database           = bloomtest.Database
	do                 = bloomtest.Do
	during             = bloomtest.During
	eachBackend        = bloomtest.EachBackend
	exists             = bloomtest.Exists
	expiring           = bloomtest.Expiring
	fillUp             = bloomtest.FillUp
	handle             = bloomtest.Handle
	handleAt           = bloomtest.HandleAt
	headerOf           = bloomtest.HeaderOf
	headerOfVersion    = bloomtest.HeaderOfVersion
	headerWordOf       = bloomtest.HeaderWordOf
	impatient          = bloomtest.Impatient
	inParts            = bloomtest.InParts
	isRefusal          = bloomtest.IsRefusal
	isSettled          = bloomtest.IsSettled
	localOf            = bloomtest.LocalOf
	mail               = bloomtest.Mail
	mails              = bloomtest.Mails
	middling           = bloomtest.Middling
	mustAdd            = bloomtest.MustAdd
	noError            = bloomtest.NoError
	numbered           = bloomtest.Numbered
	once               = bloomtest.Once
	operations         = bloomtest.Operations
	orders             = bloomtest.Orders
	ownWords           = bloomtest.OwnWords
	positionsOf        = bloomtest.PositionsOf
	pttl               = bloomtest.PTTL
	reads              = bloomtest.Reads
	settled            = bloomtest.Settled
	small              = bloomtest.Small
	sparse             = bloomtest.Sparse
	sparseOf           = bloomtest.SparseOf
	spoilt             = bloomtest.Spoilt
	stored             = bloomtest.Stored
	storedAt           = bloomtest.StoredAt
	strikeAt           = bloomtest.StrikeAt
	strikeEach         = bloomtest.StrikeEach
	stringOf           = bloomtest.StringOf
	wantError          = bloomtest.WantError
	wantMails          = bloomtest.WantMails
	wantNoKey          = bloomtest.WantNoKey
	wantMismatch       = bloomtest.WantMismatch
	wantNoScratch      = bloomtest.WantNoScratch
	wantNoTTL          = bloomtest.WantNoTTL
	wantRequests       = bloomtest.WantRequests
	wantScratchExpires = bloomtest.WantScratchExpires
	wantTTL            = bloomtest.WantTTL
	watch              = bloomtest.Watch
	withoutOwn         = bloomtest.WithoutOwn
)
