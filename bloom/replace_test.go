package bloom_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// After Replace the filter holds exactly what the Local holds. The TTL stays,
// the birth number changes.
func TestReplaceIsTheLocal(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		cfg.TTL = time.Hour
		f := handle(t, s.Client(), cfg)
		add(t, f, "old", true)
		if _, err := f.Expire(t.Context(), 20*time.Minute); err != nil {
			t.Fatal(err)
		}
		before := stored(t, s)
		l := localOf(f, 0, 1000)
		if err := f.Replace(t.Context(), l, parts); err != nil {
			t.Fatal(err)
		}
		after := stored(t, s)
		if withoutOwn(t, after) != withoutOwn(t, string(l.Bytes())) {
			t.Error("the stored string is not the Local's")
		}
		if birthOf(t, after) == birthOf(t, before) || !isSettled(t, after) {
			t.Errorf("the second word was %x and is %x", ownWords(t, before), ownWords(t, after))
		}
		wantTTL(t, s, 20*time.Minute)
		wantNoScratch(t, s, 1)

		if _, err := f.Persist(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := f.Replace(t.Context(), l, parts); err != nil {
			t.Fatal(err)
		}
		wantNoTTL(t, s)

		do(t, s, "DEL", key)
		if err := f.Replace(t.Context(), l, parts); err != nil {
			t.Fatal(err)
		}
		wantTTL(t, s, time.Hour)
		if !isSettled(t, stored(t, s)) {
			t.Error("a filter that Replace made is not settled")
		}
	})
}

// If replies are lost, even the last one, the birth number shows that Replace
// ran. A second attempt does not remove items added after the first.
func TestReplaceRunsOnce(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		for _, lost := range []int{1, 2} {
			do(t, s, "FLUSHALL")
			writer := handle(t, s.Client(), cfg)
			f := handle(t, impatient(s, upstash.WithRetry(1)), cfg)
			loseReplies(s, "EVAL", lost)
			added := afterCommand(s, "EVAL", 1, func() {
				if _, err := writer.Add(t.Context(), "between"); err != nil {
					t.Error(err)
				}
			})
			if lost == 1 {
				f = handle(t, added, cfg)
			}
			if err := f.Replace(t.Context(), localOf(f, 0, 100), parts); err != nil {
				t.Fatalf("%d replies lost: %v", lost, err)
			}
			if lost == 1 {
				exists(t, writer, "between", true)
			}
			wantMails(t, f, 0, 100)
		}
	})
}

func TestReplaceAnyHeaderOfOurs(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		add(t, handle(t, s.Client(), small()), "old", true)
		f := handle(t, s.Client(), cfg)
		var mismatch *bloom.MismatchError
		if _, err := f.Add(t.Context(), "x"); !errors.As(err, &mismatch) {
			t.Fatalf("%v, want a MismatchError", err)
		}
		if err := f.Replace(t.Context(), localOf(f, 0, 100), parts); err != nil {
			t.Fatal(err)
		}
		wantMails(t, f, 0, 100)
		add(t, f, "y", true)
	})
}

func TestReplaceLeavesOtherDataAlone(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg, parts := inParts(middling())
		f := handle(t, s.Client(), cfg)
		shard := "\xa8\x08" + strings.Repeat("\x00", 30) // kind 1
		own := string(bloom.NewLocal(f.Geometry()).Bytes())
		own = own[:7] + "\x01" + own[8:]                                        // its own header, and bit 63
		tail := "\x88\x08\x00\x00\x00\x00\x1f\xff" + strings.Repeat("\x00", 30) // bits 53 to 63 are set
		for _, data := range []string{
			"plain text that is long enough", strings.Repeat("\x00", 40), shard, tail, own,
			"\x88" + strings.Repeat("\x00", 31),                      // k and m are 0
			"\x8b\x00\x00\x00\x07\x00\x00\x00two numbers and a text", // little-endian
			spoilt(117),
		} {
			do(t, s, "SET", key, data)
			err := f.Replace(t.Context(), localOf(f, 0, 9), parts)
			var mismatch *bloom.MismatchError
			if !errors.Is(err, bloom.ErrNotFilter) && !errors.As(err, &mismatch) {
				t.Errorf("%.40q: %v, want ErrNotFilter or a MismatchError", data, err)
			}
			if stored(t, s) != data {
				t.Errorf("%.40q has become %.40q", data, stored(t, s))
			}
		}
		do(t, s, "DEL", key)
		names := cuckoo(t, s.Client(), bloom.CuckooConfig{Capacity: 1000, FPRate: 0.01})
		if _, err := names.Add(t.Context(), "ann"); err != nil {
			t.Fatal(err)
		}
		var table *bloom.MismatchError
		err := f.Replace(t.Context(), localOf(f, 0, 9), parts)
		if !errors.As(err, &table) || !upstash.SafeToRetry(err) {
			t.Errorf("a Cuckoo: %v, want a MismatchError that is safe to retry", err)
		}
		if found, err := names.Exists(t.Context(), "ann"); !found || err != nil {
			t.Errorf("after a Replace at its key the Cuckoo says %t, %v", found, err)
		}
		var config *bloom.ConfigError
		bare := handle(t, s.Client(), bloom.Config{
			Bits: 1000, Hashes: 7, Scheme: bloom.SchemeFNV1a, Layout: bloom.LayoutBare,
		})
		err = bare.Replace(t.Context(), localOf(bare, 0, 9))
		if !errors.As(err, &config) || !upstash.SafeToRetry(err) {
			t.Errorf("%v, want a ConfigError that is safe to retry", err)
		}
		var mismatch *bloom.MismatchError
		other := localOf(handle(t, s.Client(), small()), 0, 9)
		if err := f.Replace(t.Context(), other); !errors.As(err, &mismatch) {
			t.Errorf("%v, want a MismatchError", err)
		}
		if err := f.Replace(t.Context(), nil); err == nil {
			t.Error("a nil Local is accepted")
		}
	})
}

