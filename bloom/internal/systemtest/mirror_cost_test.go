package systemtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// What a cold start costs, and what it would without the script that reads the state and
// the first part together: a look at the state, or a count, and then the part.
func TestColdStart(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx := t.Context()
		f := bloomtest.Handle(t, s.Client(), bloomtest.Small())
		bloomtest.Create(t, f, true)
		m := bloomtest.Mirror(t, f, bloom.MirrorConfig{MaxStale: time.Hour})
		cost := func(refusals int64, call func() error) string {
			s.ResetStats()
			bloomtest.NoError(t, call())
			return fmt.Sprintf("%d, %d", s.Stats().Requests-refusals, s.Stats().Billed)
		}
		refresh := func() error { return m.Refresh(ctx) }
		first := cost(0, refresh)
		bloomtest.Add(t, f, "a", true)
		says(t, "COSTS.md", "the first refresh of a `Mirror` "+first+" "+cost(0, refresh))
		for _, call := range []func() error{
			func() error {
				return bloomtest.ErrorOf(bloomtest.Handle(t, s.Client(), bloomtest.Small()).Snapshot(ctx))
			},
			func() error { return bloomtest.ErrorOf(bloom.TakeBackup(ctx, s.Client(), bloomtest.Key)) },
		} {
			now := cost(0, call)
			s.DenyFunc(func(command []string) bool { return command[0] == "EVAL" })
			says(t, "COSTS.md", "`Snapshot`, `TakeBackup` of any type "+now+" "+cost(1, call))
			s.DenyFunc(nil)
		}
	})
}

// A refresh costs what the table in COSTS.md says: billed commands, and the bytes that
// come back, for 100,000 items at 1%.
func TestMirrorRefreshTable(t *testing.T) {
	want := map[string][]string{}
	for _, panes := range []int{0, 1, 2, 4} {
		for step, cost := range refreshCosts(t, panes) {
			want[step] = append(want[step], cost)
		}
	}
	for step, costs := range want {
		says(t, "COSTS.md", step+" "+strings.Join(costs, " "))
	}
}

// refreshCosts returns what each refresh costs of a Mirror of a Window with so many
// panes, or of a Filter.
func refreshCosts(t *testing.T, panes int) map[string]string {
	const n, p = 100_000, 0.01
	ctx, start, passed := t.Context(), time.Now(), time.Duration(0)
	pane := time.Duration(midst(start)) * time.Second
	s := upstashtest.NewServer(t)
	c := aheadClient(s, start, &passed, upstash.WithTimeout(0))
	var f interface {
		bloom.Mirrorable
		bloomtest.Adder
	}
	f, err := bloom.New(c, bloomtest.Key, bloom.Config{Capacity: n, FPRate: p})
	if panes > 0 {
		f, err = bloom.NewWindow(c, bloomtest.Key, bloom.WindowConfig{
			Capacity: n, FPRate: p, Panes: panes, Span: time.Duration(panes)*pane - 5*time.Second,
		})
	}
	bloomtest.NoError(t, err)
	m := bloomtest.Mirror(t, f, bloom.MirrorConfig{MaxStale: time.Second})
	add := func(items ...string) { bloomtest.NoError(t, bloomtest.ErrorOf(f.AddAll(ctx, items))) }
	bloomtest.Create(t, f, true) // with all panes
	costs := map[string]string{}
	refresh := func(step string) {
		s.ResetStats()
		bloomtest.NoError(t, m.Refresh(ctx))
		got := s.Stats()
		bytes := uint64(got.BytesOut)
		if bytes > 1000 { // some bytes more or less, by the place of the pane
			bytes = (bytes + 50) / 100 * 100
		}
		costs[step] = fmt.Sprintf("%d, %s", got.Billed, human.Count(bytes))
	}
	add(bloomtest.Numbered("item", 50_000)...)
	refresh("the first")
	refresh("nothing new")
	add("another")
	refresh("one pane changed")
	costs["a turn"] = "-"
	if panes > 0 {
		passed += pane
		add("the next")
		refresh("a turn")
	}
	return costs
}

// With MaxStale a million look-ups cost 100,000 times fewer commands than
// Exists, and each has the server's answer. The short form makes a tenth of
// them.
func TestMirrorAnswersAMillionLookUps(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithRedis(testenv.Redis(t)))
	n := 100_000
	if testenv.Long() {
		n = 1_000_000
	}
	items := make([]string, n) // every second one is in the filter
	for i := range items {
		items[i] = fmt.Sprintf("user-%d@example.com", i)
	}
	f := bloomtest.Handle(t, s.Client(), bloom.Config{Capacity: uint64(n), FPRate: 0.01})
	bloomtest.NoError(t, bloomtest.ErrorOf(f.Load(t.Context(), func(yield func(string) bool) {
		for i := 0; i < n && yield(items[i]); i += 2 {
		}
	})))
	m := bloomtest.Mirror(t, f, bloom.MirrorConfig{MaxStale: time.Hour})
	s.ResetStats()
	got := make([]bool, n)
	start := time.Now()
	for i, item := range items {
		found, err := m.Exists(t.Context(), item)
		bloomtest.NoError(t, err)
		got[i] = found
	}
	took := time.Since(start)
	spent := s.Stats()
	if commands := spent.Commands + spent.Called; commands > 10 || spent.Requests > 2 {
		t.Errorf("%+v, want at most 10 commands and 2 requests", spent)
	}
	t.Logf("%d look-ups in %v, %d requests, %d commands with those of scripts, %d bytes; %+v",
		n, took, spent.Requests, spent.Commands+spent.Called, spent.BytesIn+spent.BytesOut, m.Stats())

	want, err := f.ExistsAll(t.Context(), items)
	bloomtest.NoError(t, err)
	if !slices.Equal(got, want) {
		t.Error("the Mirror's answers differ from the server's")
	}
	falsePositives := 0
	for i := range got {
		if i%2 == 0 && !got[i] {
			t.Fatalf("item %d was added but is not found", i)
		}
		if i%2 == 1 && got[i] {
			falsePositives++
		}
	}
	t.Logf("%d of %d absent items found", falsePositives, n/2)
}

// If four look-ups in five repeat an earlier item, only the fifth costs a
// command.
func TestMirrorOfAStreamWithRepeats(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithRedis(testenv.Redis(t)))
	const n = 10_000
	f := bloomtest.Handle(t, s.Client(), bloom.Config{Capacity: n, FPRate: 0.01})
	all := bloomtest.Numbered("user", n/5)
	bloomtest.MustAdd(t, f, all...)
	m := bloomtest.Mirror(t, f, bloom.MirrorConfig{})
	s.ResetStats()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		item := all[random.IntN(i/5+1)] // an earlier one, or
		if i%5 == 0 {
			item = all[i/5] // a new one
		}
		if found, err := m.Exists(t.Context(), item); !found || err != nil {
			t.Fatalf("Exists(%q) = %v, %v, want true", item, found, err)
		}
	}
	spent := s.Stats()
	if share := float64(spent.Commands) / n; share > 0.25 {
		t.Errorf("%v commands a look-up, want 0.25 at most", share)
	}
	t.Logf("%d look-ups, %d commands; %+v", n, spent.Commands, m.Stats())
}
