package bloom_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Filters of several kinds in one AddIn or ExistsIn.

func windowAt(t *testing.T, c *upstash.Client, key string, cfg bloom.WindowConfig) *bloom.Window {
	t.Helper()
	w, err := bloom.NewWindow(c, key, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func scalableAt(t *testing.T, c *upstash.Client, key string, cfg bloom.ScalableConfig) *bloom.Scalable {
	t.Helper()
	s, err := bloom.NewScalable(c, key, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// eachKind runs a test with a client that lives by clock, and a filter, a
// window and a scalable filter of it.
func eachKind(t *testing.T, do func(t *testing.T, s *upstashtest.Server, k mixture)) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		k := mixture{clock: newServerClock()}
		c, wire := timedClient(t, s, k.clock)
		k.c, k.wire = c, wire
		k.filter, k.window, k.scalable = handleAt(t, c, "filter", small()), windowAt(t, c, "window", day()),
			scalableAt(t, c, "scalable", growing())
		do(t, s, k)
	})
}

type mixture struct {
	clock    *serverClock
	c        *upstash.Client
	wire     *timed
	filter   *bloom.Filter
	window   *bloom.Window
	scalable *bloom.Scalable
}

// sent returns the bodies of the requests since the last call.
func (k mixture) sent() []string {
	k.wire.mu.Lock()
	defer k.wire.mu.Unlock()
	bodies := k.wire.requests
	k.wire.requests = nil
	return bodies
}

func isTime(body string) bool { return body == `["TIME"]` }

// wantAnswers adds an item, and wants each filter to answer so without an error.
func wantAnswers(t *testing.T, item string, want []bool, filters ...bloom.AnyFilter) {
	t.Helper()
	answers, err := bloom.AddIn(t.Context(), item, filters...)
	if err != nil || !slices.Equal(yes(answers), want) {
		t.Errorf("AddIn(%s) = %v, %v, want %v", item, answers, err, want)
	}
}

func yes(answers []bloom.Answer) (list []bool) {
	for _, a := range answers {
		list = append(list, a.Yes)
	}
	return list
}

// One request is for filters of all kinds, and TIME comes first, once.
func TestInOverKinds(t *testing.T) {
	eachKind(t, func(t *testing.T, s *upstashtest.Server, k mixture) {
		all := []bloom.AnyFilter{k.filter, k.window, k.scalable}
		wantAnswers(t, "a", []bool{true, true, true}, all...)
		if sent := k.sent(); len(sent) != 2 || !isTime(sent[0]) {
			t.Errorf("%d requests, the first of them %.20s, want TIME and one", len(sent), sent[0])
		}
		if _, err := k.filter.Add(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		k.sent()
		wantAnswers(t, "b", []bool{false, true, true}, all...)
		wantAnswers(t, "a", []bool{false, false, false}, all...)
		k.clock.pass(2 * dayPane)
		k.window.Add(t.Context(), "turn")
		wantAnswers(t, "a", []bool{true, false}, k.window, k.filter)
		k.sent()
		answers, err := bloom.ExistsIn(t.Context(), "b", k.scalable, k.window, k.filter)
		if sent := k.sent(); err != nil || !slices.Equal(yes(answers), []bool{true, false, true}) || len(sent) != 1 {
			t.Errorf("ExistsIn = %v, %v in %d requests, want yes, no, yes in one", answers, err, len(sent))
		}
		// Each has its own error.
		do(t, s, "DEL", "window", "scalable")
		answers, err = bloom.ExistsIn(t.Context(), "a", k.filter, k.window, k.scalable)
		if !errors.Is(err, bloom.ErrNotFound) || !answers[0].Yes || answers[0].Err != nil ||
			!strings.Contains(answers[1].Err.Error(), "WindowConfig.ExpireIdle") ||
			!strings.Contains(answers[2].Err.Error(), "ScalableConfig.MissingIsEmpty") {
			t.Errorf("ExistsIn = %v, %v, want yes and two missing filters", answers, err)
		}
	})
}

// If no window is among the filters, nothing asks for the time.
func TestInWithoutAWindow(t *testing.T) {
	eachKind(t, func(t *testing.T, _ *upstashtest.Server, k mixture) {
		wantAnswers(t, "a", []bool{true, true}, k.scalable, k.filter)
		if _, err := bloom.ExistsIn(t.Context(), "a", k.scalable, k.filter); err != nil {
			t.Error(err)
		}
		if sent := k.sent(); len(sent) != 2 || slices.ContainsFunc(sent, isTime) {
			t.Errorf("%d requests, want two and no TIME", len(sent))
		}
	})
}

// If the time cannot be learned, it is asked for once. All windows have the
// error, unchanged, and the other filters have answers.
func TestAddInWithoutTime(t *testing.T) {
	eachKind(t, func(t *testing.T, _ *upstashtest.Server, k mixture) {
		second := windowAt(t, k.c, "second", day())
		for _, failure := range []error{upstash.ErrNoPermission, errLost} {
			k.wire.time = func() error { return failure }
			if failure == upstash.ErrNoPermission {
				k.wire.time = nil
				k.wire.refuseTime = true
			}
			item := failure.Error()
			k.sent()
			if _, err := k.window.Add(t.Context(), item); !errors.Is(err, failure) {
				t.Errorf("Add: %v, want %v", err, failure)
			}
			once := len(k.sent()) // with its repetitions
			answers, err := bloom.AddIn(t.Context(), item, k.window, k.filter, second, k.scalable)
			k.wire.refuseTime = false
			for _, i := range []int{0, 2} {
				if a := answers[i]; !errors.Is(a.Err, failure) || a.Yes || !upstash.SafeToRetry(a.Err) ||
					errors.Is(a.Err, bloom.ErrNoClock) != (failure == upstash.ErrNoPermission) {
					t.Errorf("window %d: %+v, want %v, safe to retry", i, a, failure)
				}
			}
			if !answers[1].Yes || !answers[3].Yes || answers[1].Err != nil || answers[3].Err != nil ||
				!errors.Is(err, failure) || upstash.SafeToRetry(err) {
				t.Errorf("AddIn = %v, %v, want the others new, and not safe to retry", answers, err)
			}
			if n := len(k.sent()); n != once+1 {
				t.Errorf("%v: %d requests, want %d for one TIME, and one", failure, n, once)
			}
		}
	})
}

// A look-up asks for the time once, if a window has the item, and not before.
func TestExistsInAsksForTheTimeOnce(t *testing.T) {
	eachKind(t, func(t *testing.T, s *upstashtest.Server, k mixture) {
		keys := []string{"window", "second", "third"}
		for _, key := range keys {
			add(t, windowAt(t, k.c, key, day()), "a", true)
		}
		for _, refused := range []bool{false, true} {
			c, wire := timedClient(t, s, k.clock)
			wire.refuseTime = refused
			var filters []bloom.AnyFilter
			for _, key := range keys {
				filters = append(filters, windowAt(t, c, key, day()))
			}
			for item, times := range map[string]int{"none": 0, "a": 1} {
				wire.sent()
				answers, err := bloom.ExistsIn(t.Context(), item, filters...)
				if err != nil || slices.Contains(yes(answers), item == "none") {
					t.Errorf("ExistsIn(%s) = %v, %v", item, answers, err)
				}
				if n := wire.sent(); item == "a" && refused && n != 2 || n > 1+times {
					t.Errorf("%d requests for %s, want %d", n, item, 1+times)
				}
			}
		}
	})
}

// Scripts that the server has forgotten go together in one second request, and
// answers come in order. What follows a script waits for it: then its whole text
// goes along.
func TestAddInUnknownScripts(t *testing.T) {
	eachKind(t, func(t *testing.T, s *upstashtest.Server, k mixture) {
		again := scalableAt(t, k.c, "scalable", growing())
		add(t, k.window, "begin", true)
		wantAnswers(t, "begin", []bool{true}, k.scalable)
		do(t, s, "SCRIPT", "FLUSH")
		k.sent()
		wantAnswers(t, "a", []bool{true, true, true, false}, k.window, k.filter, k.scalable, again)
		sent := k.sent()
		if len(sent) != 2 || strings.Count(sent[1], `["EVAL",`) != 2 || strings.Contains(sent[1], "BITFIELD\"") {
			t.Errorf("%d requests, want a second one of two scripts", len(sent))
		}
		do(t, s, "SCRIPT", "FLUSH")
		wantAnswers(t, "b", []bool{true, true, false, true}, k.scalable, k.window, again, k.filter)
		if sent := k.sent(); len(sent) != 1 || strings.Count(sent[0], `["EVAL",`) != 2 {
			t.Errorf("%d requests, want one with two texts", len(sent))
		}
	})
}

// Windows whose answers come too late are sent again together, without the other
// filters, which have their answers. ErrUncertain is the windows' alone.
func TestAddInLateWindows(t *testing.T) {
	eachKind(t, func(t *testing.T, _ *upstashtest.Server, k mixture) {
		second := windowAt(t, k.c, "second", day())
		wantAnswers(t, "begin", []bool{true, true}, k.window, second)
		wantAnswers(t, "old", []bool{true}, k.scalable)
		k.sent()
		k.wire.after = nth(1, func() error { k.clock.pass(30 * time.Hour); return nil })
		answers, err := bloom.AddIn(t.Context(), "a", k.window, k.filter, second, k.scalable)
		if !errors.Is(err, bloom.ErrUncertain) || !bloom.InFilter(err) || upstash.SafeToRetry(err) {
			t.Errorf("AddIn: %v, want ErrUncertain", err)
		}
		for i, a := range answers {
			window := i%2 == 0
			if window && (a.Err != bloom.ErrUncertain || a.Yes) || !window && (a.Err != nil || !a.Yes) {
				t.Errorf("answer %d is %+v, want ErrUncertain of the windows, new of the others", i, a)
			}
		}
		var again []string
		for _, body := range k.sent() {
			if strings.Contains(body, "INCRBY") && !isTime(body) {
				again = append(again, body)
			}
		}
		if len(again) != 2 || strings.Count(again[1], "INCRBY\",\"u53\",\"0\"") != 2 ||
			strings.Contains(again[1], `"filter"`) || strings.Contains(again[1], `"scalable"`) {
			t.Errorf("%d requests, want a second one with both windows alone", len(again))
		}
		// A late answer whose command is lost leaves no taint: it is new.
		k.clock.pass(5 * dayPane)
		wantAnswers(t, "a", []bool{true, false, true, false}, k.window, k.filter, second, k.scalable)
	})
}

// After a lost answer each filter is judged by itself: one that was made again
// since has the item as new, those that have it do not know.
func TestAddInUncertainOneByOne(t *testing.T) {
	eachKind(t, func(t *testing.T, s *upstashtest.Server, k mixture) {
		all := []bloom.AnyFilter{k.filter, k.window, k.scalable}
		wantAnswers(t, "begin", []bool{true, true, true}, all...)
		for i, name := range []string{"filter", "window", "scalable"} {
			lose := loseOnce(name)
			k.wire.after = func(body string) error {
				err := lose(body)
				if err != nil {
					do(t, s, "DEL", name)
				}
				return err
			}
			answers, err := bloom.AddIn(t.Context(), "item of "+name, all...)
			for j, a := range answers {
				if i == j && (a.Err != nil || !a.Yes) || i != j && (a.Err != bloom.ErrUncertain || a.Yes) {
					t.Errorf("%s went away: answer %d is %+v", name, j, a)
				}
			}
			if !errors.Is(err, bloom.ErrUncertain) {
				t.Errorf("%s: %v, want ErrUncertain", name, err)
			}
			k.wire.after = nil
		}
		// If the attempt did not run, all is certain.
		k.wire.before = loseOnce("filter")
		wantAnswers(t, "c", []bool{true, true, true}, all...)
	})
}

// The first window of an epoch is turned. The second has its answer already: it
// is not late because this took long.
func TestAddInJudgesBeforeItTurns(t *testing.T) {
	eachKind(t, func(t *testing.T, _ *upstashtest.Server, k mixture) {
		second := windowAt(t, k.c, "second", day())
		wantAnswers(t, "begin", []bool{true, true}, k.window, second)
		k.clock.pass(dayPane)
		turned := false
		k.wire.after = func(body string) error {
			if strings.Contains(body, "SETRANGE") && !turned {
				turned = true
				k.clock.pass(dayPane)
			}
			return nil
		}
		k.sent()
		wantAnswers(t, "a", []bool{true, true}, k.window, second)
		if sent := slices.DeleteFunc(k.sent(), isTime); !turned || len(sent) != 3 {
			t.Errorf("%d requests, want the AddIn's and two turns", len(sent))
		}
	})
}

// A TTL that is not settled is settled in one request, whatever the kinds.
func TestAddInSettlesKinds(t *testing.T) {
	eachKind(t, func(t *testing.T, s *upstashtest.Server, k mixture) {
		idle, grows := day(), growing()
		idle.ExpireIdle, grows.TTL = true, time.Hour
		wantAnswers(t, "begin", []bool{true}, k.window) // the time is known
		k.sent()
		wantAnswers(t, "a", []bool{true, true, true}, handleAt(t, k.c, "f", expiring(time.Hour)),
			windowAt(t, k.c, "w", idle), scalableAt(t, k.c, "s", grows))
		if n := len(k.sent()); n != 2 {
			t.Errorf("%d requests, want the AddIn's and one that settles", n)
		}
		for _, key := range []string{"f", "w", "s"} {
			if ms := do(t, s, "PTTL", key).(int64); ms <= 0 {
				t.Errorf("%s has no TTL", key)
			}
		}
	})
}

// Whatever must exist and does not has its own ErrNotFound.
func TestAddInMissingKinds(t *testing.T) {
	eachKind(t, func(t *testing.T, s *upstashtest.Server, k mixture) {
		must, grows := day(), growing()
		must.MustExist, grows.MustExist = true, true
		answers, err := bloom.AddIn(t.Context(), "a", windowAt(t, k.c, "w", must), k.filter, scalableAt(t, k.c, "s", grows))
		if !errors.Is(answers[0].Err, bloom.ErrNotFound) || !errors.Is(answers[2].Err, bloom.ErrNotFound) ||
			!answers[1].Yes || answers[1].Err != nil || upstash.SafeToRetry(err) ||
			!upstash.SafeToRetry(answers[0].Err) || !upstash.SafeToRetry(answers[2].Err) {
			t.Errorf("AddIn = %v, %v, want the filter alone new", answers, err)
		}
		if n := do(t, s, "EXISTS", "w", "s"); n != int64(0) {
			t.Error("a filter that must exist was made")
		}
	})
}
