package proof

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

// A text is a history. Its calls are separated by semicolons:
//
//	add a: new; 3-9 y>addall/Parts a b: new seen lost; 5-6 delete: did; exists/Key=1 b: missing
//
// A call may begin with the places of its beginning and its end, else it follows those
// before it, and with its session, else that is x. The fields of the Call stand behind
// the verb, and then its items. Of the Result, which is answered by one attempt if
// nothing else is said, some parts have a word: see words, ends, states and say.
type text string

// words are answers.
var words = map[string]bool{
	"yes": true, "new": true, "did": true, "made": true, "has": true, "fits": true, "damaged": true,
	"no": false, "seen": false, "not": false, "found": false, "none": false, "differs": false, "intact": false,
}

// ends say how a call ended.
var ends = map[string]End{
	"missing": Missing, "foreign": Mismatch, "taken": Taken, "refused": NotRun, "unknown": Unknown,
	"uncertain": Uncertain, "partly": Partly,
}

// states say what became of an item of a batch.
var states = map[string]bloom.ItemState{
	"done": bloom.ItemDone, "undone": bloom.ItemNotDone, "unsure": bloom.ItemUnknown,
	"perhaps": bloom.ItemUncertain,
}

// letters are items that share no cells.
var letters = map[string]string{"a": "item-0", "b": "item-1", "c": "item-2"}

// A named type has items with other names than its texts use.
type named struct {
	Subject
	items map[string]string
}

// A sample is a history that the model must accept, or not.
type sample struct {
	name  string
	right bool
	calls text
}

// checkAll checks histories of a type.
func checkAll(t *testing.T, of Subject, samples []sample) {
	t.Helper()
	for _, r := range samples {
		if h := r.calls.history(of); (h.Check() == nil) != r.right {
			t.Errorf("%s: right: %v, want %v\n%v", r.name, !r.right, r.right, h)
		}
	}
}

// epoch is when a history begins: with a pane of 15 s.
var epoch = time.Unix(15e6, 0)

// A reader reads a text whose places are half milliseconds, or, of a type with a Pane,
// written as seconds.
type reader struct {
	named
	places float64
	unit   time.Duration
}

// history reads the text.
func (all text) history(of Subject) *History {
	r := reader{named{Subject: of}, 1, time.Millisecond / 2}
	if n, ok := of.(named); ok {
		r.named = n
	}
	if of, ok := r.Subject.(Type); ok && of.Pane() > 0 {
		r.places, r.unit = 10, time.Second
	}
	h := NewHistory(r.Subject)
	h.begin = epoch
	for i := range 100 { // two places are a millisecond
		h.ticks = append(h.ticks, time.Duration(i+1)*time.Millisecond)
	}
	at := 0.0 // the last place so far
	for part := range strings.SplitSeq(string(all), "; ") {
		call, result, _ := strings.Cut(part, ": ")
		from, to, fields := at+1, at+2, strings.Fields(call)
		if x, y, ok := interval(fields[0]); ok {
			from, to, fields = x, y, fields[1:]
		}
		at = max(at, to)
		h.calls = append(h.calls, r.read(from, to, fields, strings.Fields(result)))
	}
	return h
}

// interval reads "1-2".
func interval(word string) (from, to float64, ok bool) {
	n, _ := fmt.Sscanf(word, "%g-%g", &from, &to)
	return from, to, n == 2
}

func (r *reader) read(from, to float64, call, result []string) *called {
	session, verb, ok := strings.Cut(call[0], ">")
	if !ok {
		session, verb = "x", call[0]
	}
	options := strings.Split(verb, "/")
	c := &called{client: session, session: session, call: Call{Verb: Verb(options[0])}}
	c.from, c.to, c.began, c.ended = int64(from*r.places), int64(to*r.places), r.since(from), r.since(to)
	for _, o := range options[1:] {
		set(&c.call, o)
	}
	for _, item := range call[1:] {
		c.call.Items = append(c.call.Items, r.item(item))
	}
	c.result = Result{End: Answered, Tried: 1, Timed: true}
	for _, word := range result {
		r.say(c, &c.result, word)
	}
	return c
}

func (r *reader) item(name string) string { return cmp.Or(r.items[name], name) }

// since is when a place is.
func (r *reader) since(place float64) time.Duration { return time.Duration(place * float64(r.unit)) }

// say makes a word true of a call's result: it was asked and answered, or not, in the
// whole time of the call or a part of it; an attempt before was lost; a Snapshot has
// cells of some items. Each filter of an AddIn has a word.
func (r *reader) say(c *called, of *Result, word string) {
	name, value, _ := strings.Cut(word, "=")
	yes, isAnswer := words[word]
	state, isState := states[word]
	end, isEnd := ends[word]
	switch {
	case len(c.call.Into) > 0 && of == &c.result && (isAnswer || isEnd):
		one := Result{End: Answered}
		r.say(c, &one, word)
		if one.Safe {
			one.Err = word
		}
		of.End, of.Each = Partly, append(of.Each, one)
	case isAnswer:
		of.Yes = append(of.Yes, yes)
	case isState:
		of.States = append(of.States, state)
	case isEnd:
		of.End, of.Safe = end, end == Missing
		if end == Unknown {
			of.Maybe = 1
		}
	case name == "lost":
		of.Tried, of.Maybe = of.Tried+1, 1
	case name == "asked", name == "silent":
		q := Question{Asked: epoch.Add(c.began), Ended: epoch.Add(c.ended), Answered: name == "asked"}
		if from, to, ok := interval(value); ok {
			q.Asked, q.Ended = epoch.Add(r.since(from)), epoch.Add(r.since(to))
		}
		q.Sent = q.Asked
		of.Questions = append(of.Questions, q)
	case name == "cells":
		var items []string
		for item := range strings.SplitSeq(value, ",") {
			items = append(items, r.item(item))
		}
		of.Cells = cellsOf(localOf(r.Subject.(*Filters).geometry(), items))
	default:
		set(of, word)
	}
}

// set sets a field of a Call or a Result: "Field", "!Field" or "Field=value".
func set(of any, word string) {
	name, value, _ := strings.Cut(word, "=")
	f := reflect.ValueOf(of).Elem().FieldByName(strings.TrimPrefix(name, "!"))
	switch f.Kind() {
	case reflect.Bool:
		f.SetBool(name[0] != '!')
	case reflect.String:
		f.SetString(strings.ReplaceAll(value, "_", " "))
	case reflect.Int64: // a time.Duration
		d, _ := time.ParseDuration(value)
		f.SetInt(int64(d))
	case reflect.Int:
		n, _ := strconv.Atoi(value)
		f.SetInt(int64(n))
	case reflect.Slice: // of numbers
		for n := range strings.SplitSeq(value, ",") {
			i, _ := strconv.Atoi(n)
			f.Set(reflect.Append(f, reflect.ValueOf(i)))
		}
	default:
		panic("proof: a text has " + word)
	}
}
