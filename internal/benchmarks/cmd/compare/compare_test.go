package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// The servers of a run are processes of the running program, here the test.
func TestMain(m *testing.M) {
	if played, err := playRole(os.Args[1:]); played {
		exitOn(err)
		return
	}
	os.Exit(m.Run())
}

// Every part runs, with one short round. If a part finds something wrong, that
// is an error.
func TestCompareRuns(t *testing.T) {
	testenv.Need(t, "redis", "redis-server")
	dir := t.TempDir()
	readme, tables := filepath.Join(dir, "README.md"), filepath.Join(dir, "tables.md")
	if err := os.WriteFile(readme, []byte("before\n"+factsBegin+"old\n"+factsEnd+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var out strings.Builder
	args := []string{"-rounds=1", "-turn=1ms", "-write=" + tables, "-node=false", "-readme=" + readme}
	if err := run(ctx, &out, args); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"**Add, callers: 64**", "**ExistsAll(1000), one caller**", "**1000000 items, found**",
		"| upbloom Filter | 1 | 1 |", "| upbloom Window | 1 | 1 |", "| Local, scheme xxh3 |", " full |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if text, err := os.ReadFile(tables); err != nil || string(text) != strings.TrimSpace(out.String())+"\n" {
		t.Errorf("%s: %v, %d bytes of %d printed", tables, err, len(text), out.Len())
	}
	text, err := os.ReadFile(readme)
	if err != nil || !strings.HasPrefix(string(text), "before\n"+factsBegin+"- An `Add` takes ") ||
		!strings.HasSuffix(string(text), factsEnd+"after\n") ||
		!strings.Contains(string(text), "times as fast as bits-and-blooms.\n") ||
		strings.Contains(string(text), "old") {
		t.Errorf("the facts in the README, %v:\n%s", err, text)
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// liar is a set that gives wrong answers.
type liar struct{ always, short bool }

func (liar) add([]string) error { return nil }

func (l liar) exists(items []string) ([]bool, error) {
	found := make([]bool, len(items))
	for i := range found {
		found[i] = l.always
	}
	if l.short {
		found = found[1:]
	}
	return found, nil
}

func TestCheckRefusesWrongAnswers(t *testing.T) {
	for _, c := range []struct {
		set  liar
		want string
	}{
		{liar{}, "is not found"},
		{liar{always: true}, "absent items were found"},
		{liar{always: true, short: true}, "answers for"},
	} {
		for _, size := range []int{1, 10} {
			if err := check(c.set, size); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %d items a call: %v, want %q", c.set, size, err, c.want)
			}
		}
	}
}

// The contestants take turns, and every other round goes backwards.
func TestTurnsAlternate(t *testing.T) {
	var order string
	c := &contest{callers: 1}
	for _, name := range []string{"a", "b", "c"} {
		c.contestants = append(c.contestants, &contestant{
			name: name, items: 1,
			run: func(int, time.Duration) (effort, error) {
				order += name
				return effort{calls: 10, took: time.Second, cpu: time.Second}, nil
			},
		})
	}
	if err := c.play(t.Context(), settings{rounds: 3, turn: time.Second}); err != nil {
		t.Fatal(err)
	}
	if want := "cbaabccbaabc"; order != want { // the first round is not counted
		t.Errorf("turns %s, want %s", order, want)
	}
	a, b := c.contestants[0], c.contestants[1]
	if a.ratio(b) != (spread{1, 1, 1}) || a.cpuRatio(b) != (spread{1, 1, 1}) {
		t.Errorf("ratios of equals: %v, %v", a.ratio(b), a.cpuRatio(b))
	}
}

func TestFailedTurnEndsTheContest(t *testing.T) {
	lost := errors.New("lost")
	c := &contest{callers: 4, contestants: []*contestant{
		{name: "a", items: 1, do: func(uint64) error { return lost }},
	}}
	if err := c.play(t.Context(), settings{rounds: 3, turn: time.Hour}); !errors.Is(err, lost) {
		t.Errorf("%v, want %v", err, lost)
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   spread
	}{
		{nil, spread{}},
		{[]float64{7}, spread{7, 7, 7}},
		{[]float64{3, 1, 2}, spread{1.5, 2, 2.5}},
		{[]float64{4, 3, 2, 1}, spread{1.75, 2.5, 3.25}},
	} {
		given := slices.Clone(c.values)
		if got := spreadOf(c.values); got != c.want || !slices.Equal(given, c.values) {
			t.Errorf("quartiles of %v: %v, want %v", given, got, c.want)
		}
	}
}

func TestFigure(t *testing.T) {
	for x, want := range map[float64]string{
		0.1234: "0.123", 12.34: "12.3", 123.4: "123", 1234: "1,230", 12345: "12,300", 1234567: "1,230,000",
		999_600: "1,000,000",
	} {
		if got := figure(x); got != want {
			t.Errorf("figure(%v) = %s, want %s", x, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	word := strings.Repeat("x", 58)
	if got, want := wrap("- "+word+" "+word+" "+word, "  "), "- "+word+"\n  "+word+"\n  "+word+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
