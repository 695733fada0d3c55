package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/upstash"
)

// With MustExist a write is a script: it answers the header, bit 127, the birth
// number, the kind's word, and what each bit was.

func mustExist(t *testing.T, steps ...step) (*engine.Record, *server) {
	t.Helper()
	r, s := newRecord(t, steps...)
	r.MustExist = true
	return r, s
}

func TestMustExistWrites(t *testing.T) {
	r, s := mustExist(t, answers("H,1,B,0,0").to(`"EVAL"`))
	if w := add(t, r, "a", true, nil); w.Birth.Number != birth {
		t.Errorf("the birth number is %d, want %d", w.Birth.Number, int64(birth))
	}
	for range 20 { // the pool may not return the last request
		s.then(answers("H,1,B,0,1").to(`"EVALSHA"`), answers("H,1").to(`"BITFIELD"`))
		if added, err := r.Write(t.Context(), "a", engine.Options{}); added || err != nil {
			t.Errorf("Write = %v, %v; want false", added, err)
		}
		find(t, r, "a", true, nil)
	}
}

// A script has no operations before those of its items.
func TestSizeOfAScript(t *testing.T) {
	r, _ := mustExist(t)
	q := r.BeginWrite(t.Context(), engine.Options{})
	before := q.Size()
	q.AppendWrite("a")
	if r.Header = 0; before != r.BeginRead(t.Context(), engine.Options{}).Size() || q.Size() != before+len(`,"192"`) {
		t.Errorf("%d bytes, and %d with an item", before, q.Size())
	}
}

// Nothing is written if there is no filter, and nothing was by this call.
func TestMustExistAndNoFilter(t *testing.T) {
	r, _ := mustExist(t, answers("0"))
	_, err := r.Write(t.Context(), "a", engine.Options{})
	if !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("Write: %v, want ErrNotFound", err)
	}
	wantSafe(t, err, true)
}

// The lost attempt may have run on a filter deleted since.
func TestMustExistLostAndThenNoFilter(t *testing.T) {
	for name, answer := range map[string]string{"no filter": "0", "another filter": "X"} {
		r, _ := mustExist(t, lost, answers(answer))
		_, err := r.Write(t.Context(), "a", engine.Options{})
		if !engine.NoFilterHere(err) {
			t.Errorf("%s: %v, want an error about the key", name, err)
		}
		wantSafe(t, err, false)
	}
}

// The server has forgotten the script: nothing ran, and its text is sent.
func TestScriptForgotten(t *testing.T) {
	r, s := mustExist(t, answers("H,1,B,0,0"))
	add(t, r, "a", true, nil)
	s.then(step{refused: "NOSCRIPT No matching script. Please use EVAL."}.to(`"EVALSHA"`),
		answers("H,1,B,0,1").to(`"EVAL"`))
	add(t, r, "a", false, nil)
}

// A refusal for the script's form forgets no earlier attempt.
func TestScriptForgottenAfterALostAnswer(t *testing.T) {
	r, s := mustExist(t, answers("H,1,B,0,0"))
	add(t, r, "a", true, nil)
	s.then(lost, step{refused: "NOSCRIPT No matching script. Please use EVAL."}, answers("H,1,B,0,1"))
	add(t, r, "a", false, engine.ErrUncertain)
}

// A server that does not know the first line gets the script without it.
func TestScriptWithAFlagThatIsRefused(t *testing.T) {
	r, s := mustExist(t,
		step{refused: "ERR Unexpected flag in script shebang: allow-key-locking"}.to("#!lua"),
		answers("H,1,B,0,0").to(`["EVAL","local w`))
	add(t, r, "a", true, nil)
	s.then(answers("H,1,B,0,0"))
	add(t, r, "b", true, nil)
}

// A token that may not run scripts has written nothing.
func TestScriptRefused(t *testing.T) {
	r, _ := mustExist(t, step{refused: "NOPERM this user has no permissions to run the 'eval' command"})
	_, err := r.Write(t.Context(), "a", engine.Options{})
	if !errors.Is(err, upstash.ErrNoPermission) {
		t.Errorf("Write: %v, want ErrNoPermission", err)
	}
	wantSafe(t, err, true)
}

// A script of a thousand operations runs them in several commands. It may have
// stopped between two of them.
func TestScriptThatStopsHalfway(t *testing.T) {
	for n, want := range map[int]engine.ItemState{999: engine.NotDone, 1000: engine.Unknown} {
		r, _ := mustExist(t, step{refused: "ERR max single record size exceeded script: 012d00, on @user_script:8."})
		b := &engine.Batch{Bytes: 1 << 20, Items: strings.Split(strings.Repeat("a,", n-1)+"b", ",")}
		runOf(t, b, true, r)
		wantStates(t, b, slices.Repeat([]engine.ItemState{want}, n)...)
		wantSafe(t, b.Err, want == engine.NotDone)
	}
}

// The string is of the same header and another kind: the script does nothing.
// Its arguments are 2^4, for the mutable bits, and the fixed bits of the word.
func TestScriptAtAnotherKind(t *testing.T) {
	r, _ := mustExist(t, answers("H,1,B,4503599627370528").to(`"16","281474976710657"`))
	r.Shape = &shape{word: 1<<52 | 16, mutable: 4}
	add(t, r, "a", false, errOther)
	if r.MayWrite() == nil {
		t.Error("the record goes on writing")
	}
}

func TestBrokenAnswersToAScript(t *testing.T) {
	for name, words := range map[string]string{
		"nothing":             "",
		"no kind's word":      "H,1,B",
		"an answer too few":   "H,1,B,0",
		"an answer too many":  "H,1,B,0,0,0",
		"a header of null":    "null,1,B,0,0",
		"a TTL bit of 2":      "H,2,B,0,0",
		"a birth number null": "H,1,null,0,0",
		"a bit of 2":          "H,1,B,0,2",
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := mustExist(t, answers(words))
			add(t, r, "a", false, upstash.ErrBadResponse)
		})
	}
}
