package bloom_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// mustWrites returns writes by handles for a filter that must exist, each of a
// type or a call.
func mustWrites(t *testing.T, s *upstashtest.Server) map[string]func(item string) error {
	ctx, c := t.Context(), impatient(s)
	f := handle(t, c, must(small()))
	w := window(t, c, bloom.WindowConfig{Capacity: 100, FPRate: 0.01, Span: time.Hour, MustExist: true})
	g := scalable(t, c, bloom.ScalableConfig{Capacity: 100, FPRate: 0.01, MustExist: true})
	if _, err := g.Create(ctx); err != nil { // so that it knows the layers
		t.Fatal(err)
	}
	do(t, s, "DEL", key)
	k := cuckoo(t, c, bloom.CuckooConfig{Capacity: 100, FPRate: 0.01, MustExist: true})
	d := sharded(t, bloom.ShardedConfig{Capacity: 100, FPRate: 0.01, Shards: 2}, c)
	return map[string]func(string) error{
		"Filter.Add":     func(x string) error { _, err := f.Add(ctx, x); return err },
		"Filter.AddAll":  func(x string) error { _, err := f.AddAll(ctx, []string{x, "other"}); return err },
		"AddIn":          func(x string) error { _, err := bloom.AddIn(ctx, x, f); return err },
		"Filter.Load":    func(x string) error { _, err := f.Load(ctx, slices.Values([]string{x})); return err },
		"Window.Add":     func(x string) error { _, err := w.Add(ctx, x); return err },
		"Scalable.Add":   func(x string) error { _, err := g.Add(ctx, x); return err },
		"Cuckoo.Add":     func(x string) error { _, err := k.Add(ctx, x); return err },
		"Cuckoo.Remove":  func(x string) error { _, err := k.Remove(ctx, x); return err },
		"Sharded.Add":    func(x string) error { _, err := d.Add(ctx, x); return err },
		"Window.AddAll":  func(string) error { _, err := w.AddAll(ctx, numbered("many", 900)); return err },
		"Sharded.AddAll": func(string) error { _, err := d.AddAll(ctx, numbered("many", 900)); return err },
		"Filter.Rename":  func(string) error { return f.Rename(ctx, "elsewhere") },
	}
}

// If no attempt before may have run, a write that finds no filter, or another
// one, has certainly changed nothing.
func TestMissingIsSafeToRetry(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, tt := range []struct {
			name   string
			faults []upstashtest.Fault
			safe   bool
		}{
			{"no fault", nil, true},
			{"the first attempt was refused", []upstashtest.Fault{upstashtest.RateLimit(0)}, true},
			{"the answer comes twice", []upstashtest.Fault{upstashtest.Twice(0)}, true},
			{"the request was lost", []upstashtest.Fault{upstashtest.Drop(upstashtest.BeforeExec)}, false},
			{"the answer was lost", []upstashtest.Fault{upstashtest.Drop(upstashtest.AfterExec)}, false},
			{"the answer was cut", []upstashtest.Fault{upstashtest.CutBody(3)}, false},
		} {
			for name := range mustWrites(t, s) {
				for _, other := range []bool{false, true} {
					// A handle that met another filter writes no more.
					write := mustWrites(t, s)[name]
					if other {
						createOthers(t, s)
					}
					// A Load sends its part first, and a Window asks for the time.
					s.InjectFunc(intoScripts(tt.faults))
					err := write("a")
					s.InjectFunc(nil)
					var mismatch *bloom.MismatchError
					found := errors.Is(err, bloom.ErrNotFound) && !other || errors.As(err, &mismatch) && other
					if !tt.safe && (strings.HasPrefix(name, "Cuckoo") || name == "Filter.Rename") {
						found = err != nil // these are not repeated
					}
					if !found || upstash.SafeToRetry(err) != tt.safe || bloom.InFilter(err) {
						t.Errorf("%s, %s, another filter %t: %v, safe to retry %t, want %t",
							name, tt.name, other, err, upstash.SafeToRetry(err), tt.safe)
					}
					if again := write("a"); other && tt.safe && (again == nil || !upstash.SafeToRetry(again)) {
						t.Errorf("%s again, another filter: %v is not safe to retry", name, again)
					}
					do(t, s, "DEL", key, key+":0", key+":1")
				}
			}
		}
	})
}

