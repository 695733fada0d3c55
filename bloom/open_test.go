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

func TestOpen(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		for _, cfg := range []bloom.Config{
			small(),
			{Bits: 53, Hashes: 2},
			{Bits: 1, Hashes: 1, Scheme: bloom.SchemeXXH3},
			{Bits: 12345, Hashes: 63, Scheme: bloom.SchemeXXH3, Seed: 1<<64 - 1},
			{Bits: 12345, Hashes: 3, Scheme: bloom.SchemeFNV1a},
		} {
			s.FlushAll()
			add(t, handle(t, c, cfg), "a", true)
			f, err := bloom.Open(ctx, c, key, bloom.OpenSeed(cfg.Seed))
			if err != nil {
				t.Fatalf("%v: %v", cfg, err)
			}
			if want := handle(t, c, cfg).Geometry(); f.Geometry() != want {
				t.Errorf("%v: opened %v, want %v", cfg, f.Geometry(), want)
			}
			exists(t, f, "a", true)
			add(t, f, "a", false)
		}
	})
}

func TestOpenWrongSeed(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg := small()
		cfg.Seed = 1
		add(t, handle(t, s.Client(), cfg), "a", true)
		for _, seed := range []uint64{0, 2, 3} {
			_, err := bloom.Open(t.Context(), s.Client(), key, bloom.OpenSeed(seed))
			var m *bloom.MismatchError
			if !errors.As(err, &m) || !m.OtherSeed || !strings.Contains(err.Error(), "another seed") {
				t.Errorf("seed %d: %v, want a MismatchError about the seed", seed, err)
			}
		}
		do(t, s, "DEL", key)
		add(t, handle(t, s.Client(), small()), "a", true)
		_, err := bloom.Open(t.Context(), s.Client(), key, bloom.OpenSeed(1))
		if err == nil || !strings.Contains(err.Error(), "but no seed: leave the seed out") {
			t.Errorf("a seed for a filter without: %v", err)
		}
	})
}

// Open refuses every string but a plain filter's, and says what it is.
func TestOpenRefuses(t *testing.T) {
	plain := bloom.Geometry{Bits: 1000, Hashes: 7, Scheme: bloom.SchemeXXH3}
	counting := func(scheme bloom.Scheme) bloom.Geometry {
		return bloom.Geometry{Bits: 1000, Hashes: 7, Scheme: scheme}
	}
	mismatch := func(kind bloom.Kind) func(error) bool {
		return func(err error) bool {
			var m *bloom.MismatchError
			return errors.As(err, &m) && m.GotKind == kind && m.WantKind == bloom.KindFilter
		}
	}
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, c := range []struct {
			name, value string
			want        func(error) bool
		}{
			{"empty string", "", func(err error) bool { return errors.Is(err, bloom.ErrNotFound) }},
			{"header alone", headerOf(bloom.KindFilter, plain), refusedAs("24 bytes long")},
			{"shard", headerOf(bloom.KindShard, plain) + "x", mismatch(bloom.KindShard)},
			{"layers", headerOf(bloom.KindLayers, plain) + "x", mismatch(bloom.KindLayers)},
			{"window", headerOf(bloom.KindWindow, plain) + "x", mismatch(bloom.KindWindow)},
			{"4-bit counters", headerOf(bloom.KindFilter, counting(2)) + "x", refusedAs("one-bit cells")},
			{"8-bit counters", headerOf(bloom.KindFilter, counting(3)) + "x", refusedAs("one-bit cells")},
			{"newer version", headerOfVersion(2, bloom.KindFilter, plain), refusedAs("version 2")},
			{"no hashes", headerOf(bloom.KindFilter, bloom.Geometry{Bits: 1060}), refusedAs("k=0")},
			{"text", "some text", refusedAs("")},
			{"bare", stringOf(plain, bloom.LayoutBare, numbered("a", 1000)...), refusedAs("")},
		} {
			do(t, s, "SET", key, c.value)
			f, err := bloom.Open(t.Context(), s.Client(), key)
			if f != nil || !c.want(err) {
				t.Errorf("%s: Open = %v, %v", c.name, f, err)
			}
		}
	})
}

// refusedAs returns a test for ErrNotFilter with these words.
func refusedAs(text string) func(error) bool {
	return func(err error) bool {
		return errors.Is(err, bloom.ErrNotFilter) && strings.Contains(err.Error(), text)
	}
}

