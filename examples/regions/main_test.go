package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

// Only ReadsNearest without sync tokens says "no" to items already added, and
// ReadsNearestFirst takes fewer commands than ReadsPrimary.
func TestModes(t *testing.T) {
	const calls = 100
	billed := map[bloom.Reads]float64{}
	for _, reads := range []bloom.Reads{bloom.ReadsPrimary, bloom.ReadsNearest, bloom.ReadsNearestFirst} {
		for _, tokens := range []bool{true, false} {
			r, err := stream(t.Context(), reads, tokens, time.Microsecond, calls)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v, sync tokens %v: %.2f billed a look-up, %d wrong", reads, tokens, r.billed, r.wrong)
			if r.wrong > 0 && (reads != bloom.ReadsNearest || tokens) {
				t.Errorf("%v, sync tokens %v: %d wrong answers, want none", reads, tokens, r.wrong)
			}
			if reads == bloom.ReadsNearest && !tokens && r.wrong == 0 {
				t.Error("nearest, without sync tokens: no wrong answer, want some: the example shows nothing")
			}
			if !tokens {
				billed[reads] = r.billed
			}
		}
	}
	p, n, f := billed[bloom.ReadsPrimary], billed[bloom.ReadsNearest], billed[bloom.ReadsNearestFirst]
	if p != 2 || n != 1 || f <= n || f >= p {
		t.Errorf("billed a look-up: primary %v, nearest %v, nearest first %v, want 2, 1 and between", p, n, f)
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, time.Microsecond, 20); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 7 {
		t.Errorf("run printed %d lines, want 7:\n%s", n, &out)
	}
}
