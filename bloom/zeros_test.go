package bloom_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// The first 53 bits tell a filter from nothing. If they are 0, the first Add
// takes other data for an empty filter, whatever follows; Create and a Cuckoo
// refuse it and change nothing.
func TestFirstBitsAreZero(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, bit := range []int{53, 60, 64, 130, 9000} {
			for name, write := range writesToNothing(t, s) {
				s.FlushAll()
				if _, err := s.Exec("SETBIT", key, strconv.Itoa(bit), "1"); err != nil {
					t.Fatal(err)
				}
				before, err := s.Exec("GET", key)
				if err != nil {
					t.Fatal(err)
				}
				added, err := write()
				after, _ := s.Exec("GET", key)
				switch {
				case name == "Filter.Add":
					if !added || err != nil {
						t.Errorf("bit %d: %s = %v, %v, want that it takes the string", bit, name, added, err)
					}
				case added || !errors.Is(err, bloom.ErrNotFilter) || after != before:
					t.Errorf("bit %d: %s = %v, %v, changed %v, want ErrNotFilter and no change",
						bit, name, added, err, after != before)
				}
			}
		}
	})
}

// writesToNothing returns writes that make a filter if there is none, each of a
// new handle.
func writesToNothing(t *testing.T, s *upstashtest.Server) map[string]func() (bool, error) {
	c, ctx := s.Client(), t.Context()
	g := scalable(t, c, growing())
	w, err := bloom.NewWindow(c, key, bloom.WindowConfig{Capacity: 100, FPRate: 0.01, Span: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	small, table := small(), bloom.CuckooConfig{Capacity: 100, FPRate: 0.01}
	return map[string]func() (bool, error){
		"Filter.Add":      func() (bool, error) { return handle(t, c, small).Add(ctx, "a") },
		"Filter.Create":   func() (bool, error) { return handle(t, c, small).Create(ctx) },
		"Scalable.Create": func() (bool, error) { return g.Create(ctx) },
		"Window.Create":   func() (bool, error) { return w.Create(ctx) },
		"Cuckoo.Create":   func() (bool, error) { return cuckoo(t, c, table).Create(ctx) },
		"Cuckoo.Add":      func() (bool, error) { return cuckoo(t, c, table).Add(ctx, "a") },
	}
}

// Calls that make nothing find no filter in such a string, and leave it alone.
func TestFirstBitsAreNoFilter(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		do(t, s, "SETBIT", key, "60", "1")
		before := do(t, s, "GET", key)
		f := handle(t, s.Client(), small())
		ctx := t.Context()
		for name, call := range map[string]func() (bool, error){
			"Exists": func() (bool, error) { return f.Exists(ctx, "a") },
			"Stats":  func() (bool, error) { _, err := f.Stats(ctx); return false, err },
			"Rename": func() (bool, error) { return false, f.Rename(ctx, "other") },
		} {
			if found, err := call(); found || !errors.Is(err, bloom.ErrNotFound) {
				t.Errorf("%s = %v, %v, want ErrNotFound", name, found, err)
			}
		}
		for name, call := range map[string]func() (bool, error){
			"Delete":  func() (bool, error) { return f.Delete(ctx) },
			"Expire":  func() (bool, error) { return f.Expire(ctx, time.Hour) },
			"Persist": func() (bool, error) { return f.Persist(ctx) },
		} {
			if found, err := call(); found || err != nil {
				t.Errorf("%s = %v, %v, want false", name, found, err)
			}
		}
		if _, err := f.Load(ctx, mails(0, 10)); !errors.Is(err, bloom.ErrNotFilter) {
			t.Errorf("Load: %v, want ErrNotFilter", err)
		}
		if after := do(t, s, "GET", key); after != before {
			t.Errorf("%q became %q", before, after)
		}
	})
}
