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
	for _, put := range behind(t) {
		s := lagging(t, put)
		f := handle(t, s.Client(upstash.WithoutSyncToken()), reading(bloom.ReadsPrimary))
		s.ResetStats()
		exists(t, f, "a", true)
		exists(t, f, "b", false)
		wantRequests(t, s, 2)
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
			wantRequests(t, s, 4)
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
			wantRequests(t, s, 1)

			s.CatchUp()
			s.ResetStats()
			exists(t, f, "a", true)
			wantRequests(t, s, 1) // the region's
		})
	}
}

// A "no" of the primary brings a sync token, and a region that is behind other
// clients' writes goes on answering. It waits for this client's own.
func TestReadsNearestFirstStaysNear(t *testing.T) {
	s := lagging(t, behind(t)["an empty one"])
	f := handle(t, s.Client(), reading(bloom.ReadsNearestFirst))
	const regionAndPrimary, primaryAlone = 2, 1 // requests for an item that the region lacks
	asks := func(want int64) {
		t.Helper()
		s.ResetStats()
		exists(t, f, "a", true)
		wantRequests(t, s, want)
	}
	exists(t, f, "b", false)
	asks(regionAndPrimary)
	noError(t, errorOf(f.ExistsAll(t.Context(), []string{"b", "c"})))
	asks(regionAndPrimary)
	add(t, f, "d", true)
	asks(primaryAlone)
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
		wantRequests(t, s, 1)
		add(t, f, "b", true) // the handle remembers nothing of it
	}
}

// If the token may not ask the primary, a look-up is an error, never a "no".
// The handle remembers nothing of it.
func TestATokenThatMayNotAskThePrimary(t *testing.T) {
	deny := func(command []string) bool { return command[0] == "BITFIELD" }
	for _, put := range behind(t) {
		for _, reads := range []bloom.Reads{bloom.ReadsPrimary, bloom.ReadsNearestFirst} {
			s := lagging(t, put)
			cfg := reading(reads)
			cfg.MissingIsEmpty = true
			f := handle(t, s.Client(upstash.WithoutSyncToken()), cfg)
			s.DenyFunc(deny)
			if found, err := f.Exists(t.Context(), "a"); found || err == nil {
				t.Errorf("%v: Exists = %v, %v, want an error", reads, found, err)
			}
			got, err := f.ExistsAll(t.Context(), []string{"a", "b"})
			if count(got) != 0 || err == nil {
				t.Errorf("%v: ExistsAll = %v, %v, want an error", reads, got, err)
			}
			s.DenyFunc(nil)
			exists(t, f, "a", true)
			exists(t, f, "b", false)
			add(t, f, "c", true)

			s.DenyFunc(deny)
			s.CatchUp()
			exists(t, f, "a", true)
			if found, err := f.Exists(t.Context(), "d"); found || !lacksPermission(err) {
				t.Errorf("%v: Exists = %v, %v, want ErrNoPermission", reads, found, err)
			}
		}
	}
}

// The late answer to a call that only reads, by a script, does not make the
// client forget what it wrote meanwhile.
func TestReadsNearestBesideALateRefresh(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithRegions(upstashtest.Region{Name: "far", Lag: math.MaxInt}))
	add(t, handleAt(t, s.Client(), "a", sparse()), "a", true)
	add(t, handleAt(t, s.Client(), "b", sparse()), "b", true)
	held := holdReply(3) // the second refresh finds nothing new
	c := s.RegionClient("far", held.through(t))
	m, err := bloom.NewMirror(handleAt(t, c, "a", sparse()), bloom.MirrorConfig{MaxStale: time.Hour})
	noError(t, err)
	var under sync.WaitGroup
	under.Go(func() {
		if err := errors.Join(m.Refresh(t.Context()), m.Refresh(t.Context())); err != nil {
			t.Error(err)
		}
	})
	<-held.here
	s.CatchUp() // the region now has what the late answer names
	f := handleAt(t, c, "b", reading(bloom.ReadsNearest))
	add(t, f, "x", true)
	close(held.release)
	under.Wait()
	exists(t, f, "x", true)
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

// A read-only client sends each look-up as one BITFIELD_RO, and no write.
func TestReadOnlyClient(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		add(t, handle(t, s.Client(), expiring(time.Hour)), "a", true)
		c := s.ReadOnlyClient()
		open := map[string]bloomtest.Call{"Open": func(ctx context.Context, _ *bloom.Filter) error {
			return errorOf(bloom.Open(ctx, c, key))
		}}
		for name, call := range calls(reads, open) {
			s.ResetStats()
			sent := bloomtest.Sent(s)
			err := call(t.Context(), handle(t, c, expiring(time.Hour)))
			if n := s.Stats().Requests; err != nil || n != 1 || (*sent)[0] != "BITFIELD_RO" {
				t.Errorf("%s: sent %v in %d requests, %v, want one that begins with BITFIELD_RO", name, *sent, n, err)
			}
		}
		s.InjectFunc(nil)
		f := handle(t, c, expiring(time.Hour))
		exists(t, f, "a", true)
		exists(t, f, "b", false)

		s.ResetStats()
		for name, call := range calls(adds, orders) {
			if err := call(t.Context(), f); !errors.Is(err, upstash.ErrReadOnly) || !upstash.SafeToRetry(err) {
				t.Errorf("%s: %v, want ErrReadOnly", name, err)
			}
		}
		wantRequests(t, s, 0)
	})
}

// A client with a read-only token, but without the option, asks twice. It
// trusts a "yes", but a "no" may come from a lagging replica.
func TestReadOnlyTokenWithoutTheOption(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		add(t, handle(t, s.Client(), expiring(time.Hour)), "a", true)
		c, err := upstash.New(s.URL, s.ReadOnlyToken)
		noError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		f := handle(t, c, expiring(time.Hour))
		exists(t, f, "a", true)
		if found, err := f.Exists(t.Context(), "b"); found || !lacksPermission(err) {
			t.Errorf("Exists of another item = %v, %v, want ErrNoPermission", found, err)
		}
		if found, err := f.ExistsAll(t.Context(), []string{"a", "b"}); !found[0] || !lacksPermission(err) {
			t.Errorf("ExistsAll = %v, %v, want one item found and ErrNoPermission", found, err)
		}
		noError(t, errorOf(bloom.ExistsIn(t.Context(), "a", f)))
		noError(t, errorOf(f.Cardinality(t.Context())))
		noError(t, errorOf(f.Stats(t.Context())))
		noError(t, errorOf(bloom.Open(t.Context(), c, key)))
		if _, err := f.Add(t.Context(), "b"); !lacksPermission(err) {
			t.Errorf("Add: %v, want the server's refusal", err)
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
