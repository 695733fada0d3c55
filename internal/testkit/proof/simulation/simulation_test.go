package simulation

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/upbloom/upbloom/internal/testkit/proof"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

var (
	seeds  = flag.Int("simulation.seeds", 50, "how many seeds to run")
	first  = flag.Uint64("simulation.first", 1, "the first of them")
	themes = flag.String("simulation.themes", "all", "the groups of verbs beside the plain ones")
	types  = flag.String("simulation.types", "filter,window,cuckoo,scalable,sharded,near,mixed", "the types of filters")
	seed   = flag.Uint64("simulation.seed", 0, "run this one alone, and show its story with -v")
)

// TestSeeds runs clients, a REST server and a filter on a virtual clock, over a
// network in memory. It checks the clients' answers with the model of package
// proof. What goes wrong, and when, depends only on the seed.
func TestSeeds(t *testing.T) {
	if *seed != 0 {
		r, err := runSeed(t, *seed, proof.ParseTheme(*themes), false)
		t.Log(r.history, r)
		if err != nil {
			t.Error(err)
		}
		return
	}
	var undecided atomic.Int32
	t.Cleanup(func() { proof.ReportUndecided(t, int(undecided.Load()), *seeds) })
	shards := runtime.GOMAXPROCS(0)
	for shard := range shards {
		t.Run(fmt.Sprint("shard=", shard), func(t *testing.T) {
			t.Parallel()
			failed := 0
			for n := shard; n < *seeds && failed < 3; n += shards {
				err := checkSeed(t, *first+uint64(n))
				if errors.Is(err, proof.ErrUndecided) {
					undecided.Add(1)
				} else if err != nil {
					failed++
				}
			}
		})
	}
}

func checkSeed(t *testing.T, seed uint64) error {
	r, err := runSeed(t, seed, proof.ParseTheme(*themes), false)
	if err != nil && !errors.Is(err, proof.ErrUndecided) {
		t.Errorf("seed %d: %v\n%v\nagain: go test ./internal/testkit/proof/simulation"+
			" -run TestSeeds -v -simulation.seed=%d", seed, err, r, seed)
	}
	return err
}

// runSeed runs a seed in its own bubble and checks its history.
func runSeed(t *testing.T, seed uint64, themes proof.Theme, restless bool) (r *run, err error) {
	defer func() { // synctest panics if no goroutine can go on
		if p := recover(); p != nil {
			panic(fmt.Sprintf("seed %d: %v", seed, p))
		}
	}()
	synctest.Test(t, func(*testing.T) {
		sc := newScenario(seed, strings.Split(*types, ","), themes)
		sc.restless = restless
		r, err = simulate(sc)
	})
	if err == nil {
		err = r.history.Check()
	}
	return r, err
}

// TestSameSeedSameRun runs each seed twice and compares the histories and what
// travelled, if no two acts were at one instant. The callers of a crowd wait for
// one answer and wake in any order. The second run is restless: see yield.
func TestSameSeedSameRun(t *testing.T) {
	on := proof.ParseTheme(*themes)
	last := uint64(12)
	if testenv.Long() {
		last = 300
	}
	two := uint64(0)
	for seed := uint64(1); seed <= last; seed++ {
		a, _ := runSeed(t, seed, on, false)
		b, _ := runSeed(t, seed, on, true)
		crowd := strings.Contains(a.history.String(), string(proof.Crowd))
		if crowd || a.net.twoWays.Load() || b.net.twoWays.Load() {
			two++
		} else if a.net.sum != b.net.sum || a.history.String() != b.history.String() {
			t.Errorf("seed %d ran in two ways:\n%v%v\n%v%v", seed, a.history, a, b.history, b)
		}
	}
	t.Logf("%d of %d seeds can run in two ways, and note it", two, last)
	if two > last/2 {
		t.Error("most seeds can run in two ways")
	}
}
