package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	_ "github.com/upbloom/upbloom/internal/testkit/testenv" // its clients are patient
)

// Only the nearest region without sync tokens says "no" to items already added,
// and two handles take fewer commands than the primary alone.
func TestModes(t *testing.T) {
	const calls = 100
	billed := map[mode]float64{}
	for _, of := range []mode{primary, nearest, nearFirst} {
		for _, tokens := range []bool{true, false} {
			r, err := stream(t.Context(), of, tokens, time.Microsecond, calls)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v, sync tokens %v: %.2f billed a look-up, %d wrong", of, tokens, r.billed, r.wrong)
			if r.wrong > 0 && (of != nearest || tokens) {
				t.Errorf("%v, sync tokens %v: %d wrong answers, want none", of, tokens, r.wrong)
			}
			if of == nearest && !tokens && r.wrong == 0 {
				t.Error("nearest, without sync tokens: no wrong answer, want some: the example shows nothing")
			}
			if !tokens {
				billed[of] = r.billed
			}
		}
	}
	p, n, f := billed[primary], billed[nearest], billed[nearFirst]
	if p != 2 || n != 1 || f <= n || f >= p {
		t.Errorf("billed a look-up: primary %v, nearest %v, two handles %v, want 2, 1 and between", p, n, f)
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
