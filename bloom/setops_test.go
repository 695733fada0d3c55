package bloom_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestUnionIsExact(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		a, b := handleAt(t, c, "a", middling()), handleAt(t, c, "b", middling())
		for i, f := range []*bloom.Filter{a, b} {
			noError(t, errorOf(f.Load(ctx, mails(i*1000, i*1000+2000))))
		}
		cfg := middling()
		cfg.TTL = time.Hour
		dst := handle(t, c, cfg)
		noError(t, bloom.Union(ctx, dst, a, b))
		want := localOf(dst, 0, 3000)
		if withoutOwn(t, stored(t, s)) != withoutOwn(t, string(want.Bytes())) {
			t.Error("the union is another filter")
		}
		wantTTL(t, s, time.Hour)
		own := ownWords(t, stored(t, s))
		if !isSettled(t, stored(t, s)) || own == ownWords(t, storedAt(t, s, "a")) {
			t.Errorf("the second word is %x, want it settled and not that of a", own)
		}
		noError(t, errorOf(dst.Expire(ctx, 10*time.Minute)))
		c2 := handleAt(t, c, "c", middling())
		noError(t, errorOf(c2.Load(ctx, mails(5000, 5100))))
		noError(t, bloom.Union(ctx, dst, c2))
		wantMails(t, dst, 0, 3000)
		wantMails(t, dst, 5000, 5100)
		wantTTL(t, s, 10*time.Minute)
		if got := ownWords(t, stored(t, s)); got != own {
			t.Errorf("the second word was %x and is %x", own, got)
		}
		wantNoScratch(t, s, 4)
	})
}

// An Add of a larger filter lengthens a string, and a Union copies the length.
// A target that another program wrote has no birth number until then.
func TestUnionOfALongerString(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		a, b := small(), middling()
		src := handleAt(t, c, "src", a)
		add(t, src, "x", true)
		wantMismatch(t, errorOf(handleAt(t, c, "src", b).Add(ctx, "y")))
		for _, must := range []bool{false, true} {
			a.MustExist = must
			dst := handle(t, c, a)
			do(t, s, "SET", key, string(localOf(dst, 0, 10).Bytes()))
			noError(t, bloom.Union(ctx, dst, src))
			opened, err := bloom.Open(ctx, c, key)
			if err != nil {
				t.Fatalf("MustExist %t: %v", must, err)
			}
			exists(t, opened, "x", true)
			wantMails(t, opened, 0, 10)
		}
	})
}

func TestUnionChecksEveryFilter(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		a, missing := handleAt(t, c, "a", middling()), handleAt(t, c, "missing", middling())
		add(t, a, "x", true)
		dst := handle(t, c, middling())
		wantError(t, bloom.Union(ctx, dst, a, missing), bloom.ErrNotFound)
		do(t, s, "SET", "missing", "some text that is no filter")
		wantError(t, bloom.Union(ctx, dst, a, missing), bloom.ErrNotFilter)
		wantNoKey(t, s, key)
		do(t, s, "SET", key, "some text that is no filter")
		wantError(t, bloom.Union(ctx, dst, a), bloom.ErrNotFilter)
		if stored(t, s) != "some text that is no filter" {
			t.Error("other data has changed")
		}
		wantMismatch(t, bloom.Union(ctx, dst, handleAt(t, c, "b", small())))
		elsewhere := handleAt(t, s.Client(), "a", middling())
		wantError(t, bloom.Union(ctx, dst, elsewhere), upstash.ErrArgument)
	})
}

// Arguments that cannot be combined are refused before anything is sent.
func TestSetOperationsRefuse(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), s.Client()
	dst, a := handle(t, c, middling()), handleAt(t, c, "a", middling())
	plain := handleAt(t, c, "bare", bare())
	var config *bloom.ConfigError
	wantError(t, bloom.Union(ctx, dst, a, nil), upstash.ErrArgument)
	if err := bloom.Union(ctx, plain, plain); !errors.As(err, &config) || config.Field != "Layout" {
		t.Errorf("a Bare filter: %v, want a ConfigError of Layout", err)
	}
	wantError(t, errorOf(bloom.EstimateIntersection(ctx, a, nil)), upstash.ErrArgument)
	many := slices.Repeat([]*bloom.Filter{a}, 1001)
	wantError(t, bloom.Union(ctx, dst, many...), upstash.ErrArgument)
	reader := handle(t, s.ReadOnlyClient(), middling())
	wantError(t, bloom.Union(ctx, reader, reader), upstash.ErrReadOnly)
	if err := bloom.Union(ctx, dst); err != nil {
		t.Errorf("no sources: %v", err)
	}
	wantRequests(t, s, 0)
}

