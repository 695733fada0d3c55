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

func expiring(ttl time.Duration) bloom.Config {
	cfg := small()
	cfg.TTL = ttl
	return cfg
}

func TestTTLIsSetOnceAndNeverProlonged(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := s.Client()
		add(t, handle(t, c, expiring(time.Hour)), "a", true)
		wantTTL(t, s, time.Hour)

		do(t, s, "PEXPIRE", key, "600000") // as if 50 minutes had passed
		f := handle(t, c, expiring(time.Hour))
		add(t, f, "b", true)
		add(t, f, "c", true)
		wantTTL(t, s, 10*time.Minute)
	})
}

// In memory the time can be let pass.
func TestFilterExpires(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), expiring(time.Hour))
	add(t, f, "a", true)
	s.FastForward(59 * time.Minute)
	exists(t, f, "a", true)
	add(t, f, "b", true)
	s.FastForward(2 * time.Minute)
	if _, err := f.Exists(t.Context(), "a"); !errors.Is(err, bloom.ErrNotFound) {
		t.Fatalf("Exists after the TTL: %v, want ErrNotFound", err)
	}
	add(t, f, "a", true)
	wantTTL(t, s, time.Hour)
}

func TestTTLAfterEviction(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), expiring(time.Hour))
		add(t, f, "a", true)
		add(t, f, "a", false) // this one knows that the TTL is set
		for name, write := range map[string]func() error{
			"Add":    func() error { _, err := f.Add(t.Context(), "b"); return err },
			"AddAll": func() error { _, err := f.AddAll(t.Context(), []string{"b", "c"}); return err },
			"Create": func() error { _, err := f.Create(t.Context()); return err },
		} {
			do(t, s, "DEL", key)
			if err := write(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			wantTTL(t, s, time.Hour)
		}
		if _, err := f.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.ResetStats()
		add(t, f, "b", true)
		wantTTL(t, s, time.Hour)
		if n := s.Stats(); n.Requests != 1 {
			t.Errorf("after its own Delete: %d requests, want 1: the handle knows that its TTL is gone", n.Requests)
		}
	})
}

// The process that makes the filter dies at each point where it can.
func TestTTLAfterACrash(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		t.Run("first Add executed, no answer", func(t *testing.T) {
			s.FlushAll()
			s.Inject(upstashtest.Drop(upstashtest.AfterExec))
			f := handle(t, once(s), expiring(time.Hour))
			if added, err := f.Add(t.Context(), "a"); err == nil || added || upstash.SafeToRetry(err) {
				t.Errorf("Add = %v, %v, want an error that is not safe to retry", added, err)
			}
			wantTTL(t, s, time.Hour)
		})
		t.Run("made anew, dead before the EXPIRE", func(t *testing.T) {
			s.FlushAll()
			f := handle(t, once(s), expiring(time.Hour))
			add(t, f, "a", true)
			do(t, s, "DEL", key)
			s.Inject(upstashtest.Fault{}, upstashtest.Drop(upstashtest.BeforeExec))
			add(t, f, "b", true)
			wantNoTTL(t, s)
			// The same handle makes up for it, and so does any new one.
			add(t, f, "c", true)
			wantTTL(t, s, time.Hour)
			do(t, s, "PERSIST", key)
			add(t, handle(t, once(s), expiring(time.Hour)), "d", true)
			wantTTL(t, s, time.Hour)
		})
		t.Run("retried, the first attempt made the filter", func(t *testing.T) {
			s.FlushAll()
			f := handle(t, impatient(s), expiring(time.Hour))
			add(t, f, "a", true)
			do(t, s, "DEL", key)
			s.Inject(upstashtest.Drop(upstashtest.AfterExec))
			if _, err := f.Add(t.Context(), "b"); !errors.Is(err, bloom.ErrUncertain) {
				t.Errorf("Add: %v, want ErrUncertain", err)
			}
			wantTTL(t, s, time.Hour)
		})
	})
}

// The EXPIRE is sent with NX, in milliseconds only where it must be.
func TestTTLOnTheWire(t *testing.T) {
	for ttl, want := range map[time.Duration]string{
		time.Hour:                          `["EXPIRE","seen:webhooks","3600","NX"]]`,
		time.Second:                        `["EXPIRE","seen:webhooks","1","NX"]]`,
		999 * time.Millisecond:             `["PEXPIRE","seen:webhooks","999","NX"]]`,
		time.Minute + time.Millisecond:     `["PEXPIRE","seen:webhooks","60001","NX"]]`,
		time.Millisecond + time.Nanosecond: `["PEXPIRE","seen:webhooks","1","NX"]]`,
	} {
		s := upstashtest.NewServer(t)
		c, w := watch(t, s)
		add(t, handle(t, c, expiring(ttl)), "a", true)
		if len(w.bodies) != 1 || !strings.HasSuffix(w.bodies[0], want) {
			t.Errorf("%v: sent %s, want %s at the end", ttl, w.bodies, want)
		}
	}
}

func TestTTLUnits(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, ttl := range []time.Duration{
			time.Second, 90 * time.Second, 1500 * time.Millisecond, 999 * time.Millisecond,
			time.Hour + time.Millisecond, 1500*time.Millisecond + 999*time.Microsecond, 50 * 365 * 24 * time.Hour,
		} {
			s.FlushAll()
			add(t, handle(t, s.Client(), expiring(ttl)), "a", true)
			wantTTL(t, s, ttl)
		}
	})
}

