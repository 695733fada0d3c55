package bloom_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Inspect reads any filter of the format, and the state of its key, without
// Config or seed.
func TestInspect(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, cfg := range []bloom.Config{
			{Capacity: 1000, FPRate: 0.01, TTL: time.Hour},
			{Capacity: 1000, FPRate: 0.01, Seed: 42},
			{Capacity: 1000, FPRate: 0.01, Scheme: bloom.SchemeXXH3},
			{Capacity: 1000, FPRate: 0.01, Scheme: bloom.SchemeFNV1a},
		} {
			s.FlushAll()
			f := handle(t, s.Client(), cfg)
			if _, err := f.AddAll(t.Context(), numbered("item", 500)); err != nil {
				t.Fatal(err)
			}
			want, err := f.Stats(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for name, c := range map[string]*upstash.Client{"full": s.Client(), "read-only": s.ReadOnlyClient()} {
				s.ResetStats()
				got, err := bloom.Inspect(t.Context(), c, key)
				if n := s.Stats(); err != nil || n.Requests != 1 || n.Commands != 4 {
					t.Errorf("%s: %v, %+v, want one request of four commands", name, err, n)
				}
				if got.Geometry.Seed != 0 || got.Seeded != (cfg.Seed != 0) {
					t.Errorf("%s: seed %d, seeded %v", name, got.Geometry.Seed, got.Seeded)
				}
				if c := float64(got.Capacity) / float64(want.Capacity); cfg.Capacity != 0 && (c < 0.99 || c > 1.01) {
					t.Errorf("%s: capacity %d, want about %d", name, got.Capacity, want.Capacity)
				}
				got.Geometry.Seed, got.Capacity, got.FPRate, got.TTL = cfg.Seed, want.Capacity, want.FPRate, want.TTL
				if got != want {
					t.Errorf("%s:\n%+v, want\n%+v", name, got, want)
				}
			}
		}
		s.FlushAll()
		if _, err := bloom.Inspect(t.Context(), s.Client(), key); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("nothing: %v, want ErrNotFound", err)
		}
		do(t, s, "RPUSH", key, "a")
		if _, err := bloom.Inspect(t.Context(), s.Client(), key); !errors.Is(err, bloom.ErrNotFilter) {
			t.Errorf("a list: %v, want ErrNotFilter", err)
		}
	})
}

// InspectAll returns for each key what Inspect does, in one request.
func TestInspectAll(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := s.Client()
		for i, k := range []string{"first", "second"} {
			mustAdd(t, handleAt(t, c, k, bloom.Config{Capacity: 1000, FPRate: 0.01, Seed: uint64(i)}), "a", "b")
		}
		do(t, s, "RPUSH", "list", "a")
		do(t, s, "SET", "text", "some text that is long enough")
		keys := []string{"first", "missing", "", "list", "text", "second", "denied"}
		s.DenyFunc(func(command []string) bool { return slices.Contains(command, "denied") })
		for name, c := range map[string]*upstash.Client{"full": c, "read-only": s.ReadOnlyClient()} {
			s.ResetStats()
			got, err := bloom.InspectAll(t.Context(), c, keys)
			if err != nil || len(got) != len(keys) {
				t.Fatalf("%s: %d of %d, %v", name, len(got), len(keys), err)
			}
			if n := s.Stats(); n.Requests != 1 || n.Commands != 20 {
				t.Errorf("%s: %+v, want one request of 20 commands, without the denied", name, n)
			}
			for i, want := range []error{
				nil, bloom.ErrNotFound, nil, bloom.ErrNotFilter, bloom.ErrNotFilter, nil, upstash.ErrNoPermission,
			} {
				one, oneErr := bloom.Inspect(t.Context(), c, keys[i])
				if got[i].Stats != one || (got[i].Err == nil) != (oneErr == nil) ||
					want != nil && !errors.Is(got[i].Err, want) {
					t.Errorf("%s: key %d: %+v, want what Inspect returns: %+v, %v", name, i, got[i], one, oneErr)
				}
			}
		}
		s.ResetStats()
		got, err := bloom.InspectAll(t.Context(), c, nil)
		if len(got) != 0 || err != nil || s.Stats().Requests != 0 {
			t.Errorf("of no key: %v, %v, %d requests", got, err, s.Stats().Requests)
		}
		s.Inject(upstashtest.Drop(upstashtest.BeforeExec))
		if _, err := bloom.InspectAll(t.Context(), once(s), keys); err == nil {
			t.Error("a request that failed is no error")
		}
	})
}

// The second count is the primary's too, if the token may ask it.
func TestInspectCountsAgainAtThePrimary(t *testing.T) {
	for name, put := range behind(t) {
		s := lagging(t, put)
		f := handle(t, s.Client(), sparse())
		exists(t, f, "a", true) // and its client has the sync token
		want, err := f.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		larger := sparse()
		larger.Bits *= 100
		if _, err := handle(t, s.Client(), larger).Add(t.Context(), "b"); err == nil {
			t.Fatal("an Add of a larger filter is no error")
		}
		c := s.Client(upstash.WithoutSyncToken())
		for _, denied := range []bool{false, true} {
			requests := int64(2)
			if denied { // the nearest region has to do
				s.DenyFunc(func(command []string) bool { return command[0] == "BITFIELD" })
				s.CatchUp()
				requests = 4
			}
			s.ResetStats()
			got, err := bloom.Inspect(t.Context(), c, key)
			if n := s.Stats().Requests; err != nil || got.SetBits != want.SetBits || n != requests {
				t.Errorf("%s, denied %v: Inspect = %d bits, %v in %d requests, want %d bits in %d",
					name, denied, got.SetBits, err, n, want.SetBits, requests)
			}
		}
	}
}
