package linear

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/proof"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

var (
	histories = flag.Int("linear.histories", 30, "how many histories to make on each database")
	themes    = flag.String("linear.themes", "moves,copies,counts,mirrors,writers,causes,oldserver",
		"the groups of verbs beside the plain ones; crowds need a clock on which callers begin at once")
	types = flag.String("linear.types", "filter,window,cuckoo,scalable,sharded", "the types of filters")
	first = flag.Uint64("linear.first", 1, "the seed of the first")
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "the other process:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestEmbedded checks histories of handles in three processes, with the
// embedded database.
func TestEmbedded(t *testing.T) { check(t, &lab{}) }

// TestRedis is TestEmbedded with two servers in front of one Redis.
func TestRedis(t *testing.T) { check(t, &lab{redis: testenv.Redis(t)}) }

func check(t *testing.T, l *lab) {
	l.themes, l.types = proof.ParseTheme(*themes), strings.Split(*types, ",")
	for range 2 {
		p, err := startProcess()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.stop(); err != nil {
				t.Errorf("the other process: %v", err)
			}
		})
		l.processes = append(l.processes, p)
	}
	const atOnce = 6 // most of them wait for timeouts
	var undecided atomic.Int32
	t.Run("histories", func(t *testing.T) {
		for i := range atOnce {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for n := i; n < *histories; n += atOnce {
					seed := *first + uint64(n)
					if err := l.check(seed); errors.Is(err, proof.ErrUndecided) {
						undecided.Add(1)
					} else if err != nil {
						t.Errorf("history %d: %v", seed, err)
					}
				}
			})
		}
	})
	proof.ReportUndecided(t, int(undecided.Load()), *histories)
}
