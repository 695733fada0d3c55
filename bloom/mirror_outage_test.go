package bloom_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A database that comes back without an acknowledged write has the same birth
// number, and after another Add the same count. The copy believes that for
// MaxCopy, and not without end.
func TestMirrorAfterLostWrites(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), roomy())
		mustAdd(t, f, "a")
		do(t, s, "COPY", key, "backup")
		mustAdd(t, f, "lost")
		m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Minute, MaxCopy: 10 * time.Minute})
		wantLookUp(t, s, m, "lost", present, inTwoRequests)

		do(t, s, "COPY", "backup", key, "REPLACE")
		mustAdd(t, f, "later") // as many bits as "lost" had
		c.pass(2 * time.Minute)
		wantLookUp(t, s, m, "later", absent, inOneRequest) // the counts are equal

		c.pass(8*time.Minute + 1)
		wantLookUp(t, s, m, "later", present, inTwoRequests)
		wantLookUp(t, s, m, "lost", absent, fromCopy)
	})
}

// Without MaxStale the copy never downloads. A "seen" of a lost write ends too.
func TestMirrorForgetsAfterMaxCopy(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), roomy())
	mustAdd(t, f, "a")
	do(t, s, "COPY", key, "backup")
	mustAdd(t, f, "lost")
	m, c := mirror(t, f, bloom.MirrorConfig{MaxTrust: time.Hour, MaxCopy: 10 * time.Minute})
	wantLookUp(t, s, m, "lost", present, inOneRequest)
	do(t, s, "COPY", "backup", key, "REPLACE")
	c.pass(10 * time.Minute)
	wantLookUp(t, s, m, "lost", present, fromCopy)
	c.pass(1)
	wantLookUp(t, s, m, "lost", absent, inOneRequest)
	wantLookUp(t, s, m, "lost", absent, inOneRequest)
}

// COPY keeps the birth number: two filters of one number stand at the key, one
// after the other. What a download brings is the filter that is there.
func TestMirrorOfACopiedFilter(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), roomy())
	mustAdd(t, f, "a")
	do(t, s, "COPY", key, "other")
	mustAdd(t, f, "old")
	m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Minute})
	wantLookUp(t, s, m, "old", present, inTwoRequests)

	other := handleAt(t, s.Client(), "other", roomy())
	mustAdd(t, other, "new-1", "new-2")
	do(t, s, "RENAME", "other", key)
	c.pass(time.Minute + 1)
	wantLookUp(t, s, m, "new-1", present, inTwoRequests)
	wantLookUp(t, s, m, "old", absent, fromCopy)
}

// The answers that come during a download are in the new copy too.
func TestMirrorKeepsWhatItLearnsDuringADownload(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), roomy())
	mustAdd(t, f, "a")
	h := holdReply(2) // of the count, and then of the part
	m, _ := mirror(t, handle(t, h.client(t, s), roomy()), bloom.MirrorConfig{MaxStale: time.Minute})
	refreshed := make(chan error)
	go func() { refreshed <- m.Refresh(t.Context()) }()
	<-h.here
	if added, err := m.AddThrough(t.Context(), "own"); !added || err != nil {
		t.Errorf("AddThrough: %t, %v, want new", added, err)
	}
	close(h.release)
	noError(t, <-refreshed)
	wantLookUp(t, s, m, "own", present, fromCopy)
	wantLookUp(t, s, m, "a", present, fromCopy)
}