// What a Local, a client or a seed makes impossible is refused without a request.
func TestMovesRefuse(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := s.Client()
	f := handle(t, c, small())
	seeded := small()
	seeded.Seed = 7
	withSeed := handle(t, c, seeded)
	larger := small()
	larger.Capacity *= 2
	l := bloom.NewLocal(f.Geometry())
	s.ResetStats()
	for says, tt := range map[string]struct {
		f *bloom.Filter
		l *bloom.Local
	}{
		"the Local is nil":                {f, nil},
		"both must be of the same Config": {f, bloom.NewLocal(handle(t, c, larger).Geometry())},
		"another seed":                    {f, bloom.NewLocal(withSeed.Geometry())},
		"but no seed: leave the seed out": {withSeed, l},
		"the client is read-only":         {handle(t, s.ReadOnlyClient(), small()), l},
	} {
		_, merging := tt.f.Merge(t.Context(), tt.l)
		for name, err := range map[string]error{"Merge": merging, "Replace": tt.f.Replace(t.Context(), tt.l)} {
			if err == nil || !strings.Contains(err.Error(), says) || !upstash.SafeToRetry(err) {
				t.Errorf("%s: %v, want an error that says %q and is safe to retry", name, err, says)
			}
		}
	}
	if n := s.Stats().Requests; n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}

// The steps in Replace's doc move a filter to another size without downtime.
func TestMoveWithoutDowntime(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), s.Client()
	v1 := handleAt(t, c, "users", small())
	if _, err := v1.Load(ctx, mails(0, 1000)); err != nil {
		t.Fatal(err)
	}
	v2 := handleAt(t, c, "users:v2", middling())
	if _, err := v2.Create(ctx); err != nil {
		t.Fatal(err)
	}
	for i := 1000; i < 1100; i++ { // all writers add to both
		if _, err := bloom.AddIn(ctx, mail(i), v1, v2); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := v2.Load(ctx, mails(0, 1000)); err != nil { // from the source of truth
		t.Fatal(err)
	}
	wantMails(t, v2, 0, 1100) // readers turn to v2
	for i := 1100; i < 1200; i++ {
		add(t, v2, mail(i), true) // writers drop v1
	}
	if deleted, err := v1.Delete(ctx); err != nil || !deleted {
		t.Fatalf("Delete of the old filter = %v, %v", deleted, err)
	}
	wantMails(t, v2, 0, 1200)
}

// A part of unknown outcome is at a key of its own. The filter has not changed.
func TestLoadThatLosesAPartIsSafeToRetry(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, once(s), middling())
	s.Inject(upstashtest.Drop(upstashtest.AfterExec))
	if _, err := f.Load(t.Context(), mails(0, 9)); err == nil || !upstash.SafeToRetry(err) {
		t.Errorf("Load: %v, want an error that is safe to retry", err)
	}
	s.Inject(upstashtest.Drop(upstashtest.AfterExec))
	if err := f.Replace(t.Context(), localOf(f, 0, 9)); err == nil || !upstash.SafeToRetry(err) {
		t.Errorf("Replace: %v, want an error that is safe to retry", err)
	}
}
