package bloom_test

import (
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

// mixed returns filters as AddIn and ExistsIn take them.
func mixed[F bloom.AnyFilter](filters []F) []bloom.AnyFilter {
	list := make([]bloom.AnyFilter, len(filters))
	for i, f := range filters {
		list[i] = f
	}
	return list
}

// One request asks filters of every geometry, and each has its own answer or
// error.
func TestExistsIn(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := s.Client()
		fnv := bloom.Config{Capacity: 100, FPRate: 0.01, Scheme: bloom.SchemeFNV1a}
		lenient := small()
		lenient.MissingIsEmpty = true
		filters := []*bloom.Filter{
			handleAt(t, c, "has it", small()),
			handleAt(t, c, "has it not", sparse()),
			handleAt(t, c, "missing", small()),
			handleAt(t, c, "missing", lenient),
			handleAt(t, c, "has it", sparse()), // another geometry
			handleAt(t, c, "a list", small()),
			handleAt(t, c, "fnv", fnv),
			handleAt(t, c, "bare", bare()),
		}
		for _, i := range []int{0, 6, 7} {
			add(t, filters[i], "item", true)
		}
		add(t, filters[1], "another", true)
		do(t, s, "RPUSH", "a list", "item")
		s.ResetStats()
		answers, err := bloom.ExistsIn(t.Context(), "item", mixed(filters)...)
		if n := s.Stats(); n.Requests != 1 || n.Commands != 8 {
			t.Errorf("%+v, want one request and a command for each filter", n)
		}
		if len(answers) != len(filters) || !errors.Is(err, bloom.ErrNotFound) ||
			!strings.HasPrefix(err.Error(), "bloom: filters[2] of 8: ") {
			t.Fatalf("%v, %v, want the error of filter 2", answers, err)
		}
		var m *bloom.MismatchError
		for i, a := range answers {
			yes := i == 0 || i == 6 || i == 7
			ok := a.Err == nil
			switch i {
			case 2:
				ok = errors.Is(a.Err, bloom.ErrNotFound)
			case 4:
				ok = errors.As(a.Err, &m)
			case 5:
				ok = errors.Is(a.Err, bloom.ErrNotFilter)
			}
			if a.Yes != yes || !ok {
				t.Errorf("filter %d: %+v, want %v and the error of its kind", i, a, yes)
			}
		}
		// Exists gives the same answers.
		for i, f := range filters {
			found, err := f.Exists(t.Context(), "item")
			if found != answers[i].Yes || (err == nil) != (answers[i].Err == nil) {
				t.Errorf("filter %d: Exists = %v, %v, but ExistsIn said %+v", i, found, err, answers[i])
			}
		}
	})
}

func TestAddIn(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := s.Client()
		must := small()
		must.MustExist = true
		filters := []*bloom.Filter{
			handleAt(t, c, "one", small()),
			handleAt(t, c, "two", expiring(time.Hour)),
			handleAt(t, c, "two", sparse()), // another geometry
			handleAt(t, c, "must", must),
			handleAt(t, c, "one", small()), // its second Add of the item
		}
		s.ResetStats()
		answers, err := bloom.AddIn(t.Context(), "item", mixed(filters)...)
		var m *bloom.MismatchError
		if !errors.As(err, &m) || len(answers) != 5 || !answers[0].Yes || !answers[1].Yes || answers[4].Yes ||
			!errors.As(answers[2].Err, &m) || !errors.Is(answers[3].Err, bloom.ErrNotFound) || answers[4].Err != nil {
			t.Fatalf("AddIn = %v, %v, want new, new, a MismatchError, ErrNotFound, seen", answers, err)
		}
		if n := s.Stats(); n.Requests != 2 {
			t.Errorf("%d requests, want the AddIn's and the settling of filter 1", n.Requests)
		}
		if ms := do(t, s, "PTTL", "two").(int64); ms <= 0 {
			t.Error("filter 1 has no TTL")
		}
		wantNoKey(t, s, "must")
		for _, i := range []int{0, 1} {
			exists(t, filters[i], "item", true)
		}

		// If a handle refuses its key, it takes no part in the request.
		s.ResetStats()
		answers, err = bloom.AddIn(t.Context(), "item-2", filters[2], filters[0])
		if !errors.As(err, &m) || answers[0].Err == nil || !answers[1].Yes || s.Stats().Commands != 1 {
			t.Errorf("AddIn = %v, %v, %d commands, want one", answers, err, s.Stats().Commands)
		}
	})
}

// After a lost reply neither filter knows whether the item was new. This
// includes the filter made by the lost attempt.
func TestAddInAfterALostAnswer(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := impatient(s)
		there, missing := handleAt(t, c, "there", sparse()), handleAt(t, c, "missing", sparse())
		add(t, there, "another", true)
		s.Inject(upstashtest.Drop(upstashtest.AfterExec))
		answers, err := bloom.AddIn(t.Context(), "item", there, missing)
		if !errors.Is(err, bloom.ErrUncertain) || !errors.Is(answers[0].Err, bloom.ErrUncertain) || answers[0].Yes {
			t.Errorf("the filter that was there: %+v, %v, want ErrUncertain", answers[0], err)
		}
		if answers[1].Yes || !errors.Is(answers[1].Err, bloom.ErrUncertain) {
			t.Errorf("the filter that was made: %+v, want ErrUncertain", answers[1])
		}
		s.Inject(upstashtest.Drop(upstashtest.BeforeExec))
		answers, err = bloom.AddIn(t.Context(), "item-2", there, missing)
		if err != nil || !answers[0].Yes || !answers[1].Yes {
			t.Errorf("not executed: %v, %v, want new in both", answers, err)
		}
	})
}