// createOthers makes a filter of another geometry at the keys of mustWrites.
func createOthers(t *testing.T, s *upstashtest.Server) {
	t.Helper()
	for _, key := range []string{key, key + ":0", key + ":1"} {
		f, err := bloom.New(s.Client(), key, bloom.Config{Capacity: 3000, FPRate: 0.2})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// An order that a script refused has changed nothing, unless an attempt before
// may have run.
func TestRefusedOrdersAreSafeToRetry(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), impatient(s)
		f := handle(t, c, must(small()))
		there, err := bloom.New(c, "source", small())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := there.Create(ctx); err != nil {
			t.Fatal(err)
		}
		at := func(key string) *bloom.Filter {
			f, err := bloom.New(c, key, small())
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		missing, list, zeros := at("elsewhere"), at("list"), at("zeros")
		do(t, s, "SET", "taken", "x")
		do(t, s, "RPUSH", "list", "x")
		do(t, s, "SETBIT", "zeros", "900", "1")
		stays, expires := day(), day()
		expires.ExpireIdle = true
		idle, err := bloom.NewWindow(c, "window", expires)
		if err != nil {
			t.Fatal(err)
		}
		other, err := bloom.NewWindow(c, "window", stays)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Create(ctx); err != nil {
			t.Fatal(err)
		}
		for name, tt := range map[string]struct {
			other, repeated bool
			order           func() error
		}{
			"Create":                {true, true, func() error { _, err := f.Create(ctx); return err }},
			"Expire":                {true, true, func() error { _, err := f.Expire(ctx, time.Hour); return err }},
			"Persist":               {true, true, func() error { _, err := f.Persist(ctx); return err }},
			"Delete":                {true, false, func() error { _, err := f.Delete(ctx); return err }},
			"Rename":                {true, false, func() error { return f.Rename(ctx, "elsewhere") }},
			"Union of a missing":    {false, false, func() error { return bloom.Union(ctx, there, missing) }},
			"Union into a missing":  {false, false, func() error { return bloom.Union(ctx, f, there) }},
			"Union into another":    {true, false, func() error { return bloom.Union(ctx, handle(t, c, small()), there) }},
			"Union of another":      {true, false, func() error { return bloom.Union(ctx, there, f) }},
			"Window.Create":         {true, true, func() error { _, err := window(t, c, day()).Create(ctx); return err }},
			"Union of what is here": {true, false, func() error { return bloom.Union(ctx, there, there, f) }},
			"Rename to a taken":     {false, false, func() error { return there.Rename(ctx, "taken") }},
			"Rename to itself":      {false, false, func() error { return there.Rename(ctx, "source") }},
			"Rename to nothing":     {false, false, func() error { return there.Rename(ctx, "") }},
			"Union into a list":     {false, false, func() error { return bloom.Union(ctx, list, there) }},
			"Union of a list":       {false, false, func() error { return bloom.Union(ctx, there, list) }},
			"Create over zeros":     {false, true, func() error { _, err := zeros.Create(ctx); return err }},
			"Load over zeros":       {false, true, func() error { _, err := at("zeros").Load(ctx, mails(0, 9)); return err }},
			"Replace zeros":         {false, true, func() error { return zeros.Replace(ctx, localOf(zeros, 0, 9)) }},
			"Create another window": {false, true, func() error { _, err := idle.Create(ctx); return err }},
		} {
			do(t, s, "DEL", key)
			if tt.other {
				createOthers(t, s)
			}
			if err := tt.order(); err == nil || !upstash.SafeToRetry(err) {
				t.Errorf("%s: %v is not safe to retry", name, err)
			}
			if !tt.repeated {
				continue
			}
			s.InjectFunc(intoScripts([]upstashtest.Fault{upstashtest.Drop(upstashtest.AfterExec)}))
			if err := tt.order(); err == nil || upstash.SafeToRetry(err) {
				t.Errorf("%s, repeated: %v is safe to retry", name, err)
			}
			s.InjectFunc(nil)
		}
	})
}