// So it does if there is no filter, or one of another type.
func TestOpenFindsNoFilter(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		_, err := bloom.Open(t.Context(), s.Client(), key, bloom.OpenMissingIsEmpty())
		if !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("missing: %v, want ErrNotFound", err)
		}
		table, err := bloom.NewCuckoo(s.Client(), key, bloom.CuckooConfig{Capacity: 100, FPRate: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := table.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := bloom.Open(t.Context(), s.Client(), key); !refusedAs("a Cuckoo: use OpenCuckoo")(err) {
			t.Errorf("cuckoo: %v", err)
		}
		do(t, s, "DEL", key)
		do(t, s, "HSET", key, "a", "b")
		if _, err := bloom.Open(t.Context(), s.Client(), key); !errors.Is(err, bloom.ErrNotFilter) {
			t.Errorf("hash: %v, want ErrNotFilter", err)
		}
	})
}

// Impossible arguments are refused before anything is sent.
func TestOpenRefusesArguments(t *testing.T) {
	s := upstashtest.NewServer(t)
	var bad *bloom.ConfigError
	_, err := bloom.Open(t.Context(), s.Client(), key, bloom.OpenTTL(time.Microsecond))
	if !errors.As(err, &bad) {
		t.Errorf("TTL of a microsecond: %v, want a ConfigError", err)
	}
	if _, err := bloom.Open(t.Context(), nil, key); err == nil {
		t.Error("nil client: no error")
	}
	if _, err := bloom.Open(t.Context(), s.Client(), ""); err == nil {
		t.Error("empty key: no error")
	}
	if n := s.Stats().Requests; n != 0 {
		t.Errorf("%d requests for arguments that cannot be, want 0", n)
	}
}

// A nil option is ignored.
func TestOpenTakesANilOption(t *testing.T) {
	s := upstashtest.NewServer(t)
	add(t, handle(t, s.Client(), small()), "a", true)
	f, err := bloom.Open(t.Context(), s.Client(), key, nil, bloom.OpenMustExist(), nil)
	if err != nil {
		t.Fatal(err)
	}
	exists(t, f, "a", true)
	do(t, s, "DEL", key)
	if _, err := f.Add(t.Context(), "a"); !errors.Is(err, bloom.ErrNotFound) {
		t.Errorf("Add with OpenMustExist: %v, want ErrNotFound", err)
	}
}

func TestOpenOptions(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c, w := watch(t, s)
		add(t, handle(t, c, small()), "a", true)
		f, err := bloom.Open(t.Context(), c, key,
			bloom.OpenTTL(time.Hour), bloom.OpenMissingIsEmpty(), bloom.OpenBatch(2000, 2))
		if err != nil {
			t.Fatal(err)
		}
		wantNoTTL(t, s)
		add(t, f, "b", true)
		wantTTL(t, s, time.Hour)
		w.Bodies = nil
		if _, err := f.AddAll(t.Context(), numbered("c", 100)); err != nil {
			t.Fatal(err)
		}
		if len(w.Bodies) < 5 {
			t.Errorf("%d requests with BatchBytes 2000, want several", len(w.Bodies))
		}
		do(t, s, "DEL", key)
		exists(t, f, "a", false)
	})
}

// If a type does not support an option, it is refused before anything is sent.
func TestOpenRefusesOptions(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := s.Client()
	ttl, empty := bloom.OpenTTL(time.Hour), bloom.OpenMissingIsEmpty()
	size, near := bloom.OpenMaxBytes(1<<20), bloom.OpenReads(bloom.ReadsPrimary)
	for _, tt := range []struct {
		name    string
		open    func(bloom.OpenOption) error
		refused []bloom.OpenOption
	}{
		{"Open", func(o bloom.OpenOption) error {
			_, err := bloom.Open(t.Context(), c, key, o)
			return err
		}, []bloom.OpenOption{size}},
		{"OpenWindow", func(o bloom.OpenOption) error {
			_, err := bloom.OpenWindow(t.Context(), c, key, o)
			return err
		}, []bloom.OpenOption{ttl, empty, size, near}},
		{"OpenCuckoo", func(o bloom.OpenOption) error {
			_, err := bloom.OpenCuckoo(t.Context(), c, key, o)
			return err
		}, []bloom.OpenOption{ttl, size}},
		{"OpenSharded", func(o bloom.OpenOption) error {
			_, err := bloom.OpenSharded(t.Context(), []*upstash.Client{c}, key, o)
			return err
		}, []bloom.OpenOption{empty, size}},
	} {
		for _, o := range tt.refused {
			err := tt.open(o)
			if !errors.Is(err, upstash.ErrArgument) || !strings.Contains(err.Error(), tt.name+" does not take Open") {
				t.Errorf("%s: %v, want ErrArgument that names the option", tt.name, err)
			}
		}
	}
	if n := s.Stats().Requests; n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}
