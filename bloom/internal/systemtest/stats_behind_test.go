package systemtest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// setCells counts the set cells of a stored filter, bit by bit.
func setCells(data string, g bloom.Geometry) (n uint64) {
	first := 8 * (g.Bytes(bloom.LayoutHeaded) - g.Bytes(bloom.LayoutBare))
	for p := first; p < first+g.Bits && p/8 < uint64(len(data)); p++ {
		n += uint64(data[p/8] >> (7 - p%8) & 1)
	}
	return n
}

// A refused batch of a larger filter leaves bits behind the last cell. They
// must not be counted.
func TestNothingIsCountedBehindTheLastCell(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		f, other := bloomtest.Handle(t, c, bloomtest.Small()), bloomtest.HandleAt(t, c, "other", bloomtest.Small())
		for _, f := range []*bloom.Filter{f, other} {
			if _, err := f.AddAll(ctx, bloomtest.Numbered("item", 500)); err != nil {
				t.Fatal(err)
			}
		}
		larger := bloomtest.Small()
		larger.Capacity = 100_000
		var mismatch *bloom.MismatchError
		if _, err := bloomtest.Handle(t, c, larger).AddAll(ctx, bloomtest.Numbered("wrong", 3000)); !errors.As(err, &mismatch) {
			t.Fatalf("%v, want a MismatchError", err)
		}
		want := setCells(bloomtest.Stored(t, s), f.Geometry())
		if want > 5000 {
			t.Fatalf("%d of the filter's own cells are set", want)
		}
		items := uint64(f.Geometry().EstimateItems(want) + 0.5)

		check := func(name string, st bloom.Stats, err error) {
			t.Helper()
			if err != nil || st.SetBits != want || st.Items != items || st.Saturated || st.OverCapacity() {
				t.Errorf("%s: %d set bits, %d items, saturated %t, %v; want %d, %d",
					name, st.SetBits, st.Items, st.Saturated, err, want, items)
			}
		}
		st, err := f.Stats(ctx)
		check("Stats", st, err)
		s.ResetStats()
		st, err = bloom.Inspect(ctx, c, bloomtest.Key)
		check("Inspect", st, err)
		if n := s.Stats(); n.Requests != 2 || n.Commands != 6 {
			t.Errorf("Inspect: %d requests, %d commands, want 2, 6", n.Requests, n.Commands)
		}
		s.ResetStats()
		all, err := bloom.InspectAll(ctx, c, []string{"other", bloomtest.Key, "missing"})
		if err != nil || all[0].Err != nil || !errors.Is(all[2].Err, bloom.ErrNotFound) {
			t.Fatalf("InspectAll: %v, %+v, want a filter and ErrNotFound", err, all)
		}
		check("InspectAll", all[1].Stats, all[1].Err)
		if n := s.Stats(); n.Requests != 2 || n.Commands != 14 {
			t.Errorf("InspectAll: %d requests, %d commands, want 2, 14", n.Requests, n.Commands)
		}
		if n, err := f.Cardinality(ctx); err != nil || n != items {
			t.Errorf("Cardinality: %d, %v, want %d", n, err, items)
		}
		// The filter holds the other's items, and a few false ones of the
		// refused batch.
		if n, err := bloom.EstimateIntersection(ctx, f, other); err != nil || n < 490 || n > 510 {
			t.Errorf("EstimateIntersection: %d, %v, want about 500", n, err)
		}
	})
}

// The bits that fill up the last byte are not cells. They never make a filter
// saturated.
func TestTheLastByteMakesNoFilterSaturated(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		f := bloomtest.Handle(t, c, bloom.Config{Bits: 53, Hashes: 2})
		if _, err := f.Create(ctx); err != nil {
			t.Fatal(err)
		}
		const first = 192 // bit
		bloomtest.Do(t, s, "BITFIELD", bloomtest.Key, "SET", "u50", fmt.Sprint(first), fmt.Sprint(uint64(1)<<50-1))
		bloomtest.Do(t, s, "BITFIELD", bloomtest.Key, "SET", "u3", fmt.Sprint(first+53), "7")
		check := func(what string, st bloom.Stats, err error) {
			t.Helper()
			if err != nil || st.Saturated || st.SetBits != 50 {
				t.Errorf("%s: %d cells, saturated %v, %v, want 50", what, st.SetBits, st.Saturated, err)
			}
		}
		st, err := f.Stats(ctx)
		check("Stats", st, err)
		st, err = bloom.Inspect(ctx, c, bloomtest.Key)
		check("Inspect", st, err)
		all, err := bloom.InspectAll(ctx, c, []string{bloomtest.Key})
		if err != nil {
			t.Fatal(err)
		}
		check("InspectAll", all[0].Stats, all[0].Err)
	})
}

// A Bare filter counts only its own cells in a longer string.
func TestNothingIsCountedBehindABareFilter(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		bloomtest.Do(t, s, "SET", bloomtest.Key, "\x0f\xff\xff")
		f := bloomtest.Handle(t, s.Client(), bloom.Config{
			Bits: 10, Hashes: 2, Scheme: bloom.SchemeXXH3, Layout: bloom.LayoutBare,
		})
		if st, err := f.Stats(t.Context()); err != nil || st.SetBits != 6 || st.Saturated {
			t.Errorf("%d set bits, saturated %t, %v, want 6", st.SetBits, st.Saturated, err)
		}
	})
}

// If the filter is replaced between the two requests of Inspect, the counts are
// of two filters.
func TestInspectBetweenTwoFilters(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx := t.Context()
	f := bloomtest.Handle(t, s.Client(), bloomtest.Small())
	bloomtest.Add(t, f, "x", true)
	bloomtest.Do(t, s, "SETBIT", bloomtest.Key, "100000", "1")
	c := bloomtest.AfterCommand(s, "MULTI-EXEC", 1, func() {
		bloomtest.Do(t, s, "DEL", bloomtest.Key)
		bloomtest.Add(t, f, "x", true)
	})
	if _, err := bloom.Inspect(ctx, c, bloomtest.Key); !errors.Is(err, bloom.ErrRecreated) {
		t.Errorf("%v, want ErrRecreated", err)
	}
}
