package engine_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

// One command creates the filter, verifies it and sets the bits.
func TestWriteMakesAFilter(t *testing.T) {
	r, _ := newRecord(t, answers("H,H,B,0").to(`"OVERFLOW","FAIL","INCRBY","u53","0","4503599627370503"`))
	if w := add(t, r, "a", true, nil); !w.Applied || !w.Created {
		t.Errorf("wrote %+v, want it applied and created", w)
	}
}

func TestWriteOfAnItemThatIsThere(t *testing.T) {
	r, _ := newRecord(t, answers("null,H,null,1"))
	if w := add(t, r, "a", false, nil); !w.Applied || w.Created || w.Uncertain {
		t.Errorf("wrote %+v, want it applied, and neither created nor uncertain", w)
	}
}

// A bit that is still 0 proves that the lost attempt did not run: the item is
// new.
func TestLostAnswerAndABitThatIsZero(t *testing.T) {
	r, _ := newRecord(t, lost, answers("null,H,null,0"))
	add(t, r, "a", true, nil)
}

// A bit that is set may be the lost attempt's own work.
func TestLostAnswerAndABitThatIsSet(t *testing.T) {
	for header, words := range map[int64]string{header: "null,H,null,1", 0: "1"} {
		r, _ := newRecord(t, lost, answers(words))
		r.Header = header
		if w := add(t, r, "a", false, engine.ErrUncertain); !w.Applied {
			t.Error("the item is not applied, want it in")
		}
	}
}

// The command itself made the filter: no attempt has written to this one.
func TestLostAnswerAndAFilterMadeAnew(t *testing.T) {
	r, _ := newRecord(t, lost, answers("H,H,B,1"))
	add(t, r, "a", false, nil)
}

// The command gave the filter its birth number, but did not make it: another
// program's filter has none, and may hold the item.
func TestLostAnswerAndAFilterWithoutABirthNumber(t *testing.T) {
	r, _ := newRecord(t, lost, answers("null,H,B,1"))
	add(t, r, "a", false, engine.ErrUncertain)
}

// If no answer comes at all, the item may be in.
func TestNoAnswerAtAll(t *testing.T) {
	r, _ := newRecord(t, lost, lost, lost)
	added, err := r.Write(t.Context(), "a", engine.Options{})
	if err == nil || added {
		t.Errorf("Write: %v, %v; want an error", added, err)
	}
	wantSafe(t, err, false)
}

// A request that never arrived leaves nothing behind.
func TestNothingArrives(t *testing.T) {
	never := step{unsent: true}
	r, _ := newRecord(t, never, never, never)
	_, err := r.Write(t.Context(), "a", engine.Options{})
	wantSafe(t, err, true)
}

// Write is one call of what the other tests take apart.
func TestWrite(t *testing.T) {
	for bit, want := range map[string]bool{"0": true, "1": false} {
		r, _ := newRecord(t, answers("null,H,null,"+bit))
		if added, err := r.Write(t.Context(), "a", engine.Options{}); added != want || err != nil {
			t.Errorf("a bit was %s: Write = %v, %v; want %v", bit, added, err, want)
		}
	}
	r, _ := newRecord(t, lost, answers("null,H,null,1"))
	if added, err := r.Write(t.Context(), "a", engine.Options{}); added || !errors.Is(err, engine.ErrUncertain) {
		t.Errorf("Write = %v, %v; want ErrUncertain", added, err)
	}
}

// An attempt that never arrived repeats nothing: "seen" is certain.
func TestRetryAfterAnAttemptThatDidNotArrive(t *testing.T) {
	r, _ := newRecord(t, step{unsent: true}, answers("null,H,null,1"))
	add(t, r, "a", false, nil)
}

// Each item of a repeated command is judged by itself. That "a" was new proves
// nothing about "b": the lost attempt may have run on a filter replaced since.
func TestItemsOfARepeatedCommand(t *testing.T) {
	for _, first := range []bool{true, false} { // is new
		r, _ := newRecord(t, lost, answers(map[bool]string{true: "null,H,null,0,1", false: "null,H,null,1,0"}[first]))
		added, uncertain, err := addAll(t, r, "a", "b")
		if !errors.Is(err, engine.ErrUncertain) ||
			!slices.Equal(added, []bool{first, !first}) || !slices.Equal(uncertain, []bool{!first, first}) {
			t.Errorf("new %v, uncertain %v, %v; want one new and the other uncertain", added, uncertain, err)
		}
	}
	// What a broken answer began with is nothing.
	r, _ := newRecord(t, lost, answers("null,H,null,1,2"))
	if _, _, err := addAll(t, r, "a", "b"); errors.Is(err, engine.ErrUncertain) || !errors.Is(err, upstash.ErrBadResponse) {
		t.Errorf("%v, want ErrBadResponse", err)
	}
}

