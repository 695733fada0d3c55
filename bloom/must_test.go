package bloom_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func must(cfg bloom.Config) bloom.Config {
	cfg.MustExist = true
	return cfg
}

// With MustExist, Add and AddAll do not replace an evicted filter by an empty
// one.
func TestMustExistCreatesNothing(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), must(expiring(time.Hour)))
		check := func() {
			t.Helper()
			for name, err := range map[string]error{
				"Add":    operationsOf(t, f)["Add"](),
				"AddAll": operationsOf(t, f)["AddAll"](),
			} {
				if !errors.Is(err, bloom.ErrNotFound) || strings.Contains(err.Error(), "MissingIsEmpty") ||
					!strings.Contains(err.Error(), "Create") {
					t.Errorf("%s: %v, want ErrNotFound and what to do", name, err)
				}
			}
			if n := do(t, s, "EXISTS", key); n != int64(0) {
				t.Error("an Add with MustExist made the filter")
			}
		}
		check()
		if created, err := f.Create(t.Context()); !created || err != nil {
			t.Fatalf("Create = %v, %v, want true", created, err)
		}
		add(t, f, "a", true)
		add(t, f, "a", false)
		exists(t, f, "a", true)
		wantTTL(t, s, time.Hour)
		do(t, s, "DEL", key)
		check()
	})
}

// A batch works as for any other filter, however many operations it takes.
func TestMustExistInBatches(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, limit := range []int{0, 20_000} {
			s.FlushAll()
			c, w := watch(t, s)
			cfg := must(sparse())
			cfg.BatchBytes = limit
			f := handle(t, c, cfg)
			if _, err := f.Create(t.Context()); err != nil {
				t.Fatal(err)
			}
			items := append(numbered("item", 2500), numbered("item", 100)...)
			w.Bodies = nil
			got, err := f.AddAll(t.Context(), items)
			if err != nil || count(got[:2500]) != 2500 || count(got[2500:]) != 0 {
				t.Errorf("BatchBytes %d: %d new, %v", limit, count(got), err)
			}
			for _, body := range w.Bodies {
				if limit > 0 && len(body) > limit {
					t.Errorf("a request of %d bytes, want at most %d", len(body), limit)
				}
			}
			if limit == 0 && len(w.Bodies) != 1 {
				t.Errorf("%d requests, want 1", len(w.Bodies))
			}
			found, err := f.ExistsAll(t.Context(), items)
			if err != nil || count(found) != len(items) {
				t.Errorf("%d of %d found, %v", count(found), len(items), err)
			}
			plain := handle(t, s.Client(), sparse())
			exists(t, plain, "item-7", true)
			add(t, plain, "item-7", false)
		}
	})
}

// Each Add runs a script, which calls one read and one write.
func TestMustExistCost(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), must(expiring(time.Hour)))
		if _, err := f.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.ResetStats()
		add(t, f, "a", true)
		if n := s.Stats(); n.Requests != 1 || n.Commands != 1 || n.Called != 2 || n.Billed != 3 {
			t.Errorf("%+v, want one request, billed as three commands", n)
		}
	})
}

// If the key holds something else, the script changes nothing.
func TestMustExistMeetsAnother(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for name, put := range map[string]func(){
			"another filter": func() { add(t, handle(t, s.Client(), sparse()), "theirs", true) },
			"text":           func() { do(t, s, "SET", key, "some text of theirs") },
			"a list":         func() { do(t, s, "RPUSH", key, "theirs") },
		} {
			s.FlushAll()
			put()
			before := do(t, s, "TYPE", key)
			text := ""
			if before == "string" {
				text = stored(t, s)
			}
			f := handle(t, s.Client(), must(expiring(time.Hour)))
			if _, err := f.Add(t.Context(), "a"); !isRefusal(err) {
				t.Errorf("%s: %v, want a refusal", name, err)
			}
			if text != "" && stored(t, s) != text {
				t.Errorf("%s was written to", name)
			}
			wantNoTTL(t, s)
		}
	})
}

