package proof

import (
	"cmp"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

// one is a call with the times of its beginning and its end.
type one struct {
	from, to int64
	call     Call
	result   Result
	session  string // "x" if it is empty
}

// parts is an AddAll of several requests.
const parts Verb = "addall in parts"

// call is a call that began at from and ended at to. Calls whose times overlap
// may have run in either order.
func call(from, to int64, v Verb, r Result, items ...string) one {
	return one{from: from, to: to, call: Call{Verb: v, Items: items}, result: r}
}

func told(yes ...bool) Result { return Result{End: Answered, Yes: yes, Tried: 1} }

// lost returns the result of a call after n unanswered attempts.
func lost(n int, r Result) Result {
	r.Tried, r.Maybe = r.Tried+n, n
	return r
}

func ended(e End) Result { return Result{End: e, Tried: 1, Safe: e == Missing} }

// opened returns the result of a call that may have run.
func opened() Result { return Result{End: Unknown, Tried: 1, Maybe: 1} }

// TestCheck has right histories, and others with one wrong answer. Items a and
// b share no bit. Together they set the bits of c.
func TestCheck(t *testing.T) {
	const yes, no, isNew, seen, did, didNot = true, false, true, false, true, false
	cfg, a, b, c := sharing(t)
	for _, tt := range []struct {
		name  string
		right bool
		calls []one
	}{
		{"added, found", true, []one{call(1, 2, Add, told(isNew), a), call(3, 4, Exists, told(yes), a)}},
		{"a false no", false, []one{call(1, 2, Add, told(isNew), a), call(3, 4, Exists, told(no), a)}},
		{"found while it is added", true, []one{
			call(1, 4, Add, told(isNew), a), call(2, 3, Create, told(didNot)), call(2, 3, Exists, told(yes), a),
		}},
		{"a yes from nowhere", false, []one{call(1, 2, Add, told(isNew), a), call(3, 4, Exists, told(yes), b)}},
		{"a false positive", true, []one{
			call(1, 2, AddAll, told(isNew, isNew), a, b), call(3, 4, Exists, told(yes), c),
			call(5, 6, Add, told(seen), c),
		}},
		{"half of a false positive", false, []one{
			call(1, 2, Add, told(isNew), a), call(3, 4, Exists, told(yes), c),
		}},
		{"new twice", false, []one{call(1, 2, Add, told(isNew), a), call(1, 2, Add, told(isNew), a)}},
		{"new again after a removal", true, []one{
			call(1, 2, Add, told(isNew), a), call(3, 4, Delete, told(did)), call(5, 6, Add, told(isNew), a),
		}},
		{"seen by one's own lost attempt", false, []one{call(1, 2, Add, lost(1, told(seen)), a)}},
		{"seen, and an attempt lost", true, []one{
			call(1, 2, Add, told(isNew), a), call(3, 4, Add, lost(1, told(seen)), a),
		}},
		{"uncertain after a lost attempt", true, []one{call(1, 2, Add, lost(1, ended(Uncertain)), a)}},
		{"uncertain without one", false, []one{
			call(1, 2, Add, told(isNew), a), call(3, 4, Add, ended(Uncertain), a),
		}},
		{"uncertain, and lost", false, []one{
			call(1, 2, Add, lost(1, ended(Uncertain)), a), call(3, 4, Exists, told(no), a),
		}},
		{"it may have run, and did, late", true, []one{
			call(1, 2, Add, opened(), a), call(3, 4, Exists, ended(Missing), a), call(5, 6, Exists, told(yes), a),
		}},
		{"it may have run, and did not", true, []one{
			call(1, 2, Add, opened(), a), call(3, 4, Add, told(isNew), a),
		}},
		{"it did not run, but did", false, []one{
			call(1, 2, Add, ended(NotRun), a), call(3, 4, Add, told(seen), a),
		}},
		{"gone by itself", false, []one{
			call(1, 2, Add, told(isNew), a), call(3, 4, Exists, ended(Missing), a),
		}},
		{"gone by a deletion of unknown end", true, []one{
			call(1, 2, Add, told(isNew), a), call(3, 4, Delete, opened()), call(5, 6, Exists, ended(Missing), a),
		}},
		{"expired without a TTL", false, []one{
			call(1, 2, Add, told(isNew), a), call(3, 4, Expire, told(did)), call(5, 6, Exists, ended(Missing), a),
		}},
		{"a TTL on other data", false, []one{call(1, 2, Overwrite, told(did)), call(3, 4, Expire, told(did))}},
		{"made twice", false, []one{call(1, 2, Create, told(did)), call(3, 4, Create, told(did))}},
		{"a batch in parts, one filter", true, []one{
			call(1, 6, parts, told(isNew, isNew), a, b), call(2, 3, Exists, told(yes), a),
		}},
		{"a batch in parts, over two filters", false, []one{
			call(1, 6, parts, told(isNew, isNew), a, b), call(2, 3, Exists, told(yes), a),
			call(4, 5, Delete, told(did)), call(7, 8, ExistsAll, told(no, yes), a, b),
		}},
		{"parts that are done, and parts that are not", true, []one{
			call(1, 2, parts, Result{
				End: Partly, Yes: []bool{true, false}, Tried: 1,
				States: []bloom.ItemState{bloom.ItemDone, bloom.ItemNotDone},
			}, a, b),
			call(3, 4, ExistsAll, told(yes, no), a, b),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, cfg, tt.right, tt.calls) })
	}
}

