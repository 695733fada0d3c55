package bloom_test

import (
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

func near() bloom.Config {
	cfg := sparse()
	cfg.ReadsNearest = true
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

// The late answer to a call that only reads, by a script, does not make the
// client forget what it wrote meanwhile.
func TestReadsNearestBesideALateRefresh(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithRegions(upstashtest.Region{Name: "far", Lag: math.MaxInt}))
	add(t, handleAt(t, s.Client(), "a", sparse()), "a", true)
	add(t, handleAt(t, s.Client(), "b", sparse()), "b", true)
	held, through := holdReply(t, 2) // the second refresh finds nothing new
	c := s.RegionClient("far", through)
	m := newMirror(t, handleAt(t, c, "a", sparse()), bloom.MirrorConfig{MaxStale: time.Hour})
	var under sync.WaitGroup
	under.Go(func() {
		if err := errors.Join(m.Refresh(t.Context()), m.Refresh(t.Context())); err != nil {
			t.Error(err)
		}
	})
	<-held.Here
	s.CatchUp() // the region now has what the late answer names
	f := handleAt(t, c, "b", near())
	add(t, f, "x", true)
	held.Free <- nil
	under.Wait()
	exists(t, f, "x", true)
}

// No part of a number is certain in a region's answer: a Count is the primary's,
// or it is an error, unless the caller accepts what a region says.
func TestCuckooCountIsThePrimarys(t *testing.T) {
	const region, primary = 1, 3
	noBitField := func(command []string) bool { return command[0] == "BITFIELD" }
	for _, c := range []struct {
		near     bool
		readOnly bool
		deny     func(command []string) bool
		want     uint64
		requests int64
	}{
		{false, false, nil, primary, 1},
		{false, false, noBitField, 0, 1},
		{true, false, noBitField, region, 1},
		{false, true, nil, region, 1},
	} {
		s := upstashtest.NewServer(t)
		cfg := bloom.CuckooConfig{Capacity: 100, FPRate: 0.01, ReadsNearest: c.near}
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
	for _, cfg := range []bloom.Config{sparse(), near()} {
		f := handle(t, s.Client(), cfg)
		_, err := f.Exists(t.Context(), "a")
		says("Exists", err, cfg.ReadsNearest)
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

// A Window has no ReadsNearest: its look-ups go to the primary, and those of a read-only
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
