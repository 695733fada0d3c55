package errtext

import (
	"errors"
	"fmt"
	"testing"
)

func TestWrong(t *testing.T) {
	good, bare := errors.New("upstash: GET: no"), errors.New("no")
	for _, tt := range []struct {
		err error
		ok  bool
	}{
		{nil, true},
		{good, true},
		{errors.New("bloom: no filter"), true},
		{errors.Join(good, good), true},
		{fmt.Errorf("bloom: %w and %w", bare, bare), true},
		{bare, false},
		{errors.Join(good, bare), false},
		{errors.Join(good, errors.Join(good, bare)), false},
		{fmt.Errorf("bloom: %w", good), false},
		{fmt.Errorf("upstash: %w", good), false},
		{fmt.Errorf("sdk: %w", good), false},
	} {
		if wrong := Wrong(tt.err); (wrong == "") != tt.ok {
			t.Errorf("%v: got %q, want that it is right: %t", tt.err, wrong, tt.ok)
		}
	}
}

type runs func() int

func (f runs) Run() int { return f() }

func TestCollector(t *testing.T) {
	for err, want := range map[error]int{errors.New("upstash: no"): 0, errors.New("no"): 1} {
		var c Collector
		if got := c.Run(runs(func() int { c.Add(nil); c.Add(err); return 0 })); got != want {
			t.Errorf("%v: status %d, want %d", err, got, want)
		}
	}
}
