package bloom_test

import (
	"errors"
	"fmt"
	"slices"
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

// wantYes checks the answer of a call.
func wantYes(t *testing.T, name string, want bool) func(bool, error) {
	return func(got bool, err error) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%s = %v, %v, want %v", name, got, err, want)
		}
	}
}

func TestExpireAndPersist(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, f := t.Context(), handle(t, s.Client(), small())
		wantYes(t, "Expire of none", false)(f.Expire(ctx, time.Hour))
		wantYes(t, "Persist of none", false)(f.Persist(ctx))
		add(t, f, "a", true)
		wantYes(t, "Persist, no TTL", false)(f.Persist(ctx))
		wantYes(t, "Expire", true)(f.Expire(ctx, time.Hour))
		wantTTL(t, s, time.Hour)
		wantYes(t, "Expire again", true)(f.Expire(ctx, 90*time.Second+500*time.Millisecond))
		wantTTL(t, s, 90*time.Second+500*time.Millisecond)
		wantYes(t, "Persist", true)(f.Persist(ctx))
		wantNoTTL(t, s)
		wantError(t, errorOf(f.Expire(ctx, time.Microsecond)), upstash.ErrArgument)
		exists(t, f, "a", true)
	})
}

// Create makes a string of the whole length, and leaves nothing to do: header,
// birth number, TTL and bit 127 are there at once, and no later Add settles.
func TestCreate(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, bits := range []uint64{53, 7 * 53, 8 * 53, 9 * 53, 53 * 20_000} {
			for _, ttl := range []time.Duration{0, time.Hour} {
				s.FlushAll()
				f := handle(t, s.Client(), bloom.Config{Bits: bits, Hashes: 4, TTL: ttl})
				create(t, f, true)
				if got, want := uint64(len(stored(t, s))), f.Geometry().Bytes(bloom.LayoutHeaded); got != want {
					t.Errorf("%d bits: %d bytes, want %d", bits, got, want)
				}
				if do(t, s, "GETBIT", key, "64") != int64(1) || settled(t, s) != (ttl != 0) {
					t.Errorf("%d bits: no birth number, or settled is not %t", bits, ttl != 0)
				}
				if ttl == 0 {
					wantNoTTL(t, s)
				} else {
					wantTTL(t, s, ttl)
				}
				s.ResetStats()
				add(t, f, "a", true)
				wantRequests(t, s, 1)
				before := stored(t, s)
				create(t, f, false)
				if stored(t, s) != before {
					t.Errorf("%d bits: the second Create changed the filter", bits)
				}
			}
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

// If clients with different configurations create the same key at once, one wins,
// and the others are told.
func TestOneOfManyWins(t *testing.T) {
	const rounds, each = 30, 8
	embedded, redis := slices.Repeat([]*upstash.Client{upstashtest.NewServer(t).Client()}, each), []*upstash.Client{}
	for addr := testenv.Redis(t); len(redis) < each; { // with connections of their own
		redis = append(redis, upstashtest.NewServer(t, upstashtest.WithRedis(addr)).Client())
	}
	for _, clients := range [][]*upstash.Client{embedded, redis} {
		for round := range 2 * rounds {
			filters, won, errs := make([]*bloom.Filter, each), make([]bool, each), make([]error, each)
			var running sync.WaitGroup
			for i, c := range clients {
				cfg := bloom.Config{Bits: uint64(53 * (20 + i)), Hashes: 6}
				if i%2 == 1 { // same bits as the one before, another seed
					cfg = bloom.Config{Bits: uint64(53 * (20 + i - 1)), Hashes: 6, Seed: 1, TTL: time.Hour}
				}
				f := handleAt(t, c, fmt.Sprint(round), cfg)
				filters[i] = f
				running.Go(func() {
					if round < rounds {
						won[i], errs[i] = f.Create(t.Context())
					} else {
						won[i], errs[i] = f.Add(t.Context(), "a")
					}
				})
			}
			running.Wait()
			if n := count(won); n != 1 {
				t.Fatalf("%d clients of %d won, want 1: %v", n, len(won), errs)
			}
			for i, f := range filters {
				_, mismatch := errors.AsType[*bloom.MismatchError](errs[i])
				if mismatch == won[i] || won[i] && errs[i] != nil {
					t.Errorf("client %d: won %v, %v; want a mismatch of the losers alone", i, won[i], errs[i])
				}
				if _, err := f.Stats(t.Context()); won[i] != (err == nil) {
					t.Errorf("client %d: won %v, but then Stats: %v", i, won[i], err)
				}
			}
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
	impatient          = bloomtest.Impatient
	inParts            = bloomtest.InParts
	partsOf            = bloomtest.Parts
	isRefusal          = bloomtest.IsRefusal
	isSettled          = bloomtest.IsSettled
	localOf            = bloomtest.LocalOf
	made               = bloomtest.Made
	mail               = bloomtest.Mail
	mails              = bloomtest.Mails
	middling           = bloomtest.Middling
	mustAdd            = bloomtest.MustAdd
	newMirror          = bloomtest.Mirror
	newOf              = bloomtest.NewOf
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

func batched[F any](f F, bytes, parallel int) F { return bloomtest.Batched(f, bytes, parallel) }