// The second of equal items follows the first one: it is seen, for certain.
func TestEqualItemsOfARepeatedCommand(t *testing.T) {
	r, _ := newRecord(t, lost, answers("null,H,null,0,1"))
	added, _, err := addAll(t, r, "a", "a")
	if err != nil || !slices.Equal(added, []bool{true, false}) {
		t.Errorf("new %v, %v; want the first alone, for certain", added, err)
	}
}

// After another filter's header nothing more is written, until an answer shows
// the right filter, or none.
func TestAnotherFilterAtTheKey(t *testing.T) {
	r, s := newRecord(t, answers("null,X,null,0"))
	add(t, r, "a", false, errOther)

	_, err := r.Write(t.Context(), "a", engine.Options{}) // sends nothing
	if !engine.IsForeign(err) {
		t.Errorf("the second Write: %v, want the first one's error", err)
	}
	wantSafe(t, err, true)

	s.then(answers("H,1"), answers("null,H,null,1"))
	find(t, r, "a", true, nil)
	add(t, r, "a", false, nil)

	s.then(answers("null,X,null,0"), answers("0,0"), answers("H,H,B,0"))
	add(t, r, "a", false, errOther)
	find(t, r, "a", false, engine.ErrNotFound)
	add(t, r, "a", true, nil)
}

// The header was added to other data, which had no top bit.
func TestOtherDataAtTheKey(t *testing.T) {
	for words, want := range map[string]error{
		"X,4503599627370519,B,0": format.ErrNotFilter, // a number without the top bit
		"null,5,null,0":          errOther,            // no header at all
	} {
		r, _ := newRecord(t, answers(words))
		_, err := r.Write(t.Context(), "a", engine.Options{})
		if !engine.IsForeign(err) || !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", words, err, want)
		}
		if r.MayWrite() == nil {
			t.Errorf("%s: the record goes on writing", words)
		}
	}
}

func TestAListAtTheKey(t *testing.T) {
	r, _ := newRecord(t, step{refused: "WRONGTYPE Operation against a key holding the wrong kind of value"})
	add(t, r, "a", false, format.ErrNotFilter)
	add(t, r, "a", false, format.ErrNotFilter) // sends nothing
}

// An answer that cannot be one is an error, and never a "seen" or a "new".
func TestBrokenAnswersToAWrite(t *testing.T) {
	for name, answer := range map[string]step{
		"null":                   {answer: `{"result":null}`},
		"a number":               {answer: `{"result":1}`},
		"too few":                answers("H,H,B"),
		"too many":               answers("H,H,B,0,0"),
		"a bit of 2":             answers("H,H,B,2"),
		"a bit of null":          answers("H,H,B,null"),
		"a header of null":       answers("H,null,B,0"),
		"a header of 54 bits":    answers("null,9007199254740992,null,0"),
		"a header that is below": answers("null,-1,null,0"),
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newRecord(t, answer)
			w := add(t, r, "a", false, upstash.ErrBadResponse)
			if w.Applied {
				t.Error("the write counts as applied")
			}
		})
	}
}

// late is a kind of which each first command decides nothing, and is sent again.
type late struct {
	lost             bool  // the items of the first are not in
	failing          error // of Prepare
	prepared, judged int
	followed         int
}

func (l *late) Prepare(context.Context, *engine.Request, bool) (bool, error) {
	l.prepared++
	return false, l.failing
}
func (l *late) Judge(context.Context, *engine.Request)    { l.judged++ }
func (*late) FollowRead(context.Context, *engine.Request) {}
func (l *late) Follow(_ context.Context, q *engine.Request) (again, in bool) {
	l.followed++
	return q.Resends == 0, !l.lost
}

// The items of the first command are in the filter, unless the second finds that
// it went away.
func TestSecondCommandFails(t *testing.T) {
	first := answers("null,H,null,0")
	for name, c := range map[string]struct {
		second []step
		want   error
		in     bool
	}{
		"no answer":      {[]step{lost, lost, lost}, engine.ErrUncertain, true},
		"refused":        {[]step{{refused: "NOPERM no permission to run 'bitfield'"}}, upstash.ErrNoPermission, true},
		"another filter": {[]step{answers("null,X,null,0")}, errOther, false},
		"a list":         {[]step{{refused: "WRONGTYPE Operation against a key"}}, format.ErrNotFilter, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newRecord(t, append([]step{first}, c.second...)...)
			r.Timed = &late{}
			_, err := r.Write(t.Context(), "a", engine.Options{})
			if !errors.Is(err, c.want) || errors.Is(err, engine.ErrUncertain) != c.in {
				t.Errorf("Write: %v, want %v, ErrUncertain: %t", err, c.want, c.in)
			}
			wantSafe(t, err, false)
		})
	}
}

