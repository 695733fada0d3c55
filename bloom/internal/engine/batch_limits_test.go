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
	"github.com/upbloom/upbloom/upstash"
)

// copies is a kind that writes by a script, with an answer for each item. An item
// is two operations.
type copies struct {
	letters
	most int
	sets bool // an item is stored once
}

var copiesScript = upstash.NewScript("return " + strings.Repeat("1", 600))

func (copies) Script(q *engine.Request) upstash.Command {
	return q.Rec.Script(copiesScript, nil, q.ScriptOps...)
}
func (c copies) MaxItems() int                         { return c.most }
func (c copies) StoresCopies() bool                    { return !c.sets }
func (copies) Failed(_ *engine.Request, e error) error { return fmt.Errorf("copies: %w", e) }

func (copies) AppendWrite(q *engine.Request, item string) {
	q.AppendOp(item)
	q.AppendOp(item)
}

// scripted makes a record of that kind.
func scripted(t *testing.T, c copies, steps ...step) *engine.Record {
	t.Helper()
	r, _ := newRecord(t, steps...)
	r.Items, r.Scripted = c, c
	return r
}

// A kind's own script has an answer for each item, whatever its operations.
func TestWriteByAKindsScript(t *testing.T) {
	r := scripted(t, copies{}, answers("H,0,B,0,1").to("return 111"))
	if w := add(t, r, "a", false, nil); w.Birth.Number != birth {
		t.Errorf("wrote %+v, want the birth number", w)
	}
	r = scripted(t, copies{}, answers("X"))
	if _, err := r.Write(t.Context(), "a", engine.Options{}); err == nil || !strings.HasPrefix(err.Error(), "copies: ") {
		t.Errorf("%v, want the kind's error", err)
	}
	for settled, more := range map[string][]step{"1": nil, "0": {answers("H,0,B,0").to(`"60000"`)}} {
		r = scripted(t, copies{}, append([]step{answers("H," + settled + ",B,0,0")}, more...)...)
		r.TTL = time.Minute
		add(t, r, "a", true, nil)
	}
}

// One request carries what fits. It reads no birth number, which nothing compares.
func TestBatchOfOneRequest(t *testing.T) {
	for name, b := range map[string]*engine.Batch{"two items": {Bytes: 1 << 20}, "one that is too long": {Bytes: 1}} {
		b.Items = []string{"a", "b"}[:min(2, b.Bytes)]
		run(t, b, true, answers("null,H,null,0,1"[:len("null,H,null,0")+2*(len(b.Items)-1)]))
		if b.Err != nil || !b.Answers[0] {
			t.Errorf("%s: answers %v, %v", name, b.Answers, b.Err)
		}
	}
	found := &engine.Batch{Bytes: 1 << 20, Items: []string{"a", "b"}} // what it began with is no answer
	if run(t, found, false, answers("H,1,null")); found.Err == nil || found.Answers[0] {
		t.Errorf("found %v, %v; want an error alone", found.Answers, found.Err)
	}
	b := &engine.Batch{Bytes: 1, Split: true, Items: []string{"a"}} // beside others
	run(t, b, true, answers("null,H,null,B,0").to(`"GET","u53","64"`))
	r, _ := newRecord(t, answers("null,H,null,B,0,0").to(`"GET","u53","64"`))
	r.Key = strings.Repeat("k", 2000) // the items alone would certainly fit
	b = &engine.Batch{Bytes: 8000, Items: []string{"a", "b"}}
	runOf(t, b, true, r)
	defer func(n int) { engine.MaxPartItems = n }(engine.MaxPartItems)
	engine.MaxPartItems = 1
	b = &engine.Batch{Bytes: 1 << 20, Items: []string{"a", "b"}}
	run(t, b, true, answers("null,H,null,B,0"), answers("null,H,null,B,1"))
	if b.Err != nil || !b.Answers[0] || b.Answers[1] {
		t.Errorf("answers %v, %v; want a new", b.Answers, b.Err)
	}
}

// run runs a batch of one record, one request after another.
func run(t *testing.T, b *engine.Batch, adding bool, steps ...step) {
	t.Helper()
	r, _ := newRecord(t, steps...)
	runOf(t, b, adding, r)
}

func runOf(t *testing.T, b *engine.Batch, adding bool, records ...*engine.Record) {
	t.Helper()
	b.Lanes, b.Adding, b.Parallel = make([]engine.Lane, len(records)), adding, max(b.Parallel, 1)
	b.Missing = func(err error) error { return err }
	for i, r := range records {
		b.Lanes[i].Rec = r
	}
	b.Run(t.Context())
}

