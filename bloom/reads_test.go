package bloom_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func reading(r bloom.Reads) bloom.Config {
	cfg := sparse()
	cfg.Reads = r
	return cfg
}

// lagging makes a database whose nearest region stays as put left it. The
// primary has a filter with the item "a".
func lagging(t *testing.T, put func(s *upstashtest.Server)) *upstashtest.Server {
	t.Helper()
	s := upstashtest.NewServer(t)
	put(s)
	s.SetReplicaLag(math.MaxInt)
	do(t, s, "DEL", key)
	add(t, handle(t, s.Client(), sparse()), "a", true)
	return s
}

// behind returns what a region may have at a key where the primary has a
// filter.
func behind(t *testing.T) map[string]func(s *upstashtest.Server) {
	return map[string]func(s *upstashtest.Server){
		"nothing": func(*upstashtest.Server) {},
		"an empty one": func(s *upstashtest.Server) {
			_, _ = handle(t, s.Client(), sparse()).Create(t.Context())
		},
		"another filter": func(s *upstashtest.Server) { add(t, handle(t, s.Client(), small()), "a", true) },
		"a string":       func(s *upstashtest.Server) { do(t, s, "SET", key, "some text") },
		"a list":         func(s *upstashtest.Server) { do(t, s, "RPUSH", key, "a") },
	}
}

// By default no region is asked, whatever it would answer.
func TestReadsPrimary(t *testing.T) {
	for name, put := range behind(t) {
		s := lagging(t, put)
		f := handle(t, s.Client(upstash.WithoutSyncToken()), reading(bloom.ReadsPrimary))
		s.ResetStats()
		exists(t, f, "a", true)
		exists(t, f, "b", false)
		if n := s.Stats().Requests; n != 2 {
			t.Errorf("%s: %d requests for two look-ups, want 2", name, n)
		}
	}
}

// A region's "yes" counts. After any other answer the primary is asked, and the
// handle remembers nothing of the region's answer.
func TestReadsNearestFirst(t *testing.T) {
	for name, put := range behind(t) {
		t.Run(name, func(t *testing.T) {
			s := lagging(t, put)
			f := handle(t, s.Client(upstash.WithoutSyncToken()), reading(bloom.ReadsNearestFirst))
			s.ResetStats()
			exists(t, f, "a", true)
			exists(t, f, "b", false)
			if n := s.Stats(); n.Requests != 4 || n.Commands != 4 {
				t.Errorf("%+v, want two requests a look-up", n)
			}
			got, err := f.ExistsAll(t.Context(), []string{"b", "a", "c"})
			if err != nil || !slices.Equal(got, []bool{false, true, false}) {
				t.Errorf("ExistsAll = %v, %v, want [false true false]", got, err)
			}
			answers, err := bloom.ExistsIn(t.Context(), "a", f, f)
			if err != nil || !answers[0].Yes || !answers[1].Yes {
				t.Errorf("ExistsIn = %v, %v, want yes twice", answers, err)
			}
			s.ResetStats()
			add(t, f, "d", true)
			if n := s.Stats().Requests; n != 1 {
				t.Errorf("an Add after the region's answer took %d requests, want 1", n)
			}

			s.CatchUp()
			s.ResetStats()
			exists(t, f, "a", true)
			if n := s.Stats(); n.Requests != 1 || n.Commands != 1 {
				t.Errorf("%+v for what the region finds, want one request", n)
			}
		})
	}
}

// A "no" of the primary brings a sync token, and a region that is behind other
// clients' writes goes on answering. It waits for this client's own.
func TestReadsNearestFirstStaysNear(t *testing.T) {
	s := lagging(t, behind(t)["an empty one"])
	f := handle(t, s.Client(), reading(bloom.ReadsNearestFirst))
	const fromRegion, fromPrimary = 2, 1 // requests for an item that the region lacks
	asked := func(want int64) {
		t.Helper()
		s.ResetStats()
		exists(t, f, "a", true)
		if n := s.Stats().Requests; n != want {
			t.Errorf("a look-up took %d requests, want %d", n, want)
		}
	}
	exists(t, f, "b", false)
	asked(fromRegion)
	noError(t, errorOf(f.ExistsAll(t.Context(), []string{"b", "c"})))
	asked(fromRegion)
	add(t, f, "d", true)
	asked(fromPrimary)
}

