package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/upstash"
)

// batch runs a batch of one item a request, one request after another. An AddAll
// compares the birth numbers of its parts.
func batch(t *testing.T, adding bool, items []string, steps ...step) *engine.Batch {
	t.Helper()
	r, _ := newRecord(t, steps...)
	return batchOf(t, r, adding, items...)
}

func batchOf(t *testing.T, r *engine.Record, adding bool, items ...string) *engine.Batch {
	t.Helper()
	b := &engine.Batch{
		Lanes: make([]engine.Lane, 1), Items: items, Adding: adding, Bytes: 1, Parallel: 1,
		Missing: func(err error) error { return err },
	}
	b.Lanes[0].Rec = r
	b.Run(t.Context())
	return b
}

func wantStates(t *testing.T, b *engine.Batch, want ...engine.ItemState) {
	t.Helper()
	if !slices.Equal(b.States, want) {
		t.Errorf("states %v, want %v: %v", b.States, want, b.Err)
	}
}

func TestBatch(t *testing.T) {
	b := batch(t, true, []string{"a", "b"}, answers("null,H,null,B,0"), answers("null,H,null,B,1"))
	if b.Err != nil || !b.Answers[0] || b.Answers[1] {
		t.Errorf("answers %v, %v; want a new", b.Answers, b.Err)
	}
}

// A part whose answer was lost does not stop the others.
func TestPartLost(t *testing.T) {
	b := batch(t, true, []string{"a", "b"}, lost, answers("null,H,null,B,1"), answers("null,H,null,B,0"))
	wantStates(t, b, engine.Uncertain, engine.Done)
	if !errors.Is(b.Err, engine.ErrUncertain) || b.Fatal || !b.Answers[1] {
		t.Errorf("%v, fatal %v; want b new, and ErrUncertain", b.Err, b.Fatal)
	}
}

// While an item is under way, an equal one waits for its answer. It follows the
// first, and so is seen, even if nobody knows whether the first was new.
func TestDuplicateOfAnUncertainItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := batch(t, true, []string{"b", "a", "a"}, answers("null,H,null,B,0"),
			step{lost: true, slow: time.Second}, answers("null,H,null,B,1"))
		wantStates(t, b, engine.Done, engine.Uncertain, engine.Done)
		if b.Answers[1] || b.Answers[2] {
			t.Errorf("answers %v, want neither a new", b.Answers)
		}
	})
}

// It is seen as well if its own part is lost, after the first was answered.
func TestDuplicateInAPartThatIsLost(t *testing.T) {
	b := batch(t, true, []string{"a", "b", "a"}, answers("null,H,null,B,0"), lost, answers("null,H,null,B,1"), lost, lost, lost)
	wantStates(t, b, engine.Done, engine.Uncertain, engine.Done)
	if !b.Answers[0] || b.Answers[2] || b.Err == nil {
		t.Errorf("answers %v, %v, want the first a new, and an error", b.Answers, b.Err)
	}
}

// So a lost part that has only copies of an item that is in leaves nothing in
// doubt.
func TestPartOfDuplicatesIsLost(t *testing.T) {
	again := answers("null,H,null,B,1")
	for name, second := range map[string][]step{"and repeated": {lost, again}, "for good": {lost, lost, lost}} {
		b := batch(t, true, []string{"a", "a"}, append([]step{answers("null,H,null,B,0")}, second...)...)
		wantStates(t, b, engine.Done, engine.Done)
		if b.Err != nil || b.Fatal || !b.Answers[0] || b.Answers[1] {
			t.Errorf("%s: answers %v, %v; want a new, then seen, and no error", name, b.Answers, b.Err)
		}
	}
	r, _ := mustExist(t, answers("H,1,0,0,0"), answers("X")) // a filter without a birth number
	if b := batchOf(t, r, true, "a", "a"); !errors.Is(b.Err, errOther) {
		t.Errorf("%v, want the mismatch: the filter went away", b.Err)
	}
}

// An item may be in if an equal one before it may be, although it was not sent.
func TestDuplicateOfAnUnknownItem(t *testing.T) {
	b := batch(t, true, []string{"a", "b", "a"}, lost, lost, lost)
	wantStates(t, b, engine.Unknown, engine.NotDone, engine.Unknown)
	wantSafe(t, b.Err, false)
}

