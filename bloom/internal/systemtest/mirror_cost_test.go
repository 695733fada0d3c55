package systemtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

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
	if _, err := f.Load(t.Context(), func(yield func(string) bool) {
		for i := 0; i < n && yield(items[i]); i += 2 {
		}
	}); err != nil {
		t.Fatal(err)
	}
	m, err := bloom.NewMirror(f, bloom.MirrorConfig{MaxStale: time.Hour, MaxTrust: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s.ResetStats()
	got := make([]bool, n)
	start := time.Now()
	for i, item := range items {
		if got[i], err = m.Exists(t.Context(), item); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(start)
	spent := s.Stats()
	if commands := spent.Commands + spent.Called; commands > 10 || spent.Requests > 2 {
		t.Errorf("%+v, want at most 10 commands and 2 requests", spent)
	}
	t.Logf("%d look-ups in %v, %d requests, %d commands with those of scripts, %d bytes; %+v",
		n, took, spent.Requests, spent.Commands+spent.Called, spent.BytesIn+spent.BytesOut, m.Stats())

	want, err := f.ExistsAll(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
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
	m, err := bloom.NewMirror(f, bloom.MirrorConfig{MaxTrust: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
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