// If the primary no longer has a filter, the error is ErrNotFound, even if a
// region has it.
func TestReadsNearestFirstOfAMissingFilter(t *testing.T) {
	s := upstashtest.NewServer(t)
	add(t, handle(t, s.Client(), sparse()), "a", true)
	s.SetReplicaLag(math.MaxInt)
	do(t, s, "DEL", key)
	f := handle(t, s.Client(upstash.WithoutSyncToken()), reading(bloom.ReadsNearestFirst))
	if found, err := f.Exists(t.Context(), "b"); found || !errors.Is(err, bloom.ErrNotFound) {
		t.Errorf("Exists = %v, %v, want ErrNotFound", found, err)
	}
	exists(t, f, "a", true) // the region's "yes": the filter was there a moment ago
}

// If a region sends no answer, or half of one, the primary is asked for all
// items.
func TestReadsNearestFirstAfterABadAnswer(t *testing.T) {
	items := numbered("item", 20)
	asked := append(numbered("item", 10), numbered("other", 10)...)
	want := append(slices.Repeat([]bool{true}, 10), make([]bool, 10)...)
	for _, fault := range []upstashtest.Fault{
		upstashtest.ShortResult(), upstashtest.LongResult(), upstashtest.WrongType(),
		upstashtest.NotJSON(upstashtest.AfterExec), upstashtest.ErrorObject("ERR no"),
		upstashtest.ErrorObject("LOADING the region is being rebuilt"),
	} {
		s := upstashtest.NewServer(t)
		add := handle(t, s.Client(), sparse())
		mustAdd(t, add, items...)
		f := handle(t, once(s), reading(bloom.ReadsNearestFirst))
		s.Inject(fault)
		got, err := f.ExistsAll(t.Context(), asked)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: ExistsAll = %v, %v, want the first ten found", fault, got, err)
		}
	}
	// Half an answer: its second word is impossible.
	cfg := reading(bloom.ReadsNearestFirst)
	cfg.Hashes = 2
	h := headerWordOf(cfg)
	broken := `{"result":[` + h + `,9007199254740991,-1]}`
	c := canned(t, broken, `{"result":[`+h+`,0,9007199254740991]}`)
	got, err := handle(t, c, cfg).ExistsAll(t.Context(), []string{"a", "b"})
	if err != nil || !slices.Equal(got, []bool{false, true}) {
		t.Errorf("after half an answer: %v, %v, want the primary's", got, err)
	}
}

// The second request of a batch asks only for the items the region did not
// find.
func TestReadsNearestFirstAsksAgainForWhatWasNotFound(t *testing.T) {
	s := upstashtest.NewServer(t)
	writer := handle(t, s.Client(), sparse())
	mustAdd(t, writer, numbered("old", 90)...)
	s.SetReplicaLag(math.MaxInt)
	mustAdd(t, writer, numbered("new", 10)...)
	c, w := watch(t, s)
	f := handle(t, c, reading(bloom.ReadsNearestFirst))
	got, err := f.ExistsAll(t.Context(), append(numbered("new", 10), numbered("old", 90)...))
	if err != nil || count(got) != 100 {
		t.Errorf("%d of 100 found, %v", count(got), err)
	}
	if len(w.Bodies) != 2 || !strings.HasPrefix(w.Bodies[0], `["BITFIELD_RO"`) ||
		!strings.HasPrefix(w.Bodies[1], `["BITFIELD"`) {
		t.Fatalf("%d requests, want the region's and the primary's", len(w.Bodies))
	}
	want := 1 + wordsOf(f.Geometry(), numbered("new", 10))
	if n := operations(w.Bodies[1], "GET"); n != want {
		t.Errorf("the second request reads %d words, want %d", n, want)
	}
}

