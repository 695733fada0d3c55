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
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
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
			wantNoKey(t, s, key)
		}
		check()
		create(t, f, true)
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
			create(t, f, true)
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
		create(t, f, true)
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
		create(t, f, true)
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
	first := &flagless{next: overHTTP(t), together: together, come: make(chan struct{})}
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
		"Add":     func() error { return errorOf(f.Add(t.Context(), "a")) },
		"AddAll":  func() error { return errorOf(f.AddAll(t.Context(), []string{"a"})) },
		"Create":  func() error { return errorOf(f.Create(t.Context())) },
		"Expire":  func() error { return errorOf(f.Expire(t.Context(), time.Hour)) },
		"Persist": func() error { return errorOf(f.Persist(t.Context())) },
		"Rename":  func() error { return f.Rename(t.Context(), "other") },
		"Delete":  func() error { return errorOf(f.Delete(t.Context())) },
		"Load":    func() error { return errorOf(f.Load(t.Context(), mails(0, 9))) },
		"Merge":   func() error { return errorOf(f.Merge(t.Context(), localOf(f, 0, 9))) },
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
	sent := bloomtest.Sent(s)
	cfg := small()
	cfg.MustExist = true
	f := handle(t, s.Client(), cfg)
	create(t, f, true)
	add(t, f, "first", true) // sends the script's text
	for range 20 {           // the pool may not return the last request
		*sent = nil
		noError(t, errorOf(f.Add(t.Context(), "a")))
		exists(t, f, "b", false)
		if want := []string{"EVALSHA", "BITFIELD"}; !slices.Equal(*sent, want) {
			t.Fatalf("sent %v, want %v", *sent, want)
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
		"Filter.Add":     func(x string) error { return errorOf(f.Add(ctx, x)) },
		"Filter.AddAll":  func(x string) error { return errorOf(f.AddAll(ctx, []string{x, "other"})) },
		"AddIn":          func(x string) error { return errorOf(bloom.AddIn(ctx, x, f)) },
		"Filter.Load":    func(x string) error { return errorOf(f.Load(ctx, slices.Values([]string{x}))) },
		"Window.Add":     func(x string) error { return errorOf(w.Add(ctx, x)) },
		"Scalable.Add":   func(x string) error { return errorOf(g.Add(ctx, x)) },
		"Cuckoo.Add":     func(x string) error { return errorOf(k.Add(ctx, x)) },
		"Cuckoo.Remove":  func(x string) error { return errorOf(k.Remove(ctx, x)) },
		"Sharded.Add":    func(x string) error { return errorOf(d.Add(ctx, x)) },
		"Window.AddAll":  func(string) error { return errorOf(w.AddAll(ctx, numbered("many", 900))) },
		"Sharded.AddAll": func(string) error { return errorOf(d.AddAll(ctx, numbered("many", 900))) },
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
		noError(t, err)
		noError(t, errorOf(f.Create(t.Context())))
	}
}

// An order that a script refused has changed nothing, unless an attempt before
// may have run.
func TestRefusedOrdersAreSafeToRetry(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), impatient(s)
		f := handle(t, c, must(small()))
		there := handleAt(t, c, "source", small())
		create(t, there, true)
		at := func(key string) *bloom.Filter {
			f, err := bloom.New(c, key, small())
			noError(t, err)
			return f
		}
		missing, list, zeros := at("elsewhere"), at("list"), at("zeros")
		do(t, s, "SET", "taken", "x")
		do(t, s, "RPUSH", "list", "x")
		do(t, s, "SETBIT", "zeros", "900", "1")
		stays, expires := day(), day()
		expires.ExpireIdle = true
		idle, err := bloom.NewWindow(c, "window", expires)
		noError(t, err)
		other, err := bloom.NewWindow(c, "window", stays)
		noError(t, err)
		create(t, other, true)
		for name, tt := range map[string]struct {
			other, repeated bool
			order           func() error
		}{
			"Create":                {true, true, func() error { return errorOf(f.Create(ctx)) }},
			"Expire":                {true, true, func() error { return errorOf(f.Expire(ctx, time.Hour)) }},
			"Persist":               {true, true, func() error { return errorOf(f.Persist(ctx)) }},
			"Delete":                {true, false, func() error { return errorOf(f.Delete(ctx)) }},
			"Rename":                {true, false, func() error { return f.Rename(ctx, "elsewhere") }},
			"Union of a missing":    {false, false, func() error { return bloom.Union(ctx, there, missing) }},
			"Union into a missing":  {false, false, func() error { return bloom.Union(ctx, f, there) }},
			"Union into another":    {true, false, func() error { return bloom.Union(ctx, handle(t, c, small()), there) }},
			"Union of another":      {true, false, func() error { return bloom.Union(ctx, there, f) }},
			"Window.Create":         {true, true, func() error { return errorOf(window(t, c, day()).Create(ctx)) }},
			"Union of what is here": {true, false, func() error { return bloom.Union(ctx, there, there, f) }},
			"Rename to a taken":     {false, false, func() error { return there.Rename(ctx, "taken") }},
			"Rename to itself":      {false, false, func() error { return there.Rename(ctx, "source") }},
			"Rename to nothing":     {false, false, func() error { return there.Rename(ctx, "") }},
			"Union into a list":     {false, false, func() error { return bloom.Union(ctx, list, there) }},
			"Union of a list":       {false, false, func() error { return bloom.Union(ctx, there, list) }},
			"Create over zeros":     {false, true, func() error { return errorOf(zeros.Create(ctx)) }},
			"Load over zeros":       {false, true, func() error { return errorOf(at("zeros").Load(ctx, mails(0, 9))) }},
			"Replace zeros":         {false, true, func() error { return zeros.Replace(ctx, localOf(zeros, 0, 9)) }},
			"Create another window": {false, true, func() error { return errorOf(idle.Create(ctx)) }},
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
	there := handleAt(t, c, "another key", small())
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

// An Add that found no filter may all the same add its item to the next one: its
// first attempt comes late. So it is not safe to retry.
func TestMissingAndALateAttempt(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		late := &lateEval{Transport: overHTTP(t), most: 1}
		f := handle(t, impatient(s, upstash.WithTransport(late)), must(small()))
		_, err := f.Add(t.Context(), "a")
		if !errors.Is(err, bloom.ErrNotFound) || upstash.SafeToRetry(err) {
			t.Errorf("Add = %v, safe to retry %t, want ErrNotFound and false", err, upstash.SafeToRetry(err))
		}
		create(t, f, true)
		exists(t, f, "a", false)
		noError(t, late.RoundTrip(t.Context(), &late.kept[0], new(upstash.Response)))
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
	create(t, f, true)
	result, err := f.AddSeq(t.Context(), items, bloom.MoveProgress(func(int64, int64) { do(t, s, "DEL", key) }))
	if !errors.Is(err, bloom.ErrNotFound) || upstash.SafeToRetry(err) || result != (bloom.AddResult{}) {
		t.Errorf("it went away: %+v, %v, safe to retry %t, want nothing and false",
			result, err, upstash.SafeToRetry(err))
	}
}