func TestMustExistAfterALostAnswer(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, impatient(s), must(sparse()))
		if _, err := f.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Inject(upstashtest.Drop(upstashtest.BeforeExec))
		add(t, f, "a", true)
		s.Inject(upstashtest.Drop(upstashtest.AfterExec))
		if added, err := f.Add(t.Context(), "b"); added || !errors.Is(err, bloom.ErrUncertain) {
			t.Errorf("Add = %v, %v, want ErrUncertain", added, err)
		}
		exists(t, f, "b", true)
	})
}

// A server without the flags of scripts is sent them no more.
func TestServerWithoutScriptFlags(t *testing.T) {
	refusals := []string{
		"ERR Unexpected flag in script shebang: allow-key-locking",
		"ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'",
	}
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, words := range refusals {
			s.FlushAll()
			f := handle(t, s.Client(), must(small()))
			s.Inject(upstashtest.ErrorObject(words))
			if created, err := f.Create(t.Context()); !created || err != nil {
				t.Fatalf("%s: Create = %v, %v, want true", words, created, err)
			}
			s.ResetStats()
			add(t, f, "a", true)
			if n := s.Stats().Requests; n != 1 {
				t.Errorf("%s: %d requests for the next Add, want 1", words, n)
			}
			c := s.Client()
			g := handle(t, c, must(small()))
			s.Inject(upstashtest.ErrorObject(words))
			add(t, g, "b", true)
			c = s.Client() // the last client knows already
			fresh, second := handle(t, c, must(small())), handle(t, c, must(small()))
			s.Inject(upstashtest.CommandError(words))
			answers, err := bloom.AddIn(t.Context(), "c", fresh, second)
			if err != nil || !answers[0].Yes || answers[1].Yes {
				t.Errorf("%s: AddIn = %v, %v, want the first alone new", words, answers, err)
			}
		}
	})
}

// flagless refuses scripts with flags, as an old Redis does. It holds the first
// together requests until all of them have come.
type flagless struct {
	next     upstash.Transport
	together int
	come     chan struct{}
	arrived  atomic.Int64
	refused  atomic.Int64
}

func (f *flagless) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	switch n := f.arrived.Add(1); {
	case n == int64(f.together):
		close(f.come)
	case n < int64(f.together):
		<-f.come
	}
	if !bytes.Contains(req.Body, []byte("#!lua")) {
		return f.next.RoundTrip(ctx, req, resp)
	}
	f.refused.Add(1)
	const refusal = `{"error":"ERR Unexpected flag in script shebang: allow-key-locking"}`
	resp.StatusCode, resp.Body = 400, append(resp.Body, refusal...)
	if req.Body[1] == '[' { // a pipeline
		n := bytes.Count(req.Body, []byte("#!lua"))
		resp.StatusCode = 200
		resp.Body = []byte("[" + strings.Join(slices.Repeat([]string{refusal}, n), ",") + "]")
	}
	return nil
}

// Whether TestFirstScriptsAtOnce sends a command again depends on the command's
// own contents, not on what others learned meanwhile.
func TestFirstScriptsAtOnce(t *testing.T) {
	const together = 8
	s := upstashtest.NewServer(t)
	next := httptransport.New(nil)
	t.Cleanup(func() { _ = next.Close() })
	first := &flagless{next: next, together: together, come: make(chan struct{})}
	f := handle(t, s.Client(upstash.WithTransport(first)), must(small()))
	var created atomic.Int64
	var calls sync.WaitGroup
	for range together {
		calls.Go(func() {
			ok, err := f.Create(t.Context())
			if err != nil {
				t.Errorf("Create: %v", err)
			} else if ok {
				created.Add(1)
			}
		})
	}
	calls.Wait()
	if created.Load() != 1 || first.refused.Load() != together {
		t.Errorf("%d created the filter, want 1; %d scripts were refused, want %d",
			created.Load(), first.refused.Load(), together)
	}
	// All handles of a client share the knowledge of one.
	add(t, handle(t, s.Client(upstash.WithTransport(first)), must(small())), "a", true)
	n := first.refused.Load()
	c := s.Client(upstash.WithTransport(first))
	g := handle(t, c, must(small()))
	answers, err := bloom.AddIn(t.Context(), "x", g, g)
	if err != nil || !answers[0].Yes || answers[1].Yes {
		t.Errorf("AddIn of one filter twice = %v, %v, want the first alone new", answers, err)
	}
	add(t, handle(t, c, must(small())), "b", true)
	if got := first.refused.Load() - n; got != 1 {
		t.Errorf("%d requests of the client were refused, want 1", got)
	}
}