// longest is a server that refuses everything, and notes how long it was.
type longest struct{ bytes int }

func (l *longest) RoundTrip(_ context.Context, req *upstash.Request, resp *upstash.Response) error {
	l.bytes = max(l.bytes, len(req.Body))
	resp.StatusCode, resp.Body = 400, append(resp.Body, `{"error":"ERR no"}`...)
	return nil
}

// A part is no longer than it may be, with the text of its script.
func TestPartsWithAScript(t *testing.T) {
	for name, kind := range map[string]bool{"MustExist": false, "a kind's own": true} {
		r := scripted(t, copies{most: 1000})
		if !kind {
			r, _ = mustExist(t)
		}
		l := new(longest)
		r.Client = client(t, l)
		b := &engine.Batch{Bytes: 4000, Items: strings.Split(strings.Repeat("a,b,", 1000)+"c", ",")}
		runOf(t, b, true, r)
		if l.bytes > b.Bytes || l.bytes < b.Bytes*3/4 {
			t.Errorf("%s: a request of %d bytes, want %d or a little less", name, l.bytes, b.Bytes)
		}
	}
}

// The first part goes alone if nothing is known of the key, and if there is one.
func TestFirstPartGoesAlone(t *testing.T) {
	for name, c := range map[string]struct {
		verified, bare, shards bool
		alone                  bool
	}{
		"nothing is known": {alone: true}, "the header was seen": {verified: true},
		"no header": {bare: true}, "several keys": {shards: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			words := "null,H,null,B,0"
			if c.bare {
				words = "0"
			}
			r, _ := newRecord(t, step{answer: answers(words).answer, slow: time.Second}, step{answer: answers(words).answer, slow: time.Second})
			defer r.Client.Close()
			r.Verified.Store(c.verified)
			b := &engine.Batch{Bytes: 1, Parallel: 2, Items: []string{"a", "b"}}
			if c.bare {
				r.Header = 0
			}
			if c.shards {
				b.LaneOf = func(string) int { return 0 }
			}
			start := time.Now()
			runOf(t, b, true, r)
			if took := time.Since(start); took != time.Second*time.Duration(map[bool]int{true: 2, false: 1}[c.alone]) || b.Err != nil {
				t.Errorf("%s: it took %v, %v", name, took, b.Err)
			}
		})
	}
}

// Equal items are looked up each time, and copies are stored each time, without
// waiting for each other.
func TestEqualItemsThatAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newRecord(t, step{answer: answers("H,1").answer, slow: time.Second}, answers("H,1"))
		defer r.Client.Close()
		b := &engine.Batch{Bytes: 1, Parallel: 2, Items: []string{"a", "a"}}
		runOf(t, b, false, r)
		if b.Err != nil || !b.Answers[0] || !b.Answers[1] {
			t.Errorf("found %v, %v", b.Answers, b.Err)
		}
		s.then(answers("H,1"), answers("0,0"))
		b = &engine.Batch{Bytes: 1, Items: []string{"a", "a"}}
		runOf(t, b, false, r)
		wantStates(t, b, engine.Done, engine.NotDone)

		r.Items, r.Scripted = copies{most: 9}, copies{most: 9}
		s.then(step{answer: answers("H,1,B,0,1").answer, slow: time.Second}, answers("H,1,B,0,0"))
		r.Verified.Store(true)
		b = &engine.Batch{Bytes: 1, Parallel: 2, Items: []string{"a", "a"}}
		runOf(t, b, true, r)
		if wantStates(t, b, engine.Done, engine.Done); b.Answers[0] == b.Answers[1] {
			t.Errorf("answers %v, want one new", b.Answers)
		}
		s.then(answers("H,1,B,0,1"), lost)
		b = &engine.Batch{Bytes: 1, Items: []string{"a", "a"}}
		runOf(t, b, true, r)
		wantStates(t, b, engine.Done, engine.Unknown)
	})
}

// two runs a batch over two records: items before "n" go to the first.
func two(t *testing.T, adding bool, items []string, steps ...step) *engine.Batch {
	t.Helper()
	r, _ := newRecord(t, steps...)
	other := recordLike(r)
	r.Verified.Store(true)
	b := &engine.Batch{Bytes: 1, Split: true, Items: items, LaneOf: func(item string) int {
		if item < "n" {
			return 0
		}
		return 1
	}}
	runOf(t, b, adding, r, other)
	return b
}