// An AddIn that changed one of its filters is not safe to retry, although the
// error of another one is: it would then call the item seen.
func TestAddInIsSafeToRetry(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := s.Client()
	missing := handle(t, c, must(small()))
	_, err := bloom.AddIn(t.Context(), "a", missing, missing)
	if !errors.Is(err, bloom.ErrNotFound) || !upstash.SafeToRetry(err) {
		t.Errorf("both are missing: %v, safe to retry %t, want true", err, upstash.SafeToRetry(err))
	}
	there, err := bloom.New(c, "another key", small())
	if err != nil {
		t.Fatal(err)
	}
	answers, err := bloom.AddIn(t.Context(), "a", missing, there)
	if !errors.Is(err, bloom.ErrNotFound) || upstash.SafeToRetry(err) {
		t.Errorf("one is missing: %v, safe to retry %t, want false", err, upstash.SafeToRetry(err))
	}
	if !upstash.SafeToRetry(answers[0].Err) || !answers[1].Yes || answers[1].Err != nil {
		t.Errorf("the answers are %+v, want the first safe to retry and the second new", answers)
	}
}

// intoScripts returns faults for the first requests of a script.
func intoScripts(faults []upstashtest.Fault) func(int64, upstashtest.RequestInfo) upstashtest.Fault {
	return func(_ int64, q upstashtest.RequestInfo) (f upstashtest.Fault) {
		if strings.HasPrefix(q.Commands[0], "EVAL") && len(faults) > 0 {
			f, faults = faults[0], faults[1:]
		}
		return f
	}
}

// keptOnce keeps the first script back. The test sends it later.
type keptOnce struct {
	upstash.Transport
	kept *upstash.Request
}

func (k *keptOnce) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	if k.kept != nil || !bytes.HasPrefix(req.Body, []byte(`["EVAL`)) {
		return k.Transport.RoundTrip(ctx, req, resp)
	}
	kept := *req
	kept.Body, kept.Header = bytes.Clone(req.Body), append([]upstash.Header(nil), req.Header...)
	k.kept = &kept
	return errors.New("kept back")
}

// An Add that found no filter may all the same add its item to the next one: its
// first attempt comes late. So it is not safe to retry.
func TestMissingAndALateAttempt(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		web := &http.Client{}
		defer web.CloseIdleConnections()
		late := &keptOnce{Transport: httptransport.New(web)}
		f := handle(t, impatient(s, upstash.WithTransport(late)), must(small()))
		_, err := f.Add(t.Context(), "a")
		if !errors.Is(err, bloom.ErrNotFound) || upstash.SafeToRetry(err) {
			t.Errorf("Add = %v, safe to retry %t, want ErrNotFound and false", err, upstash.SafeToRetry(err))
		}
		if _, err := f.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		exists(t, f, "a", false)
		if err := late.RoundTrip(t.Context(), late.kept, new(upstash.Response)); err != nil {
			t.Fatal(err)
		}
		add(t, f, "a", false)
	})
}

// An AddSeq that has added items to a filter that went away is not safe to
// retry: it has changed something. One that found none is.
func TestAddSeqIsSafeToRetry(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg := must(small())
	cfg.BatchBytes, cfg.BatchParallel = 1, 1 // a round of one item
	f := handle(t, s.Client(), cfg)
	items := slices.Values([]string{"a", "b", "c"})
	_, err := f.AddSeq(t.Context(), items)
	if !errors.Is(err, bloom.ErrNotFound) || !upstash.SafeToRetry(err) {
		t.Errorf("no filter: %v, safe to retry %t, want true", err, upstash.SafeToRetry(err))
	}
	if _, err := f.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	result, err := f.AddSeq(t.Context(), items, bloom.MoveProgress(func(int64, int64) { do(t, s, "DEL", key) }))
	if !errors.Is(err, bloom.ErrNotFound) || upstash.SafeToRetry(err) || result != (bloom.AddResult{}) {
		t.Errorf("it went away: %+v, %v, safe to retry %t, want nothing and false",
			result, err, upstash.SafeToRetry(err))
	}
}
