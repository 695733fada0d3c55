package bloom_test

import (
	"errors"
	"math"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// during calls what happens while the n-th request from now is under way,
// before it runs.
func during(s *upstashtest.Server, n int64, what func() upstashtest.Fault) {
	s.InjectFunc(func(i int64, _ upstashtest.RequestInfo) upstashtest.Fault {
		if i == n {
			return what()
		}
		return upstashtest.Fault{}
	})
}

// A copy is as old as the start of its refresh, however long that took.
func TestMirrorAgeCountsFromTheStart(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), roomy())
	mustAdd(t, f, "a")
	m, c := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Hour})
	during(s, 2, func() upstashtest.Fault {
		c.pass(time.Minute)
		return upstashtest.Fault{}
	})
	asks(t, s, m, "x", false, 2)
	if st := m.Stats(); st.Age != time.Minute {
		t.Errorf("the copy is %v old, want a minute", st.Age)
	}
}

// Parts that lack bits which were counted at the start are not believed: the
// filter was put back from a backup in between, with the same birth number.
func TestMirrorRefusesPartsThatLackBits(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), roomy())
	mustAdd(t, f, "a")
	do(t, s, "COPY", key, "backup")
	mustAdd(t, f, "b", "c")
	m, _ := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Hour})
	during(s, 2, func() upstashtest.Fault {
		_, _ = s.Exec("COPY", "backup", key, "REPLACE")
		return upstashtest.Fault{}
	})
	if err := m.Refresh(t.Context()); err == nil {
		t.Error("a refresh with too few bits is no error")
	}
	if m.Stats().Copied {
		t.Error("the copy counts as whole")
	}
}

// A part of the filter before, which comes when the copy is of another already,
// does not get into it.
func TestMirrorKeepsTwoFiltersApart(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, s.Client(), roomy())
	mustAdd(t, f, numbered("old", 100)...)
	m, _ := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Hour})
	asked := make(chan struct{})
	during(s, 2, func() upstashtest.Fault {
		close(asked)
		return upstashtest.Late(100 * time.Millisecond)
	})
	var refresh sync.WaitGroup
	refresh.Go(func() {
		if err := m.Refresh(t.Context()); !errors.Is(err, bloom.ErrRecreated) {
			t.Errorf("Refresh: %v, want ErrRecreated", err)
		}
	})
	<-asked
	do(t, s, "DEL", key)
	if added, err := m.AddThrough(t.Context(), "new"); !added || err != nil {
		t.Error(added, err)
	}
	refresh.Wait()
	if n := m.Stats().SetBits; n > 8 {
		t.Errorf("%d bits in the copy of a filter that has one item", n)
	}
	asks(t, s, m, "old-1", false, 1) // the count: the copy has all of the new one
}

// What a region says of the filter before is not learned.
func TestMirrorLearnsNothingFromARegionsPast(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithRegions(upstashtest.Region{Name: "far", Lag: math.MaxInt}))
	writer := handle(t, s.Client(), roomy())
	mustAdd(t, writer, "a")
	s.CatchUp()
	if _, err := writer.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, writer, "b")
	cfg := roomy()
	cfg.Reads = bloom.ReadsNearestFirst
	c := s.RegionClient("far", upstash.WithoutSyncToken())
	m, _ := mirror(t, handle(t, c, cfg), bloom.MirrorConfig{MaxTrust: time.Hour})
	asks(t, s, m, "b", true, 1) // the primary's, which proves the new one
	have := m.Stats().SetBits
	asks(t, s, m, "a", true, 1) // the region's yes is taken
	if n := m.Stats().SetBits; n != have {
		t.Errorf("%d bits in the copy, %d before a region spoke of the past", n, have)
	}
	s.CatchUp()
	asks(t, s, m, "a", false, 2) // the region's no, and the primary's
}

// A server that does not send RESP2 sends base64.
func TestMirrorWithoutRESP2(t *testing.T) {
	s := upstashtest.NewServer(t)
	web := &http.Client{}
	t.Cleanup(web.CloseIdleConnections)
	f := handle(t, s.Client(upstash.WithTransport(noRESP2{httptransport.New(web)})), roomy())
	mustAdd(t, f, "a", "b")
	m, _ := mirror(t, f, bloom.MirrorConfig{MaxStale: time.Hour})
	asks(t, s, m, "x", false, 2)
	asks(t, s, m, "a", true, 0)
	if got, want := m.Stats().SetBits, stats(t, f).SetBits; got != want {
		t.Errorf("the copy has %d bits set, the filter %d", got, want)
	}
}