// What fails at one key stops it, and not another.
func TestBatchOfTwoKeys(t *testing.T) {
	again, refused := answers("null,H,null,X,0"), step{refused: "NOPERM no permission to run 'bitfield'"}
	here := answers("null,H,null,B,0")
	for name, c := range map[string]struct {
		items []string
		steps []step
		want  []engine.ItemState
		is    error
		fatal bool
	}{
		"one is made again": {
			[]string{"a", "x", "b"},
			[]step{here, here, again},
			[]engine.ItemState{engine.Unknown, engine.Unknown, engine.Unknown},
			engine.ErrRecreated, true,
		},
		"one is refused": {
			[]string{"a", "x", "y", "b"},
			[]step{refused, here, here},
			[]engine.ItemState{engine.NotDone, engine.Done, engine.Done, engine.NotDone},
			upstash.ErrNoPermission, true,
		},
		"one is uncertain after a refusal": {
			[]string{"a", "x"},
			[]step{refused, lost, answers("null,H,null,B,1")},
			[]engine.ItemState{engine.NotDone, engine.Uncertain},
			upstash.ErrNoPermission, true,
		},
		"one is refused after an uncertain one": {
			[]string{"x", "a"},
			[]step{lost, answers("null,H,null,B,1"), refused},
			[]engine.ItemState{engine.Uncertain, engine.NotDone},
			upstash.ErrNoPermission, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := two(t, true, c.items, c.steps...)
			wantStates(t, b, c.want...)
			if !errors.Is(b.Err, c.is) || b.Fatal != c.fatal {
				t.Errorf("%v, fatal: %v; want %v", b.Err, b.Fatal, c.is)
			}
		})
	}
	b := two(t, true, []string{"a", "x"}, refused, lost, lost, lost)
	wantStates(t, b, engine.NotDone, engine.Unknown)
	if errors.Is(b.Err, upstash.ErrNoPermission) {
		t.Errorf("%v, want the lost answer, which is graver", b.Err)
	}
	wantSafe(t, b.Err, false)
	b = two(t, true, []string{"x", "a"}, lost, lost, lost, answers("null,X,null,B,0"))
	wantStates(t, b, engine.Unknown, engine.NotDone)
	if errors.Is(b.Err, errOther) {
		t.Errorf("%v, want the lost answer: at its key the filter has not gone", b.Err)
	}
	b = two(t, false, []string{"a", "b", "x"}, answers("H,0"), answers("H,1"), answers("H,0"))
	if b.Err != nil || b.Answers[0] || !b.Answers[1] || b.Answers[2] {
		t.Errorf("found %v, %v; want b alone", b.Answers, b.Err)
	}
	wantStates(t, b, engine.Done, engine.Done, engine.Done)
}

// If nothing was sent, or all was refused, the error of a batch is safe.
func TestBatchThatIsRefused(t *testing.T) {
	b := batch(t, true, []string{"a", "b"}, step{refused: "NOPERM no permission to run 'bitfield'"})
	wantStates(t, b, engine.NotDone, engine.NotDone)
	wantSafe(t, b.Err, true)
}

// A filter without a birth number that goes away takes its items with it.
func TestFilterWithoutABirthNumberVanishes(t *testing.T) {
	r, _ := mustExist(t, answers("H,1,0,0,0"), answers("0"))
	b := batchOf(t, r, true, "a", "b")
	wantStates(t, b, engine.Unknown, engine.NotDone)
}

// A TTL that could not be set is said beside what stands, and not beside a failure.
func TestBatchWithoutItsTTL(t *testing.T) {
	refusal := step{refused: "NOPERM no permission to run 'eval'"}
	r, s := expiring(t, notSettled, refusal)
	b := batchOf(t, r, true, "a")
	if !errors.Is(b.Err, engine.ErrNoTTL) || !errors.Is(b.Err, upstash.ErrNoPermission) || b.Fatal {
		t.Errorf("%v, want ErrNoTTL and why", b.Err)
	}
	wantSafe(t, b.Err, false)
	s.then(answers("H,H,B,0,B,0"), refusal, step{refused: "NOPERM no permission to run 'bitfield'"})
	b = batchOf(t, r, true, "a", "b")
	if errors.Is(b.Err, engine.ErrNoTTL) || !errors.Is(b.Err, upstash.ErrNoPermission) {
		t.Errorf("%v, want the refusal alone", b.Err)
	}
}