// One command of the request is refused. The others ran.
func TestAddInPartlyRefused(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := s.Client()
	first, second := handleAt(t, c, "first", small()), handleAt(t, c, "second", small())
	s.DenyFunc(func(command []string) bool { return len(command) > 1 && command[1] == "first" })
	answers, err := bloom.AddIn(t.Context(), "item", first, second)
	if !errors.Is(err, upstash.ErrNoPermission) || !errors.Is(answers[0].Err, upstash.ErrNoPermission) ||
		!upstash.SafeToRetry(answers[0].Err) || !answers[1].Yes || answers[1].Err != nil {
		t.Errorf("AddIn = %v, %v, want ErrNoPermission for the first, new for the second", answers, err)
	}
	s.DenyFunc(nil)
	add(t, first, "item", true)
	add(t, second, "item", false)
}

func TestInRefuses(t *testing.T) {
	s, other := upstashtest.NewServer(t), upstashtest.NewServer(t)
	f, elsewhere := handle(t, s.Client(), small()), handle(t, other.Client(), small())
	for _, filters := range [][]bloom.AnyFilter{{f, elsewhere}, {f, nil}, {nil}, {f, (*bloom.Window)(nil)}} {
		found, err := bloom.ExistsIn(t.Context(), "item", filters...)
		added, addErr := bloom.AddIn(t.Context(), "item", filters...)
		for name, err := range map[string]error{"ExistsIn": err, "AddIn": addErr} {
			if !errors.Is(err, upstash.ErrArgument) || !upstash.SafeToRetry(err) {
				t.Errorf("%s: %v, want ErrArgument, and safe to retry", name, err)
			}
		}
		for name, answers := range map[string][]bloom.Answer{"ExistsIn": found, "AddIn": added} {
			without := func(a bloom.Answer) bool { return a.Yes || !errors.Is(a.Err, upstash.ErrArgument) }
			if len(answers) != len(filters) || slices.ContainsFunc(answers, without) {
				t.Errorf("%s: %v, want ErrArgument for each of %d filters", name, answers, len(filters))
			}
		}
	}
	if answers, err := bloom.ExistsIn(t.Context(), "item"); len(answers) != 0 || err != nil {
		t.Errorf("ExistsIn of no filters: %v, %v, want none", answers, err)
	}
	if n := s.Stats().Requests + other.Stats().Requests; n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}

// The server has forgotten the script of one filter, or refuses its first line:
// the filters are still added to in their order, in one request.
func TestAddInKeepsTheOrder(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		strict := small()
		strict.MustExist = true
		f, g := handle(t, c, strict), handle(t, c, small())
		add(t, g, "a", true)
		add(t, f, "b", true)
		for i, forget := range []func(){
			func() {},
			func() { do(t, s, "SCRIPT", "FLUSH") },
			func() { c = s.Client(); f, g = handle(t, c, strict), handle(t, c, small()) },
		} {
			forget()
			s.ResetStats()
			answers, err := bloom.AddIn(ctx, fmt.Sprint("item ", i), f, g)
			if err != nil || !answers[0].Yes || answers[1].Yes {
				t.Errorf("%d: AddIn = %v, %v, want the first to be told new", i, answers, err)
			}
			if n := s.Stats().Requests; n != 1 {
				t.Errorf("%d: %d requests, want 1", i, n)
			}
		}
	})
}

// InFilter of AddIn's error speaks of all filters, not of the first error alone.
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
	if bloom.InFilter(err) {
		t.Errorf("InFilter is true of %v", err)
	}
	s.InjectWrites(upstashtest.Drop(upstashtest.AfterExec))
	if _, err := bloom.AddIn(t.Context(), "b", seen); !errors.Is(err, bloom.ErrUncertain) || !bloom.InFilter(err) {
		t.Errorf("one filter: %v, want ErrUncertain and the item in it", err)
	}
}

// An AddIn that changed one of its filters is not safe to retry, although the
// error of another one is: it would then call the item seen.
func TestAddInIsSafeToRetry(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := s.Client()
	missing := handle(t, c, must(small()))
	_, err := bloom.AddIn(t.Context(), "a", missing, missing)
	if !errors.Is(err, bloom.ErrNotFound) || !upstash.SafeToRetry(err) {
		t.Errorf("both are missing: %v, safe to retry %t, want true", err, upstash.SafeToRetry(err))
	}
	there := handleAt(t, c, "another key", small())
	answers, err := bloom.AddIn(t.Context(), "a", missing, there)
	if !errors.Is(err, bloom.ErrNotFound) || upstash.SafeToRetry(err) {
		t.Errorf("one is missing: %v, safe to retry %t, want false", err, upstash.SafeToRetry(err))
	}
	if !upstash.SafeToRetry(answers[0].Err) || !answers[1].Yes || answers[1].Err != nil {
		t.Errorf("the answers are %+v, want the first safe to retry and the second new", answers)
	}
}