// After a part that failed nothing more is sent.
func TestPartFails(t *testing.T) {
	refused := step{refused: "NOPERM no permission to run 'bitfield'"}
	b := batch(t, true, []string{"a", "b", "c"}, answers("null,H,null,B,0"), refused)
	wantStates(t, b, engine.Done, engine.NotDone, engine.NotDone)
	if !errors.Is(b.Err, upstash.ErrNoPermission) || !b.Fatal || !b.Answers[0] {
		t.Errorf("%v, fatal %v; want the refusal beside a's answer", b.Err, b.Fatal)
	}
}

func TestPartGetsNoAnswer(t *testing.T) {
	b := batch(t, true, []string{"a", "b"}, answers("null,H,null,B,0"), lost, lost, lost)
	wantStates(t, b, engine.Done, engine.Unknown)
}

// The parts met two filters: nobody knows which of them ran first.
func TestFilterMadeAgainBetweenParts(t *testing.T) {
	b := batch(t, true, []string{"a", "b"}, answers("null,H,null,B,0"), answers("null,H,null,X,0"))
	wantStates(t, b, engine.Unknown, engine.Unknown)
	if !errors.Is(b.Err, engine.ErrRecreated) || b.Answers[0] {
		t.Errorf("%v, answers %v; want ErrRecreated and none", b.Err, b.Answers)
	}
}

// A script gives no birth number to a filter of another program, which has number 0.
func TestFilterOfBirthZeroMadeAgainBetweenParts(t *testing.T) {
	r, _ := mustExist(t, answers("H,1,0,0,0"), answers("H,1,B,0,0"))
	b := batchOf(t, r, true, "a", "b")
	wantStates(t, b, engine.Unknown, engine.Unknown)
	if !errors.Is(b.Err, engine.ErrRecreated) || b.Answers[0] {
		t.Errorf("%v, answers %v; want ErrRecreated and none", b.Err, b.Answers)
	}
}

// The second part made the filter, and its first answer was lost.
func TestFilterMadeAgainByAPartWhoseAnswerIsLost(t *testing.T) {
	b := batch(t, true, []string{"a", "b", "c"}, answers("null,H,null,B,0"), lost, answers("null,H,null,X,1"))
	wantStates(t, b, engine.Unknown, engine.Unknown, engine.NotDone)
	if !errors.Is(b.Err, engine.ErrRecreated) {
		t.Errorf("%v, want ErrRecreated", b.Err)
	}
}

// The first attempt went into the filter, where another client may have seen it.
func TestOtherDataAfterALostPart(t *testing.T) {
	list := step{refused: "WRONGTYPE Operation against a key holding the wrong kind of value"}
	for _, there := range []step{answers("null,X,null,B,0"), list} {
		b := batch(t, true, []string{"a", "b", "c"}, lost, there)
		wantStates(t, b, engine.Unknown, engine.NotDone, engine.NotDone)
	}
}

// A filter that must exist went away: no item of an earlier part is certainly in.
func TestFilterVanishesBetweenParts(t *testing.T) {
	r, _ := mustExist(t, answers("H,1,B,0,0"), answers("0"))
	b := batchOf(t, r, true, "a", "b", "c")
	wantStates(t, b, engine.Unknown, engine.NotDone, engine.NotDone)
	if !errors.Is(b.Err, engine.ErrNotFound) || b.Answers[0] {
		t.Errorf("%v, answers %v; want ErrNotFound and none", b.Err, b.Answers)
	}
	r, _ = mustExist(t, answers("0")) // AddSeq asks, whose earlier rounds may have met it
	if b := batchOf(t, r, true, "a", "b"); b.Lanes[0].Gone == nil {
		t.Error("a filter that is missing has not gone")
	}
}

// The part that met other data is answered before one that ran on the filter.
func TestFilterReplacedBeforeAnEarlierPartIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newRecord(t, answers("H,0"))
		find(t, r, "z", false, nil) // now no part goes ahead alone
		ran := answers("null,H,null,B,0")
		ran.slow = time.Second
		s.then(ran, answers("null,X,null,B,0"))
		b := &engine.Batch{
			Lanes: []engine.Lane{{Rec: r}}, Items: []string{"a", "b"}, Adding: true, Bytes: 1, Parallel: 2,
		}
		b.Run(t.Context())
		slices.Sort(b.States)
		wantStates(t, b, engine.NotDone, engine.Unknown)
		if !errors.Is(b.Err, errOther) || b.Answers[0] || b.Answers[1] {
			t.Errorf("%v, answers %v; want the mismatch and none", b.Err, b.Answers)
		}
	})
}

