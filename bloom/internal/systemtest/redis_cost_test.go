package systemtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A countingRedis counts the commands that run in a Redis, by the Redis's own
// statistics. A command within a script counts too, as it does in a bill.
type countingRedis struct {
	t    *testing.T
	addr string
	*upstashtest.Server
}

func newCountingRedis(t *testing.T) countingRedis {
	addr := testenv.Redis(t)
	return countingRedis{t, addr, upstashtest.NewServer(t, upstashtest.WithRedis(addr))}
}

// notBilled are what the test asks by, and what the REST server of the tests sends
// by itself: it changes the user around a script, and looks after its connections.
var notBilled = []string{"config|resetstat", "info", "quit", "auth", "ping"}

// commands returns how often each command ran during a call.
func (r countingRedis) commands(call func()) (total int, each map[string]int) {
	r.t.Helper()
	testenv.Ask(r.t, r.addr, "CONFIG RESETSTAT")
	call()
	each = map[string]int{}
	for line := range strings.Lines(testenv.Ask(r.t, r.addr, "INFO commandstats")) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok || slices.Contains(notBilled, name) {
			continue
		}
		calls, _, _ := strings.Cut(rest, ",")
		n, err := strconv.Atoi(calls)
		if err != nil {
			r.t.Fatalf("INFO commandstats: %q", line)
		}
		total, each[name] = total+n, n
	}
	return total, each
}

// A Scalable costs what its doc says, counted by Redis, and the server bills what
// Redis counts.
func TestScalableCountedByRedis(t *testing.T) {
	r := newCountingRedis(t)
	c := r.Client(upstash.WithTimeout(0))
	f, err := bloom.NewScalable(c, bloomtest.Key, bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	add := func(items ...string) func() { return func() { bloomtest.MustAdd(t, f, items...) } }
	thousand := bloomtest.Numbered("item", 1000)
	for _, step := range []struct {
		name string
		call func()
		want int
	}{
		{"the first Add", add("a"), 4},
		{"Add of a new item", add("b"), 3},
		{"Add of a known item", add("b"), 2},
		{"AddAll of 1,000, which grows", add(thousand...), 5},
		{"AddAll of 1,000 known", add(thousand...), 3},
		{"Exists", func() { _, _ = f.Exists(t.Context(), "a") }, 1},
		{"ExistsAll of 1,000", func() { _, _ = f.ExistsAll(t.Context(), thousand) }, 1},
	} {
		r.ResetStats()
		total, each := r.commands(step.call)
		if billed := r.Stats().Billed; total != step.want || billed != int64(total) {
			t.Errorf("%s: Redis counts %d commands, %v, and the server bills %d, want %d",
				step.name, total, each, billed, step.want)
		}
		t.Logf("%-28s %d commands: %v", step.name, total, each)
	}
}

// If nine items in ten are known, it is cheaper to look first: 1.3 commands an
// item instead of 2.1. Scalable's doc says so.
func TestExistsFirstCountedByRedis(t *testing.T) {
	const n = 1000
	for name, tt := range map[string]struct {
		take func(f *bloom.Scalable, item string) error
		want float64
	}{
		"Add": {func(f *bloom.Scalable, item string) error {
			_, err := f.Add(t.Context(), item)
			return err
		}, 2.1},
		"Exists, and Add if it is not found": {func(f *bloom.Scalable, item string) error {
			found, err := f.Exists(t.Context(), item)
			if err == nil && !found {
				_, err = f.Add(t.Context(), item)
			}
			return err
		}, 1.3},
	} {
		r := newCountingRedis(t)
		f, err := bloom.NewScalable(r.Client(), bloomtest.Key, bloom.ScalableConfig{Capacity: 2000, FPRate: 1e-8})
		if err != nil {
			t.Fatal(err)
		}
		bloomtest.MustAdd(t, f, bloomtest.Numbered("known", n*9/10)...)
		total, each := r.commands(func() {
			for i := range n {
				item := fmt.Sprint("known-", i*9/10)
				if i%10 == 0 {
					item = fmt.Sprint("new-", i)
				}
				if err := tt.take(f, item); err != nil {
					t.Fatal(err)
				}
			}
		})
		if got := float64(total) / n; got != tt.want {
			t.Errorf("%s: %v commands an item, %v, want %v", name, got, each, tt.want)
		}
		t.Logf("%s: %d commands for %d items, 90%% of them known: %v", name, total, n, each)
	}
}
