package readers_test

import (
	"context"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// both lets Go and a reader look the items of a question up. They must answer
// alike, and want says what.
func both(t *testing.T, r *reader, q question, want []bool,
	goes func(context.Context, []string) ([]bool, error),
) {
	t.Helper()
	found, err := goes(t.Context(), q["items"].([]string))
	if err != nil || !reflect.DeepEqual(found, want) {
		t.Fatalf("Go finds %v, %v, want %v", runs(found), err, runs(want))
	}
	var reads []bool
	if failure := r.ask(t, q, &reads); failure != "" || !reflect.DeepEqual(reads, want) {
		t.Errorf("the reader finds %v, %s, want %v", runs(reads), failure, runs(want))
	}
}

// runs says which answers are yes: from 0 to below 500, for example.
func runs(answers []bool) (yes [][2]int) {
	for i, found := range answers {
		switch n := len(yes); {
		case !found:
		case n > 0 && yes[n-1][1] == i:
			yes[n-1][1]++
		default:
			yes = append(yes, [2]int{i, i + 1})
		}
	}
	return yes
}

// Layers made by Go while it added: what is in any of them is found.
func TestGrownByGo(t *testing.T) {
	eachReader(t, func(t *testing.T, s *upstashtest.Server, r *reader) {
		f, err := bloom.NewScalable(s.Client(), "k", bloom.ScalableConfig{
			Capacity: 1000, FPRate: 1e-8, Seed: 5,
		})
		if err != nil {
			t.Fatal(err)
		}
		items := numbered("seen", 7000)
		var asked []string // every tenth, and more than one command takes
		for i := 0; i < len(items); i += 10 {
			asked = append(asked, items[i])
		}
		q := question{"op": "exists", "key": "k", "seed": "5", "items": asked}
		for i, layers := 0, 0; layers < 3; i += 500 {
			if i == len(items) {
				t.Fatalf("%d items are in %d layers, want three", i, layers)
			}
			if _, err := f.AddAll(t.Context(), items[i:i+500]); err != nil {
				t.Fatal(err)
			}
			st, err := f.Stats(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(st.Layers) > layers {
				layers = len(st.Layers)
				in := i/10 + 50
				both(t, r, q, append(times(in, true), times(len(asked)-in, false)...), f.ExistsAll)
			}
		}
	})
}

// A window turned by Go at each epoch. The items of three panes are found.
// Those of the fourth, the oldest, have expired at first, and then Go clears
// it.
func TestTurnedByGo(t *testing.T) {
	eachReader(t, func(t *testing.T, s *upstashtest.Server, r *reader) {
		w, err := bloom.NewWindow(s.Client(), "k", bloom.WindowConfig{
			Capacity: 1000, FPRate: 1e-8, Span: 24 * time.Hour, Panes: 2, Seed: 5,
		})
		if err != nil {
			t.Fatal(err)
		}
		const each = 20
		items := numbered("seen", 7*each)
		q := question{"op": "exists", "key": "k", "seed": "5", "items": items}
		// from asks about all items. It wants the batches from first to last.
		from := func(first, last int) {
			t.Helper()
			want := times(len(items), false)
			for i := max(0, first) * each; i < (last+1)*each; i++ {
				want[i] = true
			}
			q["now"] = now(t, s).Unix()
			both(t, r, q, want, w.ExistsAll)
		}
		const pane = 12*time.Hour + 3*time.Second
		// In the middle of a pane no epoch ends while the test runs.
		s.FastForward(now(t, s).Truncate(pane).Add(pane * 3 / 2).Sub(now(t, s)))
		for e := range 7 {
			if e > 0 {
				from(e-2, e-1) // nobody has turned it yet
			}
			if _, err := w.AddAll(t.Context(), items[e*each:(e+1)*each]); err != nil {
				t.Fatal(err)
			}
			from(e-2, e)
			st, err := w.Stats(t.Context())
			if err != nil || st.PaneSpan != pane || len(st.Panes) < 3 {
				t.Fatalf("%v, %v, want panes of %v", st, err, pane)
			}
			s.FastForward(pane)
		}
		s.FastForward(pane)
		from(6, 6)
		s.FastForward(pane)
		from(7, 6) // none
	})
}

// now returns the time of the database.
func now(t *testing.T, s *upstashtest.Server) time.Time {
	t.Helper()
	reply, err := s.Client().Do(t.Context(), upstash.Cmd("TIME"))
	if err != nil {
		t.Fatal(err)
	}
	parts, err := reply.Array()
	if err != nil {
		t.Fatal(err)
	}
	text, err := parts[0].Text()
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(seconds, 0)
}
