package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

func TestLookUp(t *testing.T) {
	r, s := newRecord(t, answers("H,1").to(`"BITFIELD","key","GET","u53","0"`))
	find(t, r, "a", true, nil)
	s.then(answers("H,0"))
	find(t, r, "a", false, nil)
}

// A missing filter, another one, other data and a broken answer are errors, and
// never a "no".
func TestLookUpThatIsNoAnswer(t *testing.T) {
	wrongType := step{refused: "WRONGTYPE Operation against a key"}
	for name, c := range map[string]struct {
		answer step
		want   error
	}{
		"missing":          {answers("0,0"), engine.ErrNotFound},
		"another filter":   {answers("X,0"), errOther},
		"a list":           {wrongType, format.ErrNotFilter},
		"null":             {step{answer: `{"result":null}`}, upstash.ErrBadResponse},
		"too few":          {answers("H"), upstash.ErrBadResponse},
		"a bit of null":    {answers("H,null"), upstash.ErrBadResponse},
		"a header of null": {answers("null,0"), upstash.ErrBadResponse},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newRecord(t, c.answer)
			wantSafe(t, find(t, r, "a", false, c.want), true)
		})
	}
}

// A look-up without an answer changed nothing, however often it was sent.
func TestLookUpLost(t *testing.T) {
	r, _ := newRecord(t, lost, lost, lost)
	_, err := r.Read(t.Context(), "a", engine.Options{})
	wantSafe(t, err, true)
}

// A full database refuses a BITFIELD, whatever it does.
func TestLookUpOfAFullDatabase(t *testing.T) {
	r, _ := newRecord(t, step{refused: "OOM command not allowed when used memory > 'maxmemory'."})
	err := find(t, r, "a", false, upstash.ErrOutOfMemory)
	for _, way := range []string{"Config.ReadsNearest", "upstash.WithReadOnly"} {
		if !strings.Contains(err.Error(), way) {
			t.Errorf("%v: want it to name %s", err, way)
		}
	}
}

// What the nearest region says counts, if the handle was made for that.
func TestNearest(t *testing.T) {
	r, s := newRecord(t, answers("H,0").to("BITFIELD_RO"))
	r.Nearest = true
	find(t, r, "a", false, nil)
	s.then(answers("0,0"))
	find(t, r, "a", false, engine.ErrNotFound)
}

// What a region says of the key is not remembered: it may be of the past.
func TestNearestSeesAnotherFilter(t *testing.T) {
	r, s := newRecord(t, answers("X,0"))
	r.Nearest = true
	find(t, r, "a", false, errOther)
	s.then(step{refused: "WRONGTYPE Operation against a key"})
	find(t, r, "a", false, format.ErrNotFilter)
	s.then(answers("H,H,B,0"))
	add(t, r, "a", true, nil)
}

const noBitfield = "NOPERM this user has no permissions to run the 'bitfield' command"

// The token may not ask the primary, and nobody else is asked.
func TestLookUpWithATokenThatMayOnlyRead(t *testing.T) {
	r, s := newRecord(t, step{refused: noBitfield})
	find(t, r, "a", false, upstash.ErrNoPermission)
	s.then(answers("0,0").to("BITFIELD_RO"))
	r.Client = client(t, s, upstash.WithReadOnly())
	err := find(t, r, "a", false, engine.ErrNotFound)
	if !strings.Contains(err.Error(), "nearest region") {
		t.Errorf("%v, want that the nearest region may lack it", err)
	}
}

// An observer reads the birth number too, and may insist on the primary.
func TestObserverOfALookUp(t *testing.T) {
	r, s := newRecord(t, answers("H,B,1").to(`["BITFIELD",`))
	r.Nearest = true
	o := observer{asPrimary: true}
	if found, err := r.Read(t.Context(), "a", engine.Options{Observer: &o}); !found || err != nil {
		t.Fatal(found, err)
	}
	if o.birth != birth || !o.primary {
		t.Errorf("learned birth number %d of the primary: %v", o.birth, o.primary)
	}
	s.then(answers("H,B,1").to(`["BITFIELD_RO",`))
	o.asPrimary = false
	if found, err := r.Read(t.Context(), "a", engine.Options{Observer: &o}); !found || err != nil || o.primary {
		t.Errorf("%v, %v, of the primary: %v", found, err, o.primary)
	}
}

// The kind's word by itself, as Cuckoo.Count asks for it.
func TestReadKindWord(t *testing.T) {
	r, _ := newRecord(t, answers("H,4503599627370515"))
	r.Shape = &shape{word: word, mutable: 4}
	got, err := r.ReadKindWord(t.Context())
	if got != 1<<52|19 || err != nil {
		t.Errorf("ReadKindWord = %d, %v", got, err)
	}
}

// pairs is items with the bits 1 and 2 of the first word, and the bit 4 of the
// second.
type pairs struct{ letters }

func (pairs) AppendRead(q *engine.Request, _ string) {
	q.GetWords(192, []uint64{0, 53})
	q.Words = append(q.Words, cells.Word{Mask: 3}, cells.Word{Mask: 4})
	q.WordEnds = append(q.WordEnds, len(q.Words))
}

func (pairs) JudgeRead(q *engine.Request, answers []upstash.NullInt64) error {
	return q.JudgeReadWords(answers)
}

// An item is found if all of its bits are set, in all of its words.
func TestLookUpOfWords(t *testing.T) {
	for words, want := range map[string]bool{"3,4": true, "7,7": true, "1,4": false, "3,3": false, "2,0": false} {
		r, _ := newRecord(t, answers("H,"+words))
		r.Items = pairs{}
		find(t, r, "a", want, nil)
	}
	for _, impossible := range []string{"null", "-1", "9007199254740992", "4.0"} {
		r, _ := newRecord(t, answers("H,3,"+impossible))
		r.Items = pairs{}
		find(t, r, "a", false, upstash.ErrBadResponse)
	}
}

// follower notes whether a look-up's answer is followed.
type follower struct {
	shape
	followed bool
}

func (f *follower) FollowRead(context.Context, *engine.Request) { f.followed = true }

// Only an answer about the record's own string is followed.
func TestAnswersThatAreFollowed(t *testing.T) {
	for words, want := range map[string]bool{"H,4503599627370512,1": true, "X,4503599627370512,1": false, "H": false} {
		r, _ := newRecord(t, answers(words))
		f := &follower{shape: shape{word: word, mutable: 4}}
		r.Shape, r.Timed = f, f
		if _, err := r.Read(t.Context(), "a", engine.Options{}); (err == nil) != want || f.followed != want {
			t.Errorf("%s: followed: %v, %v; want %v", words, f.followed, err, want)
		}
	}
}

// A call asks for the time once, whatever comes of it, and not at all if the client
// knows it.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noTIME := step{refused: "NOPERM no permission to run 'time'"}
		r, s := newRecord(t, noTIME)
		defer r.Client.Close()
		var k engine.Clock
		for range 2 {
			if _, err := k.Time(t.Context(), r.Client); !errors.Is(err, upstash.ErrNoPermission) {
				t.Errorf("Time: %v", err)
			}
		}
		s.then(step{answer: `{"result":["1000","0"]}`})
		if _, err := r.Client.ServerTime(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, k := range []*engine.Clock{&k, {}, nil} {
			if now, err := k.Time(t.Context(), r.Client); err != nil || now.Unix() != 1000 {
				t.Errorf("Time = %v, %v", now, err)
			}
		}
	})
}
