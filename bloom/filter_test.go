package bloom_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// If many goroutines add an item at once, through one handle or several,
// exactly one is told "new".
func TestOneOfManyAddsIsNew(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		const goroutines, items = 8, 30
		c := s.Client()
		shared := handle(t, c, expiring(time.Hour))
		for i := range items {
			item := fmt.Sprint("item-", i)
			added, found := make([]bool, goroutines), make([]bool, goroutines)
			var running sync.WaitGroup
			for g := range goroutines {
				f := shared
				if g%2 == 1 {
					f = handle(t, c, expiring(time.Hour))
				}
				running.Go(func() {
					var err error
					if g%3 == 0 {
						var all []bool
						all, err = f.AddAll(t.Context(), []string{item})
						added[g] = count(all) == 1
					} else {
						added[g], err = f.Add(t.Context(), item)
					}
					if err == nil {
						found[g], err = f.Exists(t.Context(), item)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			running.Wait()
			if count(added) != 1 || count(found) != goroutines {
				t.Fatalf("%s: new to %d, found by %d of %d", item, count(added), count(found), goroutines)
			}
		}
		wantTTL(t, s, time.Hour)
	})
}

// Each item of two simultaneous AddAlls is new to exactly one of them.
func TestTwoBatchesAtOnce(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg := sparse()
		cfg.BatchBytes = 2000
		items := numbered("item", 300)
		var got [2][]bool
		var running sync.WaitGroup
		for i := range got {
			f := handle(t, s.Client(), cfg)
			running.Go(func() {
				var err error
				if got[i], err = f.AddAll(t.Context(), items); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		for i := range items {
			if got[0][i] == got[1][i] {
				t.Fatalf("item %d: new to both or to none: %v", i, got[0][i])
			}
		}
	})
}

// A client reads its own writes, even if the nearest replica does not have them
// yet.
func TestReadsItsWritesPastALaggingReplica(t *testing.T) {
	s := upstashtest.NewServer(t)
	s.SetReplicaLag(math.MaxInt)
	f := handle(t, s.Client(), small())
	add(t, f, "a", true)
	exists(t, f, "a", true)
	if n, err := f.Cardinality(t.Context()); n != 1 || err != nil {
		t.Errorf("Cardinality = %d, %v, want 1", n, err)
	}
	if st, err := f.Stats(t.Context()); err != nil || st.Items != 1 {
		t.Errorf("Stats = %+v, %v, want 1 item", st, err)
	}
	// A replica's answer does not affect a handle's writes.
	stale := handle(t, s.Client(upstash.WithoutSyncToken()), small())
	if _, err := stale.Stats(t.Context()); err == nil {
		t.Error("the replica has the filter already: the test shows nothing")
	}
	add(t, stale, "a", false)
	exists(t, stale, "a", true)
}

// A Filter in a log shows neither its key nor its seed.
func TestFilterFormat(t *testing.T) {
	cfg := small()
	cfg.Seed = 123456789
	f := handle(t, upstashtest.NewServer(t).Client(), cfg)
	const want = "bloom.Filter(10,759 bits (1.3 KiB), k=4, blocked, seeded)"
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
		if got := fmt.Sprintf(verb, f); got != want {
			t.Errorf("%s: %s, want %s", verb, got, want)
		}
	}
}