func check(t *testing.T, f Filters, right bool, calls []one) {
	t.Helper()
	checkOf(t, &f, right, calls)
}

// checkOf is check for any type.
func checkOf(t *testing.T, of Subject, right bool, calls []one) {
	t.Helper()
	h := NewHistory(of)
	h.begin = time.Time{}
	for i := range 100 { // two places are a millisecond
		h.ticks = append(h.ticks, time.Duration(i+1)*time.Millisecond)
	}
	for _, o := range calls {
		n := called{client: cmp.Or(o.session, "x"), call: o.call, result: o.result, from: o.from, to: o.to}
		n.session = n.client
		n.began, n.ended = time.Duration(o.from)*time.Millisecond/2, time.Duration(o.to)*time.Millisecond/2
		if o.call.Verb == parts {
			n.call.Verb, n.call.Parts = AddAll, true
		}
		h.calls = append(h.calls, &n)
	}
	if err := h.Check(); (err == nil) != right {
		t.Errorf("right: %v, want %v\n%v", err == nil, right, h)
	}
}

// TestCheckTTL is TestCheck for histories that depend on the Config.
func TestCheckTTL(t *testing.T) {
	const isNew, has, hasNot, did, none = true, true, false, true, false
	for _, tt := range []struct {
		name      string
		right     bool
		ttl       time.Duration
		mustExist bool
		calls     []one
	}{
		{"a TTL", true, time.Hour, false, []one{
			call(1, 2, Add, told(isNew), "a"), call(3, 4, HasTTL, told(has)),
		}},
		{"it expired", true, time.Hour, false, []one{
			call(1, 2, Add, told(isNew), "a"), call(3, 4, Expire, told(did)), call(5, 6, Exists, ended(Missing), "a"),
		}},
		{"it is missing at last", false, time.Hour, false, []one{
			call(1, 2, Add, told(isNew), "a"), call(3, 4, HasTTL, told(hasNot)),
		}},
		{"nobody set one", false, 0, false, []one{
			call(1, 2, Add, told(isNew), "a"), call(3, 4, HasTTL, told(has)),
		}},
		{"Expire set one", true, 0, false, []one{
			call(1, 2, Add, told(isNew), "a"), call(3, 4, SetTTL, told(did)), call(5, 6, HasTTL, told(has)),
		}},
		{"Persist took it off", true, time.Hour, false, []one{
			call(1, 2, Add, told(isNew), "a"), call(3, 4, Persist, told(did)), call(5, 6, HasTTL, told(hasNot)),
		}},
		{"a write did not say that there is none", false, time.Hour, false, []one{
			call(1, 2, Add, told(isNew), "a"), call(3, 4, ProbeTTL, told(hasNot)),
		}},
		{"a write said that there is none", true, time.Hour, false, []one{
			call(1, 2, Add, Result{End: Answered, Yes: []bool{isNew}, Tried: 1, NoTTL: true}, "a"),
			call(3, 4, ProbeTTL, told(hasNot)),
		}},
		{"one of two writes did not say so", false, time.Hour, false, []one{
			call(1, 6, Add, Result{End: Answered, Yes: []bool{isNew}, Tried: 1, NoTTL: true}, "a"),
			call(2, 3, Add, told(isNew), "b"), call(4, 5, ProbeTTL, told(hasNot)),
		}},
		{"another filter has none", true, time.Hour, false, []one{
			call(1, 2, Add, told(isNew), "a"), call(3, 4, Delete, told(did)),
			call(5, 12, Add, lost(1, opened()), "a"), call(7, 8, ProbeTTL, told(hasNot)),
		}},
		{"Persist took it off before the write", true, time.Hour, false, []one{
			call(1, 2, Add, told(isNew), "a"), call(3, 4, Persist, told(did)), call(5, 6, Add, told(isNew), "b"),
			call(7, 8, ProbeTTL, told(hasNot)),
		}},
		{"Persist was of a filter before", false, time.Hour, false, []one{
			call(1, 2, Add, told(isNew), "a"), call(3, 4, Persist, told(did)), call(5, 6, Clear, told(did)),
			call(7, 8, Add, told(isNew), "b"), call(9, 10, ProbeTTL, told(hasNot)),
		}},
		{"it came back after Persist", false, time.Hour, false, []one{
			call(1, 2, Add, told(isNew), "a"), call(3, 4, Persist, told(did)), call(5, 6, HasTTL, told(has)),
		}},
		{"it expired after Persist", false, time.Hour, false, []one{
			call(1, 2, Add, told(isNew), "a"), call(3, 4, Persist, told(did)), call(5, 6, Expire, told(did)),
		}},
		{"Persist found one that nobody set", false, 0, false, []one{
			call(1, 2, Create, told(did)), call(3, 4, Persist, told(did)),
		}},
		{"Persist's own lost attempt may have removed it", false, time.Hour, false, []one{
			call(1, 2, Add, told(isNew), "a"), call(3, 4, Persist, lost(1, told(none))),
		}},
		{"Persist is not sure who removed it", true, time.Hour, false, []one{
			call(1, 2, Add, told(isNew), "a"), call(3, 4, Persist, lost(1, ended(Uncertain))),
		}},
		{"Persist is repeated, and finds no filter", true, 0, false, []one{
			call(1, 2, Persist, lost(1, told(none))),
		}},
		{"Persist is repeated, and removes another's TTL", true, time.Hour, false, []one{
			call(1, 2, Add, told(isNew), "a"), call(3, 8, Persist, lost(1, told(did))),
			call(4, 5, HasTTL, told(hasNot)), call(6, 7, SetTTL, told(did)), call(9, 10, HasTTL, told(hasNot)),
		}},
		{"Persist is repeated, and both removed one", false, time.Hour, false, []one{
			call(1, 2, Add, told(isNew), "a"), call(3, 8, Persist, lost(1, told(did))), call(4, 5, Persist, told(did)),
			call(6, 7, HasTTL, told(hasNot)),
		}},
		{"Expire found a filter that nobody made", false, 0, false, []one{call(1, 2, SetTTL, lost(1, told(did)))}},
		{"Create is repeated, and made it twice", false, 0, false, []one{
			call(1, 6, Create, lost(1, told(did))), call(2, 3, Create, told(did)),
			call(7, 8, Exists, told(false), "a"),
		}},
		{"Create is repeated after a Delete", true, 0, false, []one{
			call(1, 8, Create, lost(1, told(did))), call(2, 3, Exists, told(false), "a"),
			call(4, 5, Delete, told(did)),
			call(9, 10, Exists, told(false), "a"),
		}},
		{"Create found the filter that it made", false, 0, false, []one{call(1, 2, Create, lost(1, told(none)))}},
		{"Create found another's", true, 0, false, []one{
			call(1, 8, Create, lost(1, told(none))), call(2, 3, Exists, told(false), "a"),
			call(4, 5, Delete, told(did)),
			call(6, 7, Create, told(did)),
		}},
		{"Persist finds no filter", true, time.Hour, false, []one{call(1, 2, Persist, told(none))}},
		{"an Add made what must exist", false, 0, true, []one{call(1, 2, Add, told(isNew), "a")}},
		{"a lost Add made what must exist", false, 0, true, []one{
			call(1, 2, Add, opened(), "a"), call(3, 4, Exists, told(true), "a"),
		}},
		{"it must exist, and does not", true, 0, true, []one{call(1, 2, Add, ended(Missing), "a")}},
		{"it must exist, and is not safe to retry", false, 0, true, []one{
			call(1, 2, Add, Result{End: Missing, Tried: 1}, "a"),
		}},
		{"it must exist, and a lost attempt is safe to retry", false, 0, true, []one{
			call(1, 2, Add, lost(1, ended(Missing)), "a"),
		}},
		{"it must exist, and does", false, 0, true, []one{
			call(1, 2, Create, told(did)), call(3, 4, Add, ended(Missing), "a"),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := Filters{Common: Common{TTL: tt.ttl, MustExist: tt.mustExist}, Bits: 53, Hashes: 2}
			check(t, cfg, tt.right, tt.calls)
		})
	}
}

// sharing returns a Config and three such items.
func sharing(t *testing.T) (cfg Filters, a, b, c string) {
	t.Helper()
	cfg = Filters{Bits: 53, Hashes: 2}
	g := cfg.geometry()
	of := func(item string) bits { return bitsOf(g.Positions(nil, item), g.Bits) }
	names := make([]string, 200)
	for i := range names {
		names[i] = string(rune('a'+i/26)) + string(rune('a'+i%26))
	}
	for _, a := range names {
		for _, b := range names {
			for _, c := range names {
				x, y, z := of(a), of(b), of(c)
				apart := x[0]&y[0] == 0 && x[1]&y[1] == 0
				if apart && x.with(y).has(z) && !x.has(z) && !y.has(z) {
					return cfg, a, b, c
				}
			}
		}
	}
	t.Fatal("no such items")
	return cfg, "", "", ""
}
