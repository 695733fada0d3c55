package bloom_test

import (
	"errors"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// The process that made a filter can die, or a reply can be lost, at any point.
// The next writer sets the TTL.
func TestWhoeverAddsNextSettles(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		unsettled := func(t *testing.T, faults ...upstashtest.Fault) *bloom.Filter {
			t.Helper()
			s.FlushAll()
			f := handle(t, once(s), expiring(time.Hour))
			s.Inject(faults...)
			_, _ = f.Add(t.Context(), "a")
			wantNoTTL(t, s)
			if settled(t, s) {
				t.Fatal("bit 127 is set")
			}
			return f
		}
		for name, faults := range map[string][]upstashtest.Fault{
			"the Add ran, its reply was lost": {noReply},
			"the settling was lost":           {{}, notSent},
		} {
			for by, write := range map[string]func(f *bloom.Filter) error{
				"Add":    func(f *bloom.Filter) error { _, err := f.Add(t.Context(), "a"); return err },
				"AddAll": func(f *bloom.Filter) error { _, err := f.AddAll(t.Context(), numbered("b", 9)); return err },
				"AddIn":  func(f *bloom.Filter) error { _, err := bloom.AddIn(t.Context(), "b", f); return err },
			} {
				t.Run(name+", the same handle's "+by, func(t *testing.T) {
					if err := write(unsettled(t, faults...)); err != nil {
						t.Fatal(err)
					}
					wantTTL(t, s, time.Hour)
				})
				t.Run(name+", another handle's "+by, func(t *testing.T) {
					unsettled(t, faults...)
					if err := write(handle(t, s.Client(), expiring(time.Hour))); err != nil {
						t.Fatal(err)
					}
					wantTTL(t, s, time.Hour)
				})
			}
		}
	})
}

// Faults of one request.
var (
	noReply = upstashtest.Drop(upstashtest.AfterExec)
	notSent = upstashtest.Drop(upstashtest.BeforeExec)
)

// A handle that has settled one filter settles the next one at its key too.
func TestAFilterMadeAgainIsSettled(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, once(s), expiring(time.Hour))
		add(t, f, "a", true)
		add(t, f, "b", true)
		do(t, s, "DEL", key)
		s.Inject(upstashtest.Fault{}, notSent)
		add(t, f, "c", true)
		wantNoTTL(t, s)
		add(t, f, "d", true)
		wantTTL(t, s, time.Hour)
	})
}

// If the settling ran and its reply was lost, the next Add need not settle.
func TestSettlingWhoseReplyIsLost(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, once(s), expiring(time.Hour))
		s.Inject(upstashtest.Fault{}, noReply)
		add(t, f, "a", true)
		wantTTL(t, s, time.Hour)
		s.ResetStats()
		add(t, f, "b", true)
		if n := s.Stats().Requests; n != 1 {
			t.Errorf("%d requests for the next Add, want 1", n)
		}
	})
}

// An uncertain Add settles as any other does.
func TestARepeatedAddSettles(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		s.Inject(noReply)
		_, err := handle(t, impatient(s), expiring(time.Hour)).Add(t.Context(), "a")
		if !errors.Is(err, bloom.ErrUncertain) {
			t.Errorf("Add: %v, want ErrUncertain", err)
		}
		wantTTL(t, s, time.Hour)
	})
}