// An answer that is too short may be one to a part that ran.
func TestPartGetsABrokenAnswer(t *testing.T) {
	b := batch(t, true, []string{"a", "b"}, answers("null,H,null,B"))
	wantStates(t, b, engine.Unknown, engine.NotDone)
}

// Another filter stands at the key: what was sent to the first one is lost.
func TestFilterReplacedBetweenParts(t *testing.T) {
	b := batch(t, true, []string{"a", "b", "c"}, answers("null,H,null,B,0"), answers("null,X,null,B,0"))
	wantStates(t, b, engine.Unknown, engine.NotDone, engine.NotDone)
	if !errors.Is(b.Err, errOther) {
		t.Errorf("%v, want the mismatch", b.Err)
	}
}

// The first of several parts goes alone, until the header was seen.
func TestFirstPartMeetsAnotherFilter(t *testing.T) {
	b := batch(t, true, []string{"a", "b"}, answers("null,X,null,B,0"))
	wantStates(t, b, engine.NotDone, engine.NotDone)
}

// Without an answer a look-up is not done; what was found before is.
func TestLookUpPartFails(t *testing.T) {
	b := batch(t, false, []string{"a", "b", "c"}, answers("H,1"), answers("0,0"))
	wantStates(t, b, engine.Done, engine.NotDone, engine.NotDone)
	if !errors.Is(b.Err, engine.ErrNotFound) || !b.Answers[0] {
		t.Errorf("%v, answers %v; want ErrNotFound beside a's", b.Err, b.Answers)
	}
}

// Two parts are under way. The error of the one that may have run outranks that of
// the one that certainly did not, whichever comes first.
func TestLostPartOutranksARefusedOne(t *testing.T) {
	after := func(s step, seconds int) step {
		s.slow = time.Duration(seconds) * time.Second
		return s
	}
	for _, harmless := range []step{{refused: "OOM command not allowed"}, {unsent: true}} {
		for _, steps := range [][]step{
			{after(harmless, 1), after(lost, 2)},
			{after(lost, 2), after(harmless, 1)},
			{after(harmless, 2), after(lost, 1)},
			{after(lost, 1), after(harmless, 2)},
		} {
			synctest.Test(t, func(t *testing.T) {
				r, s := newRecord(t, answers("H,0"))
				find(t, r, "z", false, nil) // now no part goes ahead alone
				r.Client = client(t, s, upstash.WithRetry(0))
				s.then(steps...)
				b := &engine.Batch{
					Lanes: []engine.Lane{{Rec: r}}, Items: []string{"a", "b"}, Adding: true, Bytes: 1, Parallel: 2,
				}
				b.Run(t.Context())
				slices.Sort(b.States)
				wantStates(t, b, engine.NotDone, engine.Unknown)
				wantSafe(t, b.Err, false)
				if !strings.Contains(b.Err.Error(), "the connection broke") {
					t.Errorf("%v, want the lost part's error", b.Err)
				}
			})
		}
	}
}

// Of three parts one ran, one found no filter or another, and one failed. The error says
// that the filter went away, whichever comes first.
func TestVanishedFilterOutranksAFailedPart(t *testing.T) {
	refused, ran := step{refused: "OOM command not allowed"}, answers("H,1,B,0,0")
	ran.slow = time.Second
	for gone, is := range map[string]error{"0": engine.ErrNotFound, "X": errOther} {
		for _, failed := range []step{refused, lost} {
			for seconds := range 2 {
				synctest.Test(t, func(t *testing.T) {
					r, s := mustExist(t, answers("H,0"))
					find(t, r, "z", false, nil) // now no part goes ahead alone
					r.Client = client(t, s, upstash.WithRetry(0))
					other := answers(gone)
					failed.slow, other.slow = time.Duration(2+seconds)*time.Second, time.Duration(3-seconds)*time.Second
					s.then(ran, failed, other)
					b := &engine.Batch{
						Lanes: []engine.Lane{{Rec: r}}, Items: []string{"a", "b", "c"}, Adding: true, Bytes: 1, Parallel: 3,
					}
					b.Run(t.Context())
					if !slices.Contains(b.States, engine.Unknown) || !errors.Is(b.Err, is) {
						t.Errorf("states %v, %v; want one unknown, and %v", b.States, b.Err, is)
					}
					wantSafe(t, b.Err, false)
				})
			}
		}
	}
}
