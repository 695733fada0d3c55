package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

// The string of these tests is 24 bytes of words and one of cells, in one part.
func body() engine.Body {
	return engine.Body{Bytes: make([]byte, 25), SetBits: 0, First: "192", Last: "199"}
}

var (
	moves = engine.Moves{PartBytes: 1 << 20, Parallel: 1}
	part  = step{answer: `{"result":"OK"}`} // its body is the bytes alone
	drop  = step{answer: `{"result":1}`, sent: "UNLINK"}
)

// status is the script's answer: the commands that it called, the header and
// how it ended.
func status(words string) step { return answers("5," + words) }

func TestMerge(t *testing.T) {
	r, _ := newRecord(t, part, status("H,1,2,7,1,B"))
	done, err := r.Merge(t.Context(), body(), moves)
	if err != nil || !done.Created || done.Before != 2 || done.After != 7 || done.Birth != birth || done.Requests != 2 {
		t.Errorf("Merge = %+v, %v", done, err)
	}
}

// The script sets the TTL, but with MustExist it makes and settles nothing.
func TestWhatAMergeSettles(t *testing.T) {
	for sent, must := range map[string]bool{
		`"3600","60000","0",`: false, `,"0","192","199"`: false, `"3600","0","0",`: true, `,"1","192","199"`: true,
	} {
		r, _ := newRecord(t, part, status("H,1,2,7,1,B").to(sent))
		r.TTL, r.MustExist = time.Minute, must
		if _, err := r.Merge(t.Context(), body(), moves); err != nil {
			t.Errorf("MustExist %v: %v", must, err)
		}
	}
}

// The script is sent again after a lost answer and finds no parts: an earlier
// attempt may have taken them.
func TestMergeLost(t *testing.T) {
	r, _ := newRecord(t, part, lost, status("H,2"), drop)
	_, err := r.Merge(t.Context(), body(), moves)
	if !errors.Is(err, engine.ErrUncertain) {
		t.Errorf("Merge: %v, want ErrUncertain", err)
	}
	wantSafe(t, err, false)
}

// Without a lost answer, the parts were evicted, and nothing was taken.
func TestMergeWhoseParts(t *testing.T) {
	for name, c := range map[string]struct {
		words string
		want  error
	}{
		"are gone":               {"H,2", engine.ErrLoadLost},
		"meet another filter":    {"X,0", errOther},
		"meet other data":        {"0,3", engine.ErrNoHeader},
		"meet another kind":      {"H,6,4503599627370528", errOther},
		"meet a missing filter":  {"0,0", engine.ErrNotFound},
		"meet stray header bits": {"H,5", format.ErrHeaderBits},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := newRecord(t, part, status(c.words), drop)
			r.Shape = &shape{word: word, mutable: 4}
			_, err := r.Merge(t.Context(), body(), moves)
			if !errors.Is(err, c.want) {
				t.Errorf("Merge: %v, want %v", err, c.want)
			}
			wantSafe(t, err, true)
			s.then(part, lost, status(c.words), drop)
			_, err = r.Merge(t.Context(), body(), moves)
			wantSafe(t, err, false)
		})
	}
}

// A part that gets no answer ends the upload, and nothing of it was taken.
func TestPartOfAnUploadLost(t *testing.T) {
	r, _ := newRecord(t, lost, lost, lost, drop)
	_, err := r.Merge(t.Context(), body(), moves)
	wantSafe(t, err, true)
}

