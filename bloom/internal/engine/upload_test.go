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
			r, _ := newRecord(t, part, status(c.words), drop)
			r.Shape = &shape{word: word, mutable: 4}
			_, err := r.Merge(t.Context(), body(), moves)
			if !errors.Is(err, c.want) {
				t.Errorf("Merge: %v, want %v", err, c.want)
			}
			if c.want != format.ErrHeaderBits { // only a Replace can meet those
				wantSafe(t, err, true)
			}
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
	inPlace := func(_ context.Context, err error) (int64, error) {
		if !errors.Is(err, errOther) {
			t.Errorf("the script failed by %v, want the mismatch", err)
		}
		return other, nil
	}
	r, _ := newRecord(t, part, status("X,0"), status("H,1").to(`"4503599627370504"`))
	if err := r.Replace(t.Context(), body(), moves, inPlace); err != nil {
		t.Error(err)
	}
}

// encoded is the answer of a server that sends bytes in base64, in a pipeline of
// one command.
func encoded(words string) step { return step{answer: `[{"result":[` + words + `]}]`} }

// Each part of a download proves which filter it is of.
func TestDownload(t *testing.T) {
	for name, c := range map[string]struct {
		answer step
		want   error
	}{
		"whole":          {encoded(`H,0,B,0,"QQ=="`), nil},
		"made again":     {encoded(`H,0,X,0,"QQ=="`), engine.ErrRecreated},
		"gone":           {encoded("0"), engine.ErrRecreated},
		"another filter": {encoded("X"), engine.ErrRecreated},
		"shorter":        {encoded(`H,0,B,0,""`), engine.ErrRecreated},
	} {
		t.Run(name, func(t *testing.T) {
			refused := step{refused: "ERR unknown format"}
			for _, steps := range [][]step{{c.answer}, {refused, c.answer}} {
				r, _ := newRecord(t, steps...)
				r.NoRESP2.Store(len(steps) == 1)
				var got []byte
				err := r.Download(t.Context(), moves, birth, 24, 25, func(at int, part []byte) { got = part })
				if !errors.Is(err, c.want) || (err == nil) != (len(got) == 1) {
					t.Errorf("Download: %v, %d bytes, want %v", err, len(got), c.want)
				}
			}
		})
	}
}
