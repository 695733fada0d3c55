package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/format"
)

// A shape is a kind with a word of its own.
type shape struct {
	word    int64
	mutable uint
	again   int   // how often its command is sent again
	failing error // of Prepare, from the second time on
	asked   int
}

func (s *shape) KindWord(*engine.Request) int64 { return s.word }
func (s *shape) MutableBits() uint              { return s.mutable }

func (s *shape) Prepare(context.Context, *engine.Request, bool) (bool, error) {
	if s.asked++; s.asked > 2 {
		return false, s.failing
	}
	return false, nil
}

func (s *shape) Judge(context.Context, *engine.Request) {}

func (s *shape) Follow(context.Context, *engine.Request) (again, in bool) {
	s.again--
	return s.again >= 0, false
}

func (s *shape) FollowRead(context.Context, *engine.Request) {}

const word = 1<<52 | 16

// The kind's word is set if it is zero, and read back, as the header is.
func TestWriteOfAKind(t *testing.T) {
	r, _ := newRecord(t, answers("H,H,B,4503599627370512,4503599627370515,0").
		to(`"INCRBY","u53","128","4503599627370512","GET","u53","128"`))
	r.Shape = &shape{word: word, mutable: 4}
	add(t, r, "a", true, nil) // the mutable bits may differ
}

func TestWriteToAnotherKind(t *testing.T) {
	r, _ := newRecord(t, answers("null,H,null,null,4503599627370528,0"))
	r.Shape = &shape{word: word, mutable: 4}
	add(t, r, "a", false, errOther)
	if r.MayWrite() == nil {
		t.Error("the record goes on writing")
	}
}

// A word without a header is no filter's.
func TestKindWordWithoutAHeader(t *testing.T) {
	r, _ := newRecord(t, answers("H,H,B,null,4503599627370512,0"))
	r.Shape = &shape{word: word, mutable: 4}
	add(t, r, "a", false, format.ErrNotFilter)
}

func TestLookUpOfAnotherKind(t *testing.T) {
	r, _ := newRecord(t, answers("H,4503599627370528,1"))
	r.Shape = &shape{word: word, mutable: 4}
	find(t, r, "a", false, errOther)
}

// A command that is sent again carries along that an attempt of the one before
// it may have run.
func TestSentAgainAfterALostAnswer(t *testing.T) {
	kind := func(bit string) step { return answers("null,H,null,null,4503599627370512," + bit) }
	r, _ := newRecord(t, lost, kind("0"), kind("1"))
	s := &shape{word: word, mutable: 4, again: 1}
	r.Shape, r.Timed = s, s
	add(t, r, "a", false, engine.ErrUncertain)
}

// If the command cannot be sent again, its error says that it may have run.
func TestSendingAgainFails(t *testing.T) {
	failed := errors.New("no clock")
	r, _ := newRecord(t, answers("null,H,null,null,4503599627370512,0"))
	s := &shape{word: word, mutable: 4, again: 1, failing: failed}
	r.Shape, r.Timed = s, s
	_, err := r.Write(t.Context(), "a", engine.Options{})
	if !errors.Is(err, failed) {
		t.Errorf("Write: %v, want %v", err, failed)
	}
	wantSafe(t, err, false)
}

// An epoch is a kind whose word is another one each time that it is prepared.
type epoch struct{ shape }

func (e *epoch) KindWord(*engine.Request) int64 { return word + int64(e.asked) }

func (e *epoch) Prepare(context.Context, *engine.Request, bool) (bool, error) {
	e.asked++
	return true, nil
}

// A command is for the epoch at which it is sent.
func TestWriteOfAnEpoch(t *testing.T) {
	r, _ := newRecord(t, answers("H,H,B,4503599627370514,4503599627370514,0").to(fmt.Sprintf(`"INCRBY","u53","128","%d"`, int64(word+2))))
	e := &epoch{shape{mutable: 4}}
	r.Shape, r.Timed = e, e
	add(t, r, "a", true, nil)
}