// If a token may not run scripts, calls return the server's error and nothing
// runs.
func TestTokenWithoutScripts(t *testing.T) {
	s := upstashtest.NewServer(t)
	s.DenyFunc(func(command []string) bool { return command[0] == "EVAL" })
	f := handle(t, s.Client(), must(small()))
	for name, call := range map[string]func() error{
		"Add":     func() error { _, err := f.Add(t.Context(), "a"); return err },
		"AddAll":  func() error { _, err := f.AddAll(t.Context(), []string{"a"}); return err },
		"Create":  func() error { _, err := f.Create(t.Context()); return err },
		"Expire":  func() error { _, err := f.Expire(t.Context(), time.Hour); return err },
		"Persist": func() error { _, err := f.Persist(t.Context()); return err },
		"Rename":  func() error { return f.Rename(t.Context(), "other") },
		"Delete":  func() error { _, err := f.Delete(t.Context()); return err },
		"Load":    func() error { _, err := f.Load(t.Context(), mails(0, 9)); return err },
		"Merge":   func() error { _, err := f.Merge(t.Context(), localOf(f, 0, 9)); return err },
		"Replace": func() error { return f.Replace(t.Context(), localOf(f, 0, 9)) },
	} {
		err := call()
		if !errors.Is(err, upstash.ErrNoPermission) || !upstash.SafeToRetry(err) ||
			strings.Contains(err.Error(), "may have run") {
			t.Errorf("%s: %v, SafeToRetry %v, want ErrNoPermission, safe to retry", name, err,
				upstash.SafeToRetry(err))
		}
	}
}

// A look-up sends its own command, whatever the previous request was.
func TestLookUpAfterAScript(t *testing.T) {
	s := upstashtest.NewServer(t)
	var sent []string
	s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		sent = append(sent, r.Commands...)
		return upstashtest.Fault{}
	})
	cfg := small()
	cfg.MustExist = true
	f := handle(t, s.Client(), cfg)
	if _, err := f.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	add(t, f, "first", true) // sends the script's text
	for range 20 {           // the pool may not return the last request
		sent = nil
		if _, err := f.Add(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		exists(t, f, "b", false)
		if want := []string{"EVALSHA", "BITFIELD"}; !slices.Equal(sent, want) {
			t.Fatalf("sent %v, want %v", sent, want)
		}
	}
}

// A batch stops halfway because the string may not grow. It must not report
// that nothing was done.
func TestMustExistStopsHalfWay(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithMaxRecord(100_000)) // of 132,524 bytes
	f := handle(t, s.Client(), sparse())
	g := f.Geometry()
	low := func(item string) bool {
		for _, p := range positionsOf(g, item) {
			if p > 90_000*8 {
				return false
			}
		}
		return true
	}
	var items []string
	for _, item := range numbered("item", 20_000) {
		if low(item) {
			items = append(items, item)
		}
	}
	if len(items) < 200 {
		t.Fatalf("%d items, want 200 or more", len(items))
	}
	add(t, f, items[0], true)
	items = append(items[1:], numbered("item", 100)...)
	got, err := handle(t, s.Client(), must(sparse())).AddAll(t.Context(), items)
	var batch *bloom.BatchError
	if !errors.Is(err, upstash.ErrRecordTooLarge) || !errors.As(err, &batch) || upstash.SafeToRetry(err) ||
		count(got) != 0 || batch.Count(bloom.ItemUnknown) != len(items) {
		t.Errorf("AddAll: %v, want ErrRecordTooLarge and all items unknown", err)
	}
	exists(t, f, items[0], true)
}
