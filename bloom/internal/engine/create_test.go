package engine_test

import (
	"errors"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

// The birth number says who made the filter, also after a lost answer. The
// server shows the one that the command carried, or another.
func TestCreate(t *testing.T) {
	for name, c := range map[string]struct {
		steps []step
		want  bool
	}{
		"made":                       {[]step{answers("H,0,OWN,0")}, true},
		"made by the lost attempt":   {[]step{lost, answers("H,0,OWN,0")}, true},
		"there before":               {[]step{answers("H,0,B,0")}, false},
		"there after a lost attempt": {[]step{lost, answers("H,0,B,0")}, false},
		"made when it had arrived":   {[]step{{unsent: true}, answers("H,0,OWN,0")}, true},
		"refused for its first line": {[]step{{refused: "ERR bad shebang"}, answers("H,0,OWN,0")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newRecord(t, c.steps...)
			if made, err := r.Create(t.Context(), 200, 0); made != c.want || err != nil {
				t.Errorf("Create = %v, %v; want %v", made, err, c.want)
			}
		})
	}
}

// Only the Create that has made the filter answers for its TTL.
func TestCreateWithoutItsTTL(t *testing.T) {
	for answer, want := range map[string]error{"H,1,OWN,0": nil, "H,0,OWN,0": engine.ErrNoTTL, "H,0,B,0": nil} {
		r, _ := expiring(t, answers(answer))
		if _, err := r.Create(t.Context(), 200, 0); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", answer, err, want)
		}
	}
}

// A Create that is refused has changed nothing, unless it was sent again.
func TestCreateRefused(t *testing.T) {
	for name, c := range map[string]struct {
		answer step
		want   error
	}{
		"another filter": {answers("X,0,B,0"), errOther},
		"other data":     {answers("0"), engine.ErrNoHeader},
		"another kind":   {answers("H,0,B,4503599627370528"), errOther},
		"a list":         {step{refused: "WRONGTYPE Operation against a key"}, format.ErrNotFilter},
	} {
		r, s := newRecord(t, c.answer)
		r.Shape = &shape{word: word, mutable: 4}
		_, err := r.Create(t.Context(), 200, word)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if name == "a list" {
			continue
		}
		wantSafe(t, err, true)
		s.then(lost, c.answer)
		_, err = r.Create(t.Context(), 200, word)
		wantSafe(t, err, false)
	}
}

// An answer that says too much proves nothing.
func TestCreateGetsABrokenAnswer(t *testing.T) {
	r, _ := newRecord(t, answers("H,0,OWN,0,0"))
	if made, err := r.Create(t.Context(), 200, 0); made || !errors.Is(err, upstash.ErrBadResponse) {
		t.Errorf("Create = %v, %v; want ErrBadResponse", made, err)
	}
}