// No TTL may stay on data that is not the handle's: it would delete it.
func TestForeignDataKeepsItsTTL(t *testing.T) {
	foreign := map[string]func(t *testing.T, s *upstashtest.Server){
		"another filter": func(t *testing.T, s *upstashtest.Server) {
			add(t, handle(t, s.Client(), sparse()), "theirs", true)
		},
		"a string": func(t *testing.T, s *upstashtest.Server) { do(t, s, "SET", key, "some text of theirs") },
		"a list":   func(t *testing.T, s *upstashtest.Server) { do(t, s, "RPUSH", key, "a", "b") },
	}
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name, put := range foreign {
			t.Run(name, func(t *testing.T) {
				for _, call := range []func(f *bloom.Filter) error{
					func(f *bloom.Filter) error { _, err := f.Add(t.Context(), "a"); return err },
					func(f *bloom.Filter) error { _, err := f.AddAll(t.Context(), []string{"a", "b"}); return err },
				} {
					s.FlushAll()
					put(t, s)
					err := call(handle(t, s.Client(), expiring(time.Hour)))
					if !isRefusal(err) {
						t.Fatalf("%v, want a MismatchError or ErrNotFilter", err)
					}
					wantNoTTL(t, s)

					s.FlushAll()
					put(t, s)
					do(t, s, "EXPIRE", key, "60")
					if err := call(handle(t, s.Client(), expiring(time.Hour))); !isRefusal(err) {
						t.Fatalf("%v, want a MismatchError or ErrNotFilter", err)
					}
					wantTTL(t, s, time.Minute)
				}
			})
			t.Run(name+", not undone", func(t *testing.T) {
				s.FlushAll()
				put(t, s)
				s.Inject(upstashtest.Fault{}, upstashtest.Drop(upstashtest.BeforeExec))
				_, err := handle(t, once(s), expiring(time.Hour)).Add(t.Context(), "a")
				if !isRefusal(err) || !strings.Contains(err.Error(), "could not be taken off") {
					t.Errorf("%v does not say that the TTL is still there", err)
				}
			})
			t.Run(name+", perhaps set by a lost attempt", func(t *testing.T) {
				s.FlushAll()
				put(t, s)
				s.Inject(upstashtest.Drop(upstashtest.AfterExec))
				_, err := handle(t, impatient(s), expiring(time.Hour)).Add(t.Context(), "a")
				if !isRefusal(err) || !strings.Contains(err.Error(), "a TTL may have been set") {
					t.Errorf("%v does not say that a TTL may be there", err)
				}
			})
		}
	})
}

func isRefusal(err error) bool {
	var m *bloom.MismatchError
	return errors.As(err, &m) || errors.Is(err, bloom.ErrNotFilter)
}

// The items are in, and only the EXPIRE failed: a caller who is told that nothing was done
// would add them again and take them for seen.
func TestTTLThatCannotBeSet(t *testing.T) {
	c := canned(t, `[{"result":[null,`+headerWordOf(sparse())+`,0,0,0,0,0,0,0,0,0]},{"error":"ERR no"}]`)
	cfg := sparse()
	cfg.TTL = time.Hour
	added, err := handle(t, c, cfg).Add(t.Context(), "a")
	if !added || err == nil || upstash.SafeToRetry(err) || !strings.Contains(err.Error(), "TTL") {
		t.Errorf("Add = %v, %v, want true and an error that is not safe to retry", added, err)
	}
	ones := `[{"result":[null,` + headerWordOf(sparse()) + `,1,1,1,1,1,1,1,1,1]},{"error":"ERR no"}]`
	for name, call := range map[string]func(*bloom.Filter) error{
		"Add":    func(f *bloom.Filter) error { _, err := f.Add(t.Context(), "a"); return err },
		"AddAll": func(f *bloom.Filter) error { _, err := f.AddAll(t.Context(), []string{"a"}); return err },
	} {
		retrying, err := upstash.New("https://db.example.com", "token", upstash.WithBackoff(0, 0),
			upstash.WithTransport(&answers{bodies: []string{"garbled", ones}}))
		if err != nil {
			t.Fatal(err)
		}
		err = call(handle(t, retrying, cfg))
		if !errors.Is(err, bloom.ErrUncertain) || upstash.SafeToRetry(err) ||
			!strings.Contains(err.Error(), "TTL") {
			t.Errorf("%s, repeated: %v, want ErrUncertain, and a word on the TTL", name, err)
		}
	}
	_, err = handle(t, c, cfg).AddAll(t.Context(), []string{"a"})
	var batch *bloom.BatchError
	var server *upstash.Error
	if !errors.As(err, &batch) || batch.Count(bloom.ItemDone) != 1 || upstash.SafeToRetry(err) ||
		!errors.As(err, &server) {
		t.Errorf("AddAll: %v, want a BatchError with its item done", err)
	}
}

// The EXPIRE that follows the making anew is refused: the answer holds, and the
// caller is told.
func TestRefusedRenewal(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), expiring(time.Hour))
	add(t, f, "a", true)
	do(t, s, "DEL", key)
	s.Inject(upstashtest.Fault{}, upstashtest.ErrorObject("ERR refused"))
	added, err := f.Add(t.Context(), "b")
	if !added || !errors.Is(err, bloom.ErrNoTTL) || upstash.SafeToRetry(err) || !bloom.InFilter(err) {
		t.Errorf("got %v, %v, want true and ErrNoTTL", added, err)
	}
	add(t, f, "c", true) // which carries the EXPIRE
	if ttl := do(t, s, "TTL", key); ttl != int64(3600) {
		t.Errorf("the TTL is %v", ttl)
	}
}