// The cause of an ended context may be another call's error. Its text stands in
// this one's without the name of the package.
func TestEndedByAnotherCall(t *testing.T) {
	for cause, want := range map[error]string{
		engine.ErrNotFound: "bloom: it was interrupted: context canceled: no filter at this key",
		fmt.Errorf("bloom: another call: %w", context.Canceled): "bloom: it was interrupted: another call: context canceled",
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		err := engine.EachSpan(ctx, "it was interrupted", 1, 0, 1, 1, nil)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A cluster refuses the script, whose keys are in several slots, before it runs. So
// it refuses to remove the parts at once.
func TestUploadToACluster(t *testing.T) {
	cross := step{refused: "CROSSSLOT Keys in request don't hash to the same slot"}
	refuse := func(_ context.Context, err error) (int64, error) { return 0, err }
	for name, upload := range map[string]func(*engine.Record, engine.Moves) error{
		"Merge": func(r *engine.Record, c engine.Moves) error {
			_, err := r.Merge(t.Context(), body(), c)
			return err
		},
		"Replace": func(r *engine.Record, c engine.Moves) error { return r.Replace(t.Context(), body(), c, refuse) },
		"Restore": func(r *engine.Record, c engine.Moves) error {
			_, err := r.Restore(t.Context(), body(), c)
			return err
		},
	} {
		r, _ := newRecord(t, part, part, cross.to("EVAL"), cross.to("UNLINK"),
			step{answer: `[{"result":1},{"result":1}]`}.to(`:0"],["UNLINK"`))
		err := upload(r, engine.Moves{PartBytes: 20, Parallel: 1})
		wantSafe(t, err, true)
		if err == nil || !strings.Contains(err.Error(), "{x}:seen") {
			t.Errorf("%s: %v, want that the key needs a tag", name, err)
		}
		// What refuses to remove them for another reason is left alone.
		r, _ = newRecord(t, part, part, cross.to("EVAL"), step{refused: "NOPERM this user may not"}.to("UNLINK"))
		wantSafe(t, upload(r, engine.Moves{PartBytes: 20, Parallel: 1}), true)
	}
}

// After a lost answer the birth number says that the Replace has run.
func TestReplaceLost(t *testing.T) {
	refuse := func(_ context.Context, err error) (int64, error) { return 0, err }
	r, _ := newRecord(t, part, lost, status("X,0"), answers("X,B").to(`"GET","u53","64"`), drop)
	err := r.Replace(t.Context(), body(), moves, refuse)
	if !errors.Is(err, errOther) {
		t.Errorf("Replace: %v, want the mismatch", err)
	}
	wantSafe(t, err, false) // it may have run before the other filter came
}

// What remains after the end of the context takes a second in all: to ask what
// became of the script, and to remove the parts.
func TestUploadEndsWithItsContext(t *testing.T) {
	hangs, asked := step{hangs: true}, answers("0,0").to(`"GET","u53","64"`)
	for name, after := range map[string]struct {
		steps []step
		took  time.Duration
	}{
		"no answer": {[]step{hangs}, time.Second},
		"one":       {[]step{asked, drop}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := newRecord(t, append([]step{part, hangs}, after.steps...)...)
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				start := time.Now()
				refuse := func(_ context.Context, err error) (int64, error) { return 0, err }
				err := r.Replace(ctx, body(), moves, refuse)
				if took := time.Since(start); err == nil || took != 3*time.Second+after.took {
					t.Errorf("Replace took %v, want %v more than 3 s: %v", took, after.took, err)
				}
			})
		})
	}
}

// A filter that may be replaced has another header: the script runs once more.
func TestReplaceOfAnotherHeader(t *testing.T) {
	onOther := func(_ context.Context, err error) (int64, error) {
		if !errors.Is(err, errOther) {
			t.Errorf("the script failed by %v, want the mismatch", err)
		}
		return other, nil
	}
	r, s := newRecord(t, part, status("X,0"), status("H,1").to(`"4503599627370504"`))
	if err := r.Replace(t.Context(), body(), moves, onOther); err != nil {
		t.Error(err)
	}
	// Its header counts before its bits 53 to 63.
	s.then(part, status("X,5"), status("H,1"))
	if err := r.Replace(t.Context(), body(), moves, onOther); err != nil {
		t.Error(err)
	}
	// The first script may have run before the other filter came.
	s.then(part, lost, status("X,0"), status("H,2"), answers("X,B").to(`"GET","u53","64"`), drop)
	wantSafe(t, r.Replace(t.Context(), body(), moves, onOther), false)
	// A string that is no filter took nothing either, unless the first one did.
	s.then(part, status("X,0"), status("H,5"), drop)
	wantSafe(t, r.Replace(t.Context(), body(), moves, onOther), true)
	s.then(part, lost, status("X,0"), status("H,5"), answers("X,B").to(`"GET","u53","64"`), drop)
	wantSafe(t, r.Replace(t.Context(), body(), moves, onOther), false)
	// But not if its parts are still there.
	s.then(part, lost, status("X,0"), step{refused: "ERR string exceeds maximum allowed size"}, drop)
	wantSafe(t, r.Replace(t.Context(), body(), moves, onOther), true)
}

// A record that refuses its key does so until a Replace has taken it.
func TestReplaceOfWhatIsRefused(t *testing.T) {
	r, s := newRecord(t, answers("null,X,null,0"))
	add(t, r, "a", false, errOther)
	for _, taken := range []bool{false, true} {
		if s.then(part, status("X,0"), drop); taken {
			s.steps = []step{part, status("H,1")}
		}
		err := r.Replace(t.Context(), body(), moves, func(_ context.Context, err error) (int64, error) { return 0, err })
		if (err == nil) != taken || (r.MayWrite() == nil) != taken {
			t.Errorf("Replace: %v, and then a write: %v, want it taken: %v", err, r.MayWrite(), taken)
		}
	}
}