// Nothing is known of an item whose first command's bits are lost, if the second
// fails.
func TestSecondCommandFailsAfterALostOne(t *testing.T) {
	r, _ := newRecord(t, answers("null,H,null,0"), lost, lost, lost)
	r.Timed = &late{lost: true}
	_, err := r.Write(t.Context(), "a", engine.Options{})
	if err == nil || errors.Is(err, engine.ErrUncertain) {
		t.Errorf("Write: %v, want an error that does not say that the item is in", err)
	}
	wantSafe(t, err, false)
}

// What failed is neither judged nor sent again, and what cannot be prepared is not
// sent.
func TestNothingFollowsAnError(t *testing.T) {
	r, s := newRecord(t, answers("null,X,null,0"))
	failed := &late{}
	r.Timed = failed
	add(t, r, "a", false, errOther)
	if failed.judged != 0 || failed.followed != 0 {
		t.Error("an answer about another filter was judged, or followed")
	}

	s.then(answers("H,H,B,0"))
	noClock := errors.New("no clock")
	early := &late{failing: fault.Untouched(noClock)}
	sick, well := recordLike(r), recordLike(r)
	sick.Timed = early
	reqs := []*engine.Request{sick.BeginWrite(t.Context(), engine.Options{}), well.BeginWrite(t.Context(), engine.Options{})}
	for _, q := range reqs {
		q.AppendWrite("a")
	}
	engine.WriteAll(t.Context(), reqs)
	if !errors.Is(reqs[0].Err, noClock) || reqs[1].Err != nil || early.prepared != 1 {
		t.Errorf("%v, %v after asking %d times; want the first alone to fail", reqs[0].Err, reqs[1].Err, early.prepared)
	}
	wantSafe(t, reqs[0].Err, true)
}

// recordLike makes another record with the client of one.
func recordLike(r *engine.Record) *engine.Record {
	return &engine.Record{Client: r.Client, Key: r.Key, Header: r.Header, Items: r.Items, Meaning: r.Meaning}
}

// A client that may only read sends no write.
func TestWriteOfAReader(t *testing.T) {
	r, s := newRecord(t)
	r.Client = client(t, s, upstash.WithReadOnly())
	add(t, r, "a", false, upstash.ErrReadOnly)
}

// An observer learns the birth number, and which items are in.
func TestObserverOfAWrite(t *testing.T) {
	r, _ := newRecord(t, answers("null,H,null,B,0").to(`"GET","u53","64"`))
	var o observer
	if _, err := r.Write(t.Context(), "a", engine.Options{Observer: &o}); err != nil {
		t.Fatal(err)
	}
	if o.wrote.Birth.Number != birth || !o.wrote.Applied || !o.primary {
		t.Errorf("learned %+v of the primary: %v; want the birth number, applied", o.wrote, o.primary)
	}
}

// What sets the TTL may find another filter, or none: the observer learns that too.
func TestObserverOfASettlement(t *testing.T) {
	other := strconv.FormatInt(birth+1<<20, 10)
	for _, shown := range []step{answers("H,0," + other + ",0"), answers("0")} {
		r, _ := expiring(t, answers("H,H,B,0,B,0"), shown)
		var o observer
		_, err := r.Write(t.Context(), "a", engine.Options{Observer: &o})
		if err != nil || len(o.shown) != 1 {
			t.Fatalf("%v, and %d answers were shown; want 1", err, len(o.shown))
		}
		if a := o.shown[0]; a.Birth != birth+1<<20 && !errors.Is(a.Err, engine.ErrNotFound) {
			t.Errorf("birth number %d and %v were shown; want those of the answer", a.Birth, a.Err)
		}
	}
}

type observer struct {
	shown     []engine.ScriptAnswer
	wrote     engine.Written
	birth     int64
	primary   bool
	asPrimary bool
}

func (o *observer) Learn(_ context.Context, q *engine.Request, primary bool) {
	o.wrote, o.birth, o.primary = q.Wrote, q.BirthSeen, primary
}
func (o *observer) Shown(_ context.Context, a engine.ScriptAnswer) { o.shown = append(o.shown, a) }
func (o *observer) WantsPrimary() bool                             { return o.asPrimary }
