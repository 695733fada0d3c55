package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// One request asks filters of every geometry, and each has its own answer or
// error, as Exists has.
func TestExistsIn(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c, lenient := s.Client(), small()
		lenient.MissingIsEmpty = true
		has, hasNot := handleAt(t, c, "has it", small()), handleAt(t, c, "has it not", sparse())
		fnv := handleAt(t, c, "fnv", bloom.Config{Capacity: 100, FPRate: 0.01, Scheme: bloom.SchemeFNV1a})
		bare := handleAt(t, c, "bare", bare())
		for _, f := range []*bloom.Filter{has, fnv, bare} {
			add(t, f, "item", true)
		}
		add(t, hasNot, "another", true)
		do(t, s, "RPUSH", "a list", "item")
		s.ResetStats()

		answers, err := bloom.ExistsIn(t.Context(), "item", has, hasNot, fnv, bare,
			handleAt(t, c, "missing", lenient), handleAt(t, c, "missing", small()),
			handleAt(t, c, "has it", sparse()), handleAt(t, c, "a list", small()))

		if n := s.Stats(); n.Requests != 1 || n.Commands != 8 {
			t.Errorf("%+v, want one request and a command for each filter", n)
		}
		if !errors.Is(err, bloom.ErrNotFound) || !strings.HasPrefix(err.Error(), "bloom: filters[5] of 8: ") {
			t.Fatalf("%v, %v, want the error of filter 5", answers, err)
		}
		for i, want := range []bool{true, false, true, true, false} {
			if answers[i] != (bloom.Answer{Yes: want}) {
				t.Errorf("filter %d: %+v, want %v", i, answers[i], want)
			}
		}
		wantError(t, answers[5].Err, bloom.ErrNotFound)
		wantMismatch(t, answers[6].Err)
		wantError(t, answers[7].Err, bloom.ErrNotFilter)
	})
}

func TestAddIn(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		one, two := handleAt(t, c, "one", small()), handleAt(t, c, "two", expiring(time.Hour))
		other, missing := handleAt(t, c, "two", sparse()), handleAt(t, c, "missing", must(small()))
		s.ResetStats()
		answers, err := bloom.AddIn(ctx, "item", one, two, other, missing, one)
		wantMismatch(t, err)
		if !answers[0].Yes || !answers[1].Yes || answers[4] != (bloom.Answer{}) {
			t.Fatalf("AddIn = %v, want new in both filters, and seen in the first one then", answers)
		}
		wantMismatch(t, answers[2].Err)
		wantError(t, answers[3].Err, bloom.ErrNotFound)
		wantRequests(t, s, 2) // the second settles a TTL
		wantNoKey(t, s, "missing")
		exists(t, one, "item", true)
		exists(t, two, "item", true)

		// If a handle refuses its key, it takes no part in the request.
		s.ResetStats()
		answers, err = bloom.AddIn(ctx, "item-2", other, one)
		wantMismatch(t, err)
		if answers[0].Err == nil || !answers[1].Yes || s.Stats().Commands != 1 {
			t.Errorf("AddIn = %v, %d commands, want one", answers, s.Stats().Commands)
		}
	})
}

// Nothing is said of the request as a whole if one filter alone is not written to.
func TestAddInWithARefusalOfBefore(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := s.Client()
	add(t, handleAt(t, c, "first", sparse()), "theirs", true)
	first, second := handleAt(t, c, "first", small()), handleAt(t, c, "second", small())
	if added, err := first.Add(t.Context(), "item"); err == nil {
		t.Fatalf("the handle of another filter added: %v", added)
	}
	answers, err := bloom.AddIn(t.Context(), "item", first, second)
	if !answers[1].Yes || !upstash.SafeToRetry(answers[0].Err) {
		t.Fatalf("AddIn = %v, %v, want the first untouched and the second new", answers, err)
	}
	if text := err.Error(); strings.Contains(text, "nothing was sent") || !strings.Contains(text, "an earlier call saw this") {
		t.Errorf("the error of a request that was sent says %q", text)
	}
}

