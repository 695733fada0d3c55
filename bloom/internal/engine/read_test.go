package engine_test

import (
	"testing"

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
	_, err := r.Read(t.Context(), "a", engine.Call{})
	wantSafe(t, err, true)
}

// A full database refuses a BITFIELD, whatever it does.
func TestLookUpOfAFullDatabase(t *testing.T) {
	r, _ := newRecord(t, step{refused: "OOM command not allowed when used memory > 'maxmemory'."})
	find(t, r, "a", false, upstash.ErrOutOfMemory)
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
	s.then(answers("H,H,B,0"))
	add(t, r, "a", true, nil)
}

const noBitfield = "NOPERM this user has no permissions to run the 'bitfield' command"

// The token may not ask the primary, and nobody else is asked.
func TestLookUpWithATokenThatMayOnlyRead(t *testing.T) {
	r, _ := newRecord(t, step{refused: noBitfield})
	find(t, r, "a", false, upstash.ErrNoPermission)
}

// An observer reads the birth number too, and may insist on the primary.
func TestObserverOfALookUp(t *testing.T) {
	r, _ := newRecord(t, answers("H,B,1").to(`["BITFIELD",`))
	r.Nearest = true
	o := observer{asPrimary: true}
	if found, err := r.Read(t.Context(), "a", engine.Call{Observer: &o}); !found || err != nil {
		t.Fatal(found, err)
	}
	if o.birth != birth || !o.primary {
		t.Errorf("learned birth number %d of the primary: %v", o.birth, o.primary)
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