// Once the proof is older than MaxTrust, one request proves for all callers.
func TestMirrorProvesOnceForAllCallers(t *testing.T) {
	for name, call := range map[string]func(m *bloom.Mirror) error{
		"Exists": func(m *bloom.Mirror) error {
			found, err := m.Exists(t.Context(), "a")
			return expect(found, err)
		},
		"ExistsAll": func(m *bloom.Mirror) error {
			found, err := m.ExistsAll(t.Context(), []string{"a"})
			return expect(len(found) == 1 && found[0], err)
		},
		"Add": func(m *bloom.Mirror) error {
			added, err := m.Add(t.Context(), "a")
			return expect(!added, err)
		},
		"AddAll": func(m *bloom.Mirror) error {
			added, err := m.AddAll(t.Context(), []string{"a"})
			return expect(len(added) == 1 && !added[0], err)
		},
	} {
		s := upstashtest.NewServer(t)
		f := handle(t, s.Client(), roomy())
		mustAdd(t, f, "a")
		h := holdReply(2)
		m, c := mirror(t, handle(t, h.client(t, s), roomy()), bloom.MirrorConfig{})
		wantLookUp(t, s, m, "a", present, inOneRequest)
		c.pass(time.Minute + 1)

		before := s.Stats().Requests
		var callers sync.WaitGroup
		callers.Go(func() {
			if err := call(m); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		<-h.here
		for range 29 {
			callers.Go(func() {
				if err := call(m); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		close(h.release)
		callers.Wait()
		if n := s.Stats().Requests - before; n != 1 {
			t.Errorf("%s: %d requests of thirty callers, want 1", name, n)
		}
	}
}

// expect returns an error if there is one, or if the answer is wrong.
func expect(right bool, err error) error {
	if err == nil && !right {
		err = errors.New("a wrong answer")
	}
	return err
}

// outage makes a server that drops all requests while down is set.
func outage(t *testing.T, opts ...upstash.Option) (s *upstashtest.Server, c *upstash.Client, down *atomic.Bool) {
	t.Helper()
	s, down = upstashtest.NewServer(t), new(atomic.Bool)
	s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		if down.Load() {
			return upstashtest.Drop(upstashtest.BeforeExec)
		}
		return upstashtest.Fault{}
	})
	return s, s.Client(append(opts, upstash.WithRetry(0))...), down
}

// In an outage the copy answers for StaleIfError beyond its limits, and one call
// a second asks.
func TestMirrorStaleIfError(t *testing.T) {
	var labels []string
	s, client, down := outage(t, upstash.WithObserver(func(_ context.Context, e upstash.Event) {
		labels = append(labels, e.Label)
	}))
	mustAdd(t, handle(t, s.Client(), roomy()), "a")
	m, c := mirror(t, handle(t, client, roomy()), bloom.MirrorConfig{
		MaxStale: 10 * time.Second, MaxTrust: 10 * time.Second, MaxCopy: 10 * time.Second, StaleIfError: time.Minute,
	})
	wantLookUp(t, s, m, "a", present, inTwoRequests)
	down.Store(true)
	c.pass(10*time.Second + 1)
	began := c.Now()
	wantLookUp(t, s, m, "x", absent, inOneRequest) // the refresh that fails
	if since := m.Stats().StaleSince; !since.Equal(began) {
		t.Errorf("stale since %v, want %v", since, began)
	}
	wantLookUp(t, s, m, "a", present, fromCopy)
	found, err := m.ExistsAll(t.Context(), []string{"a", "x"})
	if err != nil || !found[0] || found[1] {
		t.Errorf("ExistsAll in an outage: %v, %v, want [true false]", found, err)
	}
	c.pass(time.Second + 1)
	labels = nil
	wantLookUp(t, s, m, "a", present, inOneRequest)
	if len(labels) == 0 || !strings.Contains(labels[0], "stale since "+began.UTC().Format(time.RFC3339)) {
		t.Errorf("labels %q, want since when the copy is stale", labels)
	}

	c.pass(59 * time.Second) // past the sum of the limits
	for _, item := range []string{"a", "x"} {
		if _, err := m.Exists(t.Context(), item); err == nil {
			t.Errorf("Exists(%s) of a copy that is too old: no error", item)
		}
	}
	down.Store(false)
	mustAdd(t, handle(t, s.Client(), roomy()), "x")
	c.pass(time.Second + 1)
	wantLookUp(t, s, m, "x", present, inTwoRequests)
	if since := m.Stats().StaleSince; !since.IsZero() {
		t.Errorf("stale since %v, want not at all", since)
	}
}

// Without MaxStale the copy says no "no", in an outage either.
func TestMirrorStaleIfErrorWithoutMaxStale(t *testing.T) {
	s, client, down := outage(t)
	mustAdd(t, handle(t, s.Client(), roomy()), "a")
	m, c := mirror(t, handle(t, client, roomy()), bloom.MirrorConfig{StaleIfError: time.Hour})
	wantLookUp(t, s, m, "a", present, inOneRequest)
	down.Store(true)
	c.pass(2 * time.Minute)
	wantLookUp(t, s, m, "a", present, inOneRequest)
	if _, err := m.Exists(t.Context(), "x"); err == nil {
		t.Error("Exists of an item that is not in the copy: no error")
	}
	var batch *bloom.BatchError
	if _, err := m.ExistsAll(t.Context(), []string{"a", "x"}); !errors.As(err, &batch) {
		t.Errorf("ExistsAll with such an item: %v, want a BatchError", err)
	}
	if _, err := m.Add(t.Context(), "x"); err == nil {
		t.Error("Add in an outage: no error")
	}
}

// A filter that is gone, is another one or was made again is an answer, and so is
// a refusal.
func TestMirrorStaleIfErrorEndsWithAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, s *upstashtest.Server)
		want   func(found bool, err error) bool
	}{
		"missing": {
			func(t *testing.T, s *upstashtest.Server) { do(t, s, "DEL", key) },
			func(_ bool, err error) bool { return errors.Is(err, bloom.ErrNotFound) },
		},
		"another": {
			func(t *testing.T, s *upstashtest.Server) {
				do(t, s, "DEL", key)
				mustAdd(t, handle(t, s.Client(), bloom.Config{Capacity: 55, FPRate: 0.01}), "a")
			},
			func(_ bool, err error) bool { return errors.As(err, new(*bloom.MismatchError)) },
		},
		"made again": {
			func(t *testing.T, s *upstashtest.Server) {
				do(t, s, "DEL", key)
				mustAdd(t, handle(t, s.Client(), roomy()), "b")
			},
			func(found bool, err error) bool { return !found && err == nil },
		},
		"refused": {
			func(t *testing.T, s *upstashtest.Server) { s.DenyFunc(func([]string) bool { return true }) },
			func(_ bool, err error) bool { return err != nil },
		},
	} {
		s, client, down := outage(t)
		mustAdd(t, handle(t, s.Client(), roomy()), "a")
		m, clock := mirror(t, handle(t, client, roomy()), bloom.MirrorConfig{
			MaxStale: time.Second, MaxTrust: time.Second, StaleIfError: time.Hour,
		})
		wantLookUp(t, s, m, "a", present, inTwoRequests)
		down.Store(true)
		clock.pass(time.Minute)
		wantLookUp(t, s, m, "a", present, inOneRequest)
		down.Store(false)
		c.change(t, s)
		clock.pass(2 * time.Second)
		if found, err := m.Exists(t.Context(), "a"); !c.want(found, err) {
			t.Errorf("%s: Exists is %t, %v", name, found, err)
		}
		if since := m.Stats().StaleSince; !since.IsZero() {
			t.Errorf("%s: stale since %v, want not at all", name, since)
		}
	}
}