func TestInRefuses(t *testing.T) {
	s, other := upstashtest.NewServer(t), upstashtest.NewServer(t)
	f, elsewhere := handle(t, s.Client(), small()), handle(t, other.Client(), small())
	for _, in := range []func(context.Context, string, ...bloom.AnyFilter) ([]bloom.Answer, error){
		bloom.ExistsIn[bloom.AnyFilter], bloom.AddIn[bloom.AnyFilter],
	} {
		for _, filters := range [][]bloom.AnyFilter{{f, elsewhere}, {f, nil}, {nil}, {f, (*bloom.Window)(nil)}} {
			answers, err := in(t.Context(), "item", filters...)
			if !errors.Is(err, upstash.ErrArgument) || !upstash.SafeToRetry(err) || len(answers) != len(filters) {
				t.Errorf("%v, %v, want ErrArgument, safe to retry, and %d answers", answers, err, len(filters))
			}
			for _, a := range answers {
				if wantError(t, a.Err, upstash.ErrArgument); a.Yes {
					t.Error("a filter says yes, want none")
				}
			}
		}
		if answers, err := in(t.Context(), "item"); len(answers) != 0 || err != nil {
			t.Errorf("of no filters: %v, %v, want none", answers, err)
		}
	}
	if _, err := bloom.AddIn(t.Context(), "item", f, nil); !errors.Is(err, upstash.ErrArgument) {
		t.Errorf("a nil among filters of one type: %v, want ErrArgument", err)
	}
	wantRequests(t, s, 0)
	wantRequests(t, other, 0)
}

// InFilter of AddIn's error speaks of all filters, not of the first error alone, and
// of an answer's error of that one.
func TestInFilterOfAddIn(t *testing.T) {
	s := upstashtest.NewServer(t)
	client := s.Client()
	seen := handle(t, client, roomy())
	gone, err := bloom.New(client, "gone", bloom.Config{Capacity: 100, FPRate: 0.01, MustExist: true})
	noError(t, err)
	mustAdd(t, seen, "other")
	s.InjectWrites(upstashtest.Drop(upstashtest.AfterExec))
	answers, err := bloom.AddIn(t.Context(), "a", seen, gone)
	if !errors.Is(answers[0].Err, bloom.ErrUncertain) || !errors.Is(answers[1].Err, bloom.ErrNotFound) {
		t.Fatalf("answers %v, want ErrUncertain and ErrNotFound", answers)
	}
	if !bloom.InFilter(answers[0].Err) || bloom.InFilter(answers[1].Err) || bloom.InFilter(err) {
		t.Errorf("InFilter of the answers %v, and of %v, want the item in the first filter alone", answers, err)
	}
	s.InjectWrites(upstashtest.Drop(upstashtest.AfterExec))
	if _, err := bloom.AddIn(t.Context(), "b", seen); !errors.Is(err, bloom.ErrUncertain) || !bloom.InFilter(err) {
		t.Errorf("one filter: %v, want ErrUncertain and the item in it", err)
	}
}

// Filters of several kinds.

func windowAt(t *testing.T, c *upstash.Client, key string, cfg bloom.WindowConfig) *bloom.Window {
	t.Helper()
	w, err := bloom.NewWindow(c, key, cfg)
	noError(t, err)
	return w
}