// ReadsNearest accepts what a region says, even a "no", and asks once.
func TestReadsNearest(t *testing.T) {
	for name, put := range behind(t) {
		s := lagging(t, put)
		f := handle(t, s.Client(upstash.WithoutSyncToken()), reading(bloom.ReadsNearest))
		s.ResetStats()
		found, err := f.Exists(t.Context(), "a")
		if found || (err == nil) != (name == "an empty one") {
			t.Errorf("%s: Exists = %v, %v, want false, and no error only of an empty filter", name, found, err)
		}
		if n := s.Stats().Requests; n != 1 {
			t.Errorf("%s: %d requests, want 1", name, n)
		}
		add(t, f, "b", true) // the handle remembers nothing of it
	}
}

// If the token may not ask the primary, a look-up is an error, never a "no".
// The handle remembers nothing of it.
func TestATokenThatMayNotAskThePrimary(t *testing.T) {
	for name, put := range behind(t) {
		for _, missing := range []bool{false, true} {
			for _, reads := range []bloom.Reads{bloom.ReadsPrimary, bloom.ReadsNearestFirst} {
				s := lagging(t, put)
				cfg := reading(reads)
				cfg.MissingIsEmpty = missing
				f := handle(t, s.Client(upstash.WithoutSyncToken()), cfg)
				s.DenyFunc(func(command []string) bool { return command[0] == "BITFIELD" })
				if found, err := f.Exists(t.Context(), "a"); found || err == nil {
					t.Errorf("%s, %v: Exists = %v, %v, want an error", name, reads, found, err)
				}
				got, err := f.ExistsAll(t.Context(), []string{"a", "b"})
				if count(got) != 0 || err == nil {
					t.Errorf("%s, %v: ExistsAll = %v, %v, want an error", name, reads, got, err)
				}
				s.DenyFunc(nil)
				exists(t, f, "a", true)
				exists(t, f, "b", false)
				add(t, f, "c", true)

				s.DenyFunc(func(command []string) bool { return command[0] == "BITFIELD" })
				s.CatchUp()
				exists(t, f, "a", true)
				found, err := f.Exists(t.Context(), "d")
				if found || !lacksPermission(err) {
					t.Errorf("%s, %v: Exists = %v, %v, want ErrNoPermission", name, reads, found, err)
				}
			}
		}
	}
}

// The late answer to a call that only reads, by a script, does not make the
// client forget what it wrote meanwhile.
func TestReadsNearestBesideALateRead(t *testing.T) {
	for _, late := range []struct {
		name string
		n    int64 // the number of its last reply
		read func(c *upstash.Client) error
	}{
		{"Mirror.Refresh", 3, func(c *upstash.Client) error { // the second refresh finds nothing new
			m, err := bloom.NewMirror(handleAt(t, c, "a", sparse()), bloom.MirrorConfig{MaxStale: time.Hour})
			return errors.Join(err, m.Refresh(t.Context()), m.Refresh(t.Context()))
		}},
		{"EstimateIntersection", 1, func(c *upstash.Client) error {
			_, err := bloom.EstimateIntersection(t.Context(), handleAt(t, c, "a", sparse()), handleAt(t, c, "b", sparse()))
			return err
		}},
	} {
		s := upstashtest.NewServer(t, upstashtest.WithRegions(upstashtest.Region{Name: "far", Lag: math.MaxInt}))
		add(t, handleAt(t, s.Client(), "a", sparse()), "a", true)
		add(t, handleAt(t, s.Client(), "b", sparse()), "b", true)
		held := holdReply(late.n)
		c := s.RegionClient("far", held.through(t))
		var under sync.WaitGroup
		under.Go(func() {
			if err := late.read(c); err != nil {
				t.Errorf("%s: %v", late.name, err)
			}
		})
		<-held.here
		s.CatchUp() // the region now has what the late answer names
		f := handleAt(t, c, "b", reading(bloom.ReadsNearest))
		add(t, f, "x", true)
		close(held.release)
		under.Wait()
		if found, err := f.Exists(t.Context(), "x"); err != nil || !found {
			t.Errorf("%s: Exists = %v, %v of an item that was added", late.name, found, err)
		}
	}
}