// A replaced string has the birth number of the call that replaced it, also if its
// answer was lost. Who finds another one does not know.
func TestReplaceAfterALostScript(t *testing.T) {
	refuse := func(_ context.Context, err error) (int64, error) { return 0, err }
	for name, c := range map[string]struct {
		steps []step
		done  bool
	}{
		"taken at once":         {[]step{status("H,1")}, true},
		"taken the second time": {[]step{lost, status("H,1")}, true},
		"its own birth number":  {[]step{lost, lost, lost, answers("H,OWN")}, true},
		"and its parts gone":    {[]step{lost, status("H,2"), answers("H,OWN")}, true},
		"another's after it":    {[]step{lost, status("H,2"), answers("H,B"), drop}, false},
		"another's":             {[]step{lost, lost, lost, answers("H,B"), drop}, false},
		"no answer about it":    {[]step{lost, lost, lost, lost, lost, lost, drop}, false},
		"no words":              {[]step{lost, lost, lost, answers("H"), drop}, false},
		"too large after all":   {[]step{lost, {refused: "ERR string exceeds maximum allowed size"}, drop}, false},
		"refused":               {[]step{{refused: "NOPERM this user has no permissions to run the 'eval' command"}, drop}, false},
		"another filter":        {[]step{status("X,0"), drop}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newRecord(t, append([]step{part}, c.steps...)...)
			err := r.Replace(t.Context(), body(), moves, refuse)
			if (err == nil) != c.done || errors.Is(err, engine.ErrUncertain) != (name == "another's after it") {
				t.Errorf("Replace: %v, want it done: %v", err, c.done)
			}
		})
	}
}

// An upload whose parts, or the names of all of them, do not fit into a request
// sends nothing.
func TestUploadThatDoesNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		limit, bytes int
		steps        []step
	}{
		"fits":             {100_000, 50_000, []step{part, status("H,1,2,7,1,B")}},
		"a part is longer": {20_000, 5_000_000, nil},
		"the names are":    {1 << 10, 500, nil},
	} {
		r, s := newRecord(t, c.steps...)
		r.Client = client(t, s, upstash.WithMaxRequest(c.limit))
		whole := body()
		whole.Bytes = make([]byte, c.bytes)
		if _, err := r.Merge(t.Context(), whole, moves); (err == nil) != (c.steps != nil) ||
			err != nil && !errors.Is(err, upstash.ErrRequestTooLarge) {
			t.Errorf("%s: %v", name, err)
		} else if err != nil {
			wantSafe(t, err, true)
		}
	}
}

// A string that not every plan takes is asked for first. The upload ends if it is
// too long, or if no answer came; another error may be of this question alone.
func TestUploadAsksFirst(t *testing.T) {
	defer func(n int) { engine.AskAbove = n }(engine.AskAbove)
	engine.AskAbove = 24
	asked := func(answer string) step {
		return step{answer: "[" + answer + `,{"result":1}]`, sent: `["SETRANGE","key:load:`}
	}
	for name, c := range map[string]struct {
		steps []step
		want  error
		ends  bool
	}{
		"taken":     {[]step{asked(`{"result":25}`), part, status("H,1,2,7,1,B")}, nil, false},
		"too long":  {[]step{asked(`{"error":"ERR max single record size exceeded. Limit: 9 bytes"}`)}, upstash.ErrRecordTooLarge, true},
		"refused":   {[]step{asked(`{"error":"NOPERM no SETRANGE"}`), part, status("H,1,2,7,1,B")}, nil, false},
		"aborted":   {[]step{{refused: "EXECABORT Transaction discarded because of previous errors."}, part, status("H,1,2,7,1,B")}, nil, false},
		"not JSON":  {[]step{{answer: "<html>"}, asked(`{"result":25}`), part, status("H,1,2,7,1,B")}, nil, false},
		"fewer":     {[]step{{answer: `[{"result":25}]`}, asked(`{"result":25}`), part, status("H,1,2,7,1,B")}, nil, false},
		"no answer": {[]step{lost, lost, lost}, nil, true},
	} {
		r, _ := newRecord(t, c.steps...)
		done, err := r.Merge(t.Context(), body(), moves)
		if (err != nil) != c.ends || c.want != nil && !errors.Is(err, c.want) || name == "taken" && (done.Requests != 3 || done.Commands != 9) {
			t.Errorf("%s: %+v, %v, want %v", name, done, err, c.want)
		} else if err != nil {
			wantSafe(t, err, true)
		}
	}
}

// What a script answers is checked before it counts.
func TestMergeGetsABrokenAnswer(t *testing.T) {
	for words, steps := range map[string][]step{
		"": {drop}, "5,H": {drop}, "5,H,0": {drop}, "5,H,9,1,2,0": {drop}, "5,H,null": {drop}, "null,H,1": {drop},
		"5,H,1,2,7,1": nil, "5,H,1,2,7,1,B,0": nil, "5,H,1,7,2,1,B": nil, // it was taken
	} {
		r, _ := newRecord(t, append([]step{part, answers(words)}, steps...)...)
		if _, err := r.Merge(t.Context(), body(), moves); !errors.Is(err, upstash.ErrBadResponse) {
			t.Errorf("%s: %v, want ErrBadResponse", words, err)
		}
	}
}
