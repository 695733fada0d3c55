package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/internal/lots"
	"github.com/upbloom/upbloom/upstash"
)

// listener keeps the birth numbers that a record sends.
type listener struct {
	*server
	births []int64
}

func (l *listener) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	l.births = append(l.births, birthsIn(req.Body)...)
	return l.server.RoundTrip(ctx, req, resp)
}

// listen makes a record whose birth numbers are kept.
func listen(t *testing.T, steps ...step) (*engine.Record, *listener) {
	r, s := newRecord(t, steps...)
	l := &listener{server: s}
	r.Client = client(t, l)
	return r, l
}

// Each attempt at a command that may make the filter has a birth number of its
// own, of its command's.
func TestAttemptsHaveBirthsOfTheirOwn(t *testing.T) {
	r, l := listen(t, lost, step{unsent: true}, answers("H,H,B,0"), lost, lost, answers("H,0,OWN,0"))
	add(t, r, "a", true, nil)
	if made, err := r.Create(t.Context(), 200, 0); !made || err != nil {
		t.Errorf("Create = %v, %v", made, err)
	}
	if len(l.births) != 6 || l.births[0] == l.births[3] {
		t.Fatalf("sent the birth numbers %v", l.births)
	}
	for i, b := range l.births {
		if own := lots.OfAttempt(l.births[i/3*3], i%3); b != own {
			t.Errorf("attempt %d of command %d has the birth number %d, want %d", i%3, i/3, b, own)
		}
	}
}

// An upload takes its parts in the step that makes the filter: a second attempt
// finds nothing to do, so it has the first one's birth number.
func TestUploadKeepsItsBirth(t *testing.T) {
	r, l := listen(t, part, lost, status("H,1,2,7,1,B"))
	if _, err := r.Merge(t.Context(), body(), moves); err != nil {
		t.Fatal(err)
	}
	if len(l.births) != 2 || l.births[0] != l.births[1] {
		t.Errorf("sent the birth numbers %v, want one twice", l.births)
	}
}

// What has its TTL set is the filter that the last attempt made. The script is sent
// the birth number that its GET answered, and would do nothing for another.
func TestSettlesTheFilterOfTheAttempt(t *testing.T) {
	r, _ := newRecord(t, lost, answers("H,H,B,0,B,0"), answers("H,1,B,0").to(fmt.Sprintf(`"60000","%d"`, birth)))
	r.TTL = time.Minute
	if w := add(t, r, "a", true, nil); w.Birth.Number != birth {
		t.Errorf("the write has made filter %d, want %d", w.Birth.Number, birth)
	}
}

// Number 0, of a filter by another program, is sent as others are.
func TestSettlesTheFilterOfBirthZero(t *testing.T) {
	r := scripted(t, copies{}, answers("H,0,0,0,0"), answers("H,0,0,0").to(`"60000","0"`))
	r.TTL = time.Minute
	add(t, r, "a", true, nil)
}

// A command that is sent again is another one, also for the same epoch: the one
// before may come late.
func TestResendHasABirthOfItsOwn(t *testing.T) {
	kind := func(bit string) step { return answers("null,H,null,null,4503599627370512," + bit) }
	r, l := listen(t, kind("1"), kind("0"))
	s := &shape{word: word, mutable: 4, again: 1}
	r.Shape, r.Timed = s, s
	add(t, r, "a", true, nil)
	if len(l.births) != 2 || lots.OfCall(l.births[0]) == lots.OfCall(l.births[1]) {
		t.Errorf("the two commands have the birth numbers %v, want two", l.births)
	}
}