// No part of a number is certain in a region's answer: a Count is the primary's,
// or it is an error, unless the caller accepts what a region says.
func TestCuckooCountIsThePrimarys(t *testing.T) {
	const region, primary = 1, 3
	noBitField := func(command []string) bool { return command[0] == "BITFIELD" }
	for _, c := range []struct {
		reads    bloom.Reads
		readOnly bool
		deny     func(command []string) bool
		want     uint64
		requests int64
	}{
		{bloom.ReadsPrimary, false, nil, primary, 1},
		{bloom.ReadsNearestFirst, false, nil, primary, 1},
		{bloom.ReadsPrimary, false, noBitField, 0, 2},
		{bloom.ReadsNearestFirst, false, noBitField, 0, 2},
		{bloom.ReadsNearest, false, noBitField, region, 1},
		{bloom.ReadsPrimary, true, nil, region, 1},
		{bloom.ReadsNearestFirst, true, nil, region, 1},
	} {
		s := upstashtest.NewServer(t)
		cfg := bloom.CuckooConfig{Capacity: 100, FPRate: 0.01, Reads: c.reads}
		writer := cuckoo(t, s.Client(), cfg)
		for i := range uint64(primary) {
			if i == region {
				s.SetReplicaLag(math.MaxInt)
			}
			noError(t, errorOf(writer.Add(t.Context(), "a")))
		}
		client := s.Client(upstash.WithoutSyncToken())
		if c.readOnly {
			client = s.ReadOnlyClient()
		}
		s.DenyFunc(c.deny)
		s.ResetStats()
		got, err := cuckoo(t, client, cfg).Count(t.Context())
		wrong := err != nil
		if c.want == 0 {
			wrong = !lacksPermission(err)
		}
		if n := s.Stats().Requests; wrong || got != c.want || n != c.requests {
			t.Errorf("%+v: Count = %d, %v in %d requests", c, got, err, n)
		}
	}
}

// An ErrNotFound says that a region may have lagged, if a region may have said it.
func TestNotFoundInARegion(t *testing.T) {
	s := upstashtest.NewServer(t)
	says := func(name string, err error, region bool) {
		t.Helper()
		if !errors.Is(err, bloom.ErrNotFound) || !upstash.SafeToRetry(err) ||
			strings.Contains(err.Error(), "the nearest region does not have it yet") != region {
			t.Errorf("%s: %v, want ErrNotFound of a region: %v", name, err, region)
		}
	}
	for _, reads := range []bloom.Reads{bloom.ReadsPrimary, bloom.ReadsNearest, bloom.ReadsNearestFirst} {
		f := handle(t, s.Client(), reading(reads))
		_, err := f.Exists(t.Context(), "a")
		says(reads.String(), err, reads == bloom.ReadsNearest)
		_, err = f.Stats(t.Context())
		says("Stats", err, true)
		_, err = f.Cardinality(t.Context())
		says("Cardinality", err, true)
	}
	_, err := handle(t, s.ReadOnlyClient(), sparse()).Exists(t.Context(), "a")
	says("a read-only client", err, true)
	_, err = cuckoo(t, s.Client(), bloom.CuckooConfig{Capacity: 100, FPRate: 0.01}).Stats(t.Context())
	says("Cuckoo.Stats", err, true)
	_, err = bloom.Open(t.Context(), s.ReadOnlyClient(), key)
	says("Open by a read-only client", err, true)
	_, err = bloom.Open(t.Context(), s.Client(), key)
	says("Open", err, false)
	all, err := bloom.InspectAll(t.Context(), s.Client(), []string{key})
	noError(t, err)
	says("InspectAll", all[0].Err, true)
}