func scalableAt(t *testing.T, c *upstash.Client, key string, cfg bloom.ScalableConfig) *bloom.Scalable {
	t.Helper()
	s, err := bloom.NewScalable(c, key, cfg)
	noError(t, err)
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
	clock    *clock
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
		add(t, k.filter, "b", true)
		k.sent()
		wantAnswers(t, "b", []bool{false, true, true}, all...)
		wantAnswers(t, "a", []bool{false, false, false}, all...)
		k.clock.pass(2 * dayPane)
		k.window.Add(t.Context(), "turn")
		wantAnswers(t, "a", []bool{true, false}, k.window, k.filter)
		k.sent()
		answers, err := bloom.ExistsIn[bloom.AnyFilter](t.Context(), "b", k.scalable, k.window, k.filter)
		if sent := k.sent(); err != nil || !slices.Equal(yes(answers), []bool{true, false, true}) || len(sent) != 1 {
			t.Errorf("ExistsIn = %v, %v in %d requests, want yes, no, yes in one", answers, err, len(sent))
		}
		// Each has its own error.
		do(t, s, "DEL", "window", "scalable")
		answers, err = bloom.ExistsIn[bloom.AnyFilter](t.Context(), "a", k.filter, k.window, k.scalable)
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
		if _, err := bloom.ExistsIn[bloom.AnyFilter](t.Context(), "a", k.scalable, k.filter); err != nil {
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
			answers, err := bloom.AddIn[bloom.AnyFilter](t.Context(), item, k.window, k.filter, second, k.scalable)
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
			var filters []*bloom.Window
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
		again, second := scalableAt(t, k.c, "scalable", growing()), scalableAt(t, k.c, "second", growing())
		add(t, k.window, "begin", true)
		wantAnswers(t, "begin", []bool{true}, k.scalable)
		do(t, s, "SCRIPT", "FLUSH")
		k.sent()
		wantAnswers(t, "a", []bool{true, true, true, true}, k.window, k.filter, k.scalable, second)
		sent := k.sent()
		if len(sent) != 2 || strings.Count(sent[1], `["EVAL",`) != 2 || strings.Contains(sent[1], "BITFIELD\"") {
			t.Errorf("%d requests, want a second one of two scripts", len(sent))
		}
		do(t, s, "SCRIPT", "FLUSH")
		wantAnswers(t, "b", []bool{true, true, false, true}, k.scalable, k.window, again, k.filter)
		if sent := k.sent(); len(sent) != 1 || strings.Count(sent[0], `["EVAL",`) != 2 {
			t.Errorf("%d requests, want one with two texts", len(sent))
		}
		do(t, s, "SCRIPT", "FLUSH")
		wantAnswers(t, "c", []bool{true, false}, k.scalable, again)
		if sent := k.sent(); strings.Count(sent[0], `["EVAL",`) != 1 {
			t.Errorf("sent %s, want the text to the first of two handles of one key", sent[0])
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
		answers, err := bloom.AddIn[bloom.AnyFilter](t.Context(), "a", k.window, k.filter, second, k.scalable)
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

// TTLs that are not settled are settled in one request, whatever the kinds.
func TestAddInSettlesAtOnce(t *testing.T) {
	eachKind(t, func(t *testing.T, s *upstashtest.Server, k mixture) {
		idle, grows, bare := day(), growing(), sparseOf(bloom.LayoutBare)
		idle.ExpireIdle, grows.TTL, bare.TTL = true, time.Hour, time.Hour
		wantAnswers(t, "begin", []bool{true}, k.window) // the time is known
		all := []bloom.AnyFilter{
			handleAt(t, k.c, "f", expiring(time.Hour)), handleAt(t, k.c, "b", bare),
			windowAt(t, k.c, "w", idle), scalableAt(t, k.c, "s", grows),
		}
		for item, requests := range []int{2, 1} {
			k.sent()
			wantAnswers(t, fmt.Sprint(item), []bool{true, true, true, true}, all...)
			if n := len(k.sent()); n != requests {
				t.Errorf("AddIn %d took %d requests, want %d", item, n, requests)
			}
		}
		for _, key := range []string{"f", "b", "w", "s"} {
			if ms := do(t, s, "PTTL", key).(int64); ms <= 0 {
				t.Errorf("%s has no TTL", key)
			}
		}
	})
}

// Whatever must exist and does not has its own ErrNotFound. If all are missing,
// the AddIn is safe to retry; if one was added to, a second one would call the
// item seen.
func TestAddInMissingKinds(t *testing.T) {
	eachKind(t, func(t *testing.T, s *upstashtest.Server, k mixture) {
		strict, grows := day(), growing()
		strict.MustExist, grows.MustExist = true, true
		w, g := windowAt(t, k.c, "w", strict), scalableAt(t, k.c, "s", grows)
		_, err := bloom.AddIn[bloom.AnyFilter](t.Context(), "a", w, handleAt(t, k.c, "f", must(small())), g)
		if !errors.Is(err, bloom.ErrNotFound) || !upstash.SafeToRetry(err) {
			t.Errorf("all are missing: %v, safe to retry %t, want true", err, upstash.SafeToRetry(err))
		}
		answers, err := bloom.AddIn[bloom.AnyFilter](t.Context(), "a", w, k.filter, g)
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