// A filter with every cell set has no estimate.
func TestEstimateIntersectionSaturated(t *testing.T) {
	c := upstashtest.NewServer(t).Client()
	cfg := bloom.Config{Bits: 53, Hashes: 2}
	a, b := handleAt(t, c, "a", cfg), handleAt(t, c, "b", cfg)
	add(t, a, "x", true)
	mustAdd(t, b, numbered("y", 500)...)
	if n, err := bloom.EstimateIntersection(t.Context(), a, b); n != 0 || !errors.Is(err, bloom.ErrSaturated) {
		t.Errorf("%d, %v, want ErrSaturated", n, err)
	}
}

// The estimate is off by a few thousandths of the union.
func TestEstimateIntersection(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		a, b := handleAt(t, c, "a", middling()), handleAt(t, c, "b", middling())
		wantError(t, errorOf(bloom.EstimateIntersection(ctx, a, b)), bloom.ErrNotFound)
		for i, f := range []*bloom.Filter{a, b} {
			noError(t, errorOf(f.Load(ctx, mails(i*3000, i*3000+5000))))
		}
		got, err := bloom.EstimateIntersection(ctx, a, b)
		if err != nil || math.Abs(float64(got)-2000) > 100 {
			t.Errorf("%d, %v, want about 2,000", got, err)
		}
		wantNoScratch(t, s, 2)
	})
}

// Answers that contradict themselves, or lack a number, are refused.
func TestSetOperationsDoubtBrokenAnswers(t *testing.T) {
	for _, result := range []string{
		"[H,1]", "[H,2]", "[H,-1]", "[H,null]", "[null,0]", "[H,0,0]", "[]",
		"[H,5,null,9]", "[H,-5,4,9]", "[1,5,4,9]", "[null,5,4,9]", "[H,5,4]",
	} {
		c := canned(t, `{"result":`+strings.ReplaceAll(result, "H", headerWordOf(middling()))+`}`)
		a, b := handleAt(t, c, "a", middling()), handleAt(t, c, "b", middling())
		for name, err := range map[string]error{
			"Union":                bloom.Union(t.Context(), handleAt(t, c, "dst", middling()), a, b),
			"EstimateIntersection": errorOf(bloom.EstimateIntersection(t.Context(), a, b)),
		} {
			if !errors.Is(err, upstash.ErrBadResponse) && !errors.Is(err, bloom.ErrNotFilter) ||
				strings.Contains(err.Error(), "PANIC") {
				t.Errorf("%s: %s: %v, want ErrBadResponse", result, name, err)
			}
		}
	}
}

// The error of a call with several filters names those it is about.
func TestCombinedFiltersAreNamed(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), s.Client()
	other := middling()
	other.Capacity *= 2
	dst, a, b := handleAt(t, c, "dst", middling()), handleAt(t, c, "a", middling()), handleAt(t, c, "b", other)
	noError(t, errorOf(a.Add(ctx, "item")))
	says := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	err := bloom.Union(ctx, dst, a, b)
	wantMismatch(t, err)
	says(err, "bloom: srcs[1] and dst: the other filter is")
	_, err = bloom.EstimateIntersection(ctx, a, b)
	wantMismatch(t, err)
	says(err, "bloom: b and a: the other filter is")

	missing := handleAt(t, c, "missing", middling())
	err = bloom.Union(ctx, dst, a, missing)
	wantError(t, err, bloom.ErrNotFound)
	says(err, "bloom: srcs[1]: no filter")
	_, err = bloom.EstimateIntersection(ctx, a, missing)
	wantError(t, err, bloom.ErrNotFound)
	says(err, "bloom: b: no filter")
}

// If the reply to a Union is lost, the Union recognizes its own target by the
// birth number.
func TestUnionWhoseReplyIsLost(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		c := impatient(s)
		dst, src := handle(t, c, small()), handleAt(t, c, "source", small())
		add(t, src, "a", true)
		loseReplies(s, "EVAL", 1)
		if err := bloom.Union(t.Context(), dst, src); err != nil {
			t.Error(err)
		}
		exists(t, dst, "a", true)
	})
}