// readers returns each call that only reads.
func readers(t *testing.T, c *upstash.Client) map[string]func(context.Context) error {
	f := handle(t, c, small())
	other := handleAt(t, c, "another key", small())
	m, err := bloom.NewMirror(f, bloom.MirrorConfig{MaxStale: time.Second})
	noError(t, err)
	w := window(t, c, bloom.WindowConfig{Capacity: 100, FPRate: 0.01, Span: time.Hour})
	g := scalable(t, c, bloom.ScalableConfig{Capacity: 100, FPRate: 0.01})
	k := cuckoo(t, c, bloom.CuckooConfig{Capacity: 100, FPRate: 0.01})
	d := sharded(t, bloom.ShardedConfig{Capacity: 100, FPRate: 0.01, Shards: 2}, c)
	shards, items := []*upstash.Client{c}, []string{"a", "b"}
	return map[string]func(context.Context) error{
		"Filter.Exists":        func(ctx context.Context) error { return errorOf(f.Exists(ctx, "a")) },
		"Filter.ExistsAll":     func(ctx context.Context) error { return errorOf(f.ExistsAll(ctx, items)) },
		"Filter.Cardinality":   func(ctx context.Context) error { return errorOf(f.Cardinality(ctx)) },
		"Filter.Stats":         func(ctx context.Context) error { return errorOf(f.Stats(ctx)) },
		"Filter.Snapshot":      func(ctx context.Context) error { return errorOf(f.Snapshot(ctx)) },
		"Mirror.Exists":        func(ctx context.Context) error { return errorOf(m.Exists(ctx, "a")) },
		"Mirror.ExistsAll":     func(ctx context.Context) error { return errorOf(m.ExistsAll(ctx, items)) },
		"Mirror.Refresh":       m.Refresh,
		"Window.Exists":        func(ctx context.Context) error { return errorOf(w.Exists(ctx, "a")) },
		"Window.ExistsAll":     func(ctx context.Context) error { return errorOf(w.ExistsAll(ctx, items)) },
		"Window.Stats":         func(ctx context.Context) error { return errorOf(w.Stats(ctx)) },
		"Scalable.Exists":      func(ctx context.Context) error { return errorOf(g.Exists(ctx, "a")) },
		"Scalable.ExistsAll":   func(ctx context.Context) error { return errorOf(g.ExistsAll(ctx, items)) },
		"Scalable.Stats":       func(ctx context.Context) error { return errorOf(g.Stats(ctx)) },
		"Scalable.Cardinality": func(ctx context.Context) error { return errorOf(g.Cardinality(ctx)) },
		"Cuckoo.Exists":        func(ctx context.Context) error { return errorOf(k.Exists(ctx, "a")) },
		"Cuckoo.ExistsAll":     func(ctx context.Context) error { return errorOf(k.ExistsAll(ctx, items)) },
		"Cuckoo.Count":         func(ctx context.Context) error { return errorOf(k.Count(ctx)) },
		"Cuckoo.Stats":         func(ctx context.Context) error { return errorOf(k.Stats(ctx)) },
		"Sharded.Exists":       func(ctx context.Context) error { return errorOf(d.Exists(ctx, "a")) },
		"Sharded.ExistsAll":    func(ctx context.Context) error { return errorOf(d.ExistsAll(ctx, items)) },
		"Sharded.Stats":        func(ctx context.Context) error { return errorOf(d.Stats(ctx)) },
		"Sharded.Cardinality":  func(ctx context.Context) error { return errorOf(d.Cardinality(ctx)) },
		"Open":                 func(ctx context.Context) error { return errorOf(bloom.Open(ctx, c, key)) },
		"OpenWindow":           func(ctx context.Context) error { return errorOf(bloom.OpenWindow(ctx, c, key)) },
		"OpenScalable":         func(ctx context.Context) error { return errorOf(bloom.OpenScalable(ctx, c, key)) },
		"OpenCuckoo":           func(ctx context.Context) error { return errorOf(bloom.OpenCuckoo(ctx, c, key)) },
		"OpenSharded":          func(ctx context.Context) error { return errorOf(bloom.OpenSharded(ctx, shards, key)) },
		"Inspect":              func(ctx context.Context) error { return errorOf(bloom.Inspect(ctx, c, key)) },
		"EstimateIntersection": func(ctx context.Context) error {
			_, err := bloom.EstimateIntersection(ctx, f, other)
			return err
		},
		"ExistsIn": func(ctx context.Context) error {
			answers, err := bloom.ExistsIn(ctx, "a", f, f)
			if err != nil && !upstash.SafeToRetry(answers[0].Err) {
				t.Errorf("ExistsIn: the first answer's %v is not safe to retry", answers[0].Err)
			}
			return err
		},
		"InspectAll": func(ctx context.Context) error {
			found, err := bloom.InspectAll(ctx, c, []string{key})
			if err != nil {
				return err
			}
			return found[0].Err
		},
	}
}

// A call that only reads has changed nothing, whatever its error.
func TestReadsAreSafeToRetry(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := impatient(s)
	always := func(f upstashtest.Fault) {
		s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault { return f })
	}
	list := func() {
		for _, key := range []string{key, key + ":0", key + ":1", "another key"} {
			do(t, s, "RPUSH", key, "an element")
		}
	}
	text := func() {
		for _, key := range []string{key, key + ":0", key + ":1", "another key"} {
			do(t, s, "SET", key, "a text that is long enough for a header and some cells")
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx context.Context
		set func()
	}{
		"no filter":       {t.Context(), func() {}},
		"another type":    {t.Context(), list},
		"other data":      {t.Context(), text},
		"a short answer":  {t.Context(), func() { always(upstashtest.ShortResult()) }},
		"a lost answer":   {t.Context(), func() { always(upstashtest.Drop(upstashtest.AfterExec)) }},
		"an ended call":   {ended, func() {}},
		"a cut answer":    {t.Context(), func() { always(upstashtest.CutBody(5)) }},
		"other words":     {t.Context(), func() { always(upstashtest.ErrorObject("ERR injected")) }},
		"no JSON, and ok": {t.Context(), func() { always(upstashtest.NotJSON(upstashtest.AfterExec)) }},
	} {
		s.FlushAll()
		tt.set()
		for call, read := range readers(t, c) {
			err := read(tt.ctx)
			var batch *bloom.BatchError
			switch {
			case err == nil:
				t.Errorf("%s, %s: no error", name, call)
			case !upstash.SafeToRetry(err):
				t.Errorf("%s, %s: %v is not safe to retry", name, call, err)
			case errors.As(err, &batch) && !batch.SafeToRetry():
				t.Errorf("%s, %s: the BatchError of %v is not safe to retry", name, call, err)
			}
		}
		s.InjectFunc(nil)
	}
}

// reads returns the calls of a read-only client, each on a new handle.
func reads(t *testing.T, c *upstash.Client, cfg bloom.Config) map[string]func() error {
	ops := operationsOf(t, handle(t, c, cfg))
	delete(ops, "Add")
	delete(ops, "AddAll")
	delete(ops, "Create")
	ops["Open"] = func() error { return errorOf(bloom.Open(t.Context(), c, key)) }
	return ops
}

func TestReadOnlyClient(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, cfg := range []bloom.Config{small(), expiring(time.Hour)} {
			s.FlushAll()
			add(t, handle(t, s.Client(), cfg), "a", true)
			var commands []string
			s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
				commands = append(commands, r.Commands[0])
				return upstashtest.Fault{}
			})
			c := s.ReadOnlyClient()
			for name, read := range reads(t, c, cfg) {
				s.ResetStats()
				if err := read(); err != nil || s.Stats().Requests != 1 {
					t.Errorf("%s: %v, %d requests, want 1", name, err, s.Stats().Requests)
				}
			}
			for _, name := range commands {
				if name != "BITFIELD_RO" {
					t.Errorf("sent %s, want BITFIELD_RO", name)
				}
			}
			f := handle(t, c, cfg)
			exists(t, f, "a", true)
			exists(t, f, "b", false)

			s.ResetStats()
			writes := operationsOf(t, f)
			writes["Delete"] = func() error { return errorOf(f.Delete(t.Context())) }
			writes["Expire"] = func() error { return errorOf(f.Expire(t.Context(), time.Hour)) }
			writes["Persist"] = func() error { return errorOf(f.Persist(t.Context())) }
			writes["Rename"] = func() error { return f.Rename(t.Context(), "other") }
			for name := range reads(t, c, cfg) {
				delete(writes, name)
			}
			for name, write := range writes {
				if err := write(); !errors.Is(err, upstash.ErrReadOnly) || !upstash.SafeToRetry(err) {
					t.Errorf("%s: %v, want ErrReadOnly", name, err)
				}
			}
			if n := s.Stats().Requests; len(writes) != 7 || n != 0 {
				t.Errorf("%d requests for %d writes, want 0 for 7", n, len(writes))
			}
			s.InjectFunc(nil)
		}
	})
}

// A client with a read-only token, but without the option, asks twice. It
// trusts a "yes", but a "no" may come from a lagging replica.
func TestReadOnlyTokenWithoutTheOption(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, cfg := range []bloom.Config{small(), expiring(time.Hour)} {
			s.FlushAll()
			add(t, handle(t, s.Client(), cfg), "a", true)
			client := func() *upstash.Client {
				c, err := upstash.New(s.URL, s.ReadOnlyToken)
				noError(t, err)
				t.Cleanup(func() { _ = c.Close() })
				return c
			}
			for name := range reads(t, client(), cfg) {
				c := client()
				err := reads(t, c, cfg)[name]()
				if name == "ExistsAll" { // one of its items is not in the filter
					if !lacksPermission(err) {
						t.Errorf("%s: %v, want ErrNoPermission", name, err)
					}
				} else if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			c := client()
			f := handle(t, c, cfg)
			var server *upstash.Error
			if _, err := f.Add(t.Context(), "b"); !errors.As(err, &server) || !upstash.SafeToRetry(err) {
				t.Errorf("the first Add: %v, want the server's refusal", err)
			}
			exists(t, f, "a", true)
			if found, err := f.Exists(t.Context(), "b"); found || !lacksPermission(err) {
				t.Errorf("Exists of another item = %v, %v, want ErrNoPermission", found, err)
			}
		}
	})
}

// A Window has no Reads: its look-ups go to the primary, and those of a read-only
// client to the nearest region.
func TestWindowLookUpsGoToThePrimary(t *testing.T) {
	s := upstashtest.NewServer(t)
	add(t, window(t, s.Client(), day()), "a", true)
	for want, c := range map[string]*upstash.Client{"BITFIELD": s.Client(), "BITFIELD_RO": s.ReadOnlyClient()} {
		noError(t, errorOf(c.ServerTime(t.Context())))
		sent := bloomtest.Sent(s)
		w := window(t, c, day())
		exists(t, w, "a", true)
		noError(t, errorOf(w.ExistsAll(t.Context(), []string{"a", "b"})))
		if s.InjectFunc(nil); !slices.Equal(*sent, []string{want, want}) {
			t.Errorf("sent %v, want %s twice", *sent, want)
		}
	}
}

// lacksPermission reports whether an error is the refusal of a token, and not
// that of a client made with WithReadOnly.
func lacksPermission(err error) bool {
	return errors.Is(err, upstash.ErrNoPermission) && !errors.Is(err, upstash.ErrReadOnly) &&
		upstash.SafeToRetry(err)
}
