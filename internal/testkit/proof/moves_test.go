package proof

import (
	"testing"
	"time"
)

// at2 returns the call on the second key.
func (o one) at2() one { o.call.Key = 1; return o }

func counted(n int, r Result) Result { r.Count = n; return r }

// done is a call without an answer of its own.
func done() Result { return Result{End: Answered, Tried: 1} }

// TestCheckMoves is TestCheck for moves of whole filters. Items a and b share
// no bit.
func TestCheckMoves(t *testing.T) {
	const yes, no, isNew, created, was = true, false, true, true, false
	f, a, b, _ := sharing(t)
	copied := func(items ...string) Result {
		r := done()
		r.Cells = cellsOf(localOf(f.geometry(), items))
		return r
	}
	for _, tt := range []struct {
		name  string
		right bool
		calls []one
	}{
		{"loaded", true, []one{
			call(2, 4, Load, counted(4, told(created)), a, b), call(6, 8, Exists, told(yes), b),
		}},
		{"loaded, and made twice", false, []one{
			call(2, 4, Load, counted(2, told(created)), a), call(6, 8, Load, counted(2, told(created)), b),
		}},
		{"loaded, and counted wrong", false, []one{call(2, 4, Load, counted(3, told(created)), a, b)}},
		{"a Load that came back after a Delete", false, []one{
			call(2, 20, Load, counted(-1, lost(1, told(created))), a),
			call(4, 6, Exists, told(yes), a), call(8, 10, Delete, told(true)),
			call(22, 24, Exists, told(yes), a),
		}},
		{"a Load that may have run, late", true, []one{
			call(2, 4, Load, opened(), a), call(6, 8, Exists, ended(Missing), a), call(10, 12, Exists, told(yes), a),
		}},
		{"a Replace that undid another and an Add", false, []one{
			call(2, 20, Replace, done(), a), call(4, 6, Exists, told(yes), a),
			call(8, 10, Replace, done(), b), call(12, 14, Add, told(isNew), a), call(16, 18, Exists, told(yes), b),
			call(22, 24, Exists, told(no), b),
		}},
		{"replaced", true, []one{
			call(2, 4, Add, told(isNew), a), call(6, 8, Replace, done(), b), call(10, 12, ExistsAll, told(no, yes), a, b),
		}},
		{"another filter was replaced", true, []one{
			call(2, 4, Smudge, told(was), a), call(6, 8, Add, ended(Mismatch), a),
			call(10, 12, Replace, done(), a), call(14, 16, Exists, told(yes), a),
		}},
		{"other data was replaced", false, []one{call(2, 4, Overwrite, done()), call(6, 8, Replace, done(), a)}},
		{"a handle that met other data wrote again", false, []one{
			call(2, 4, Overwrite, done()), call(6, 8, Add, ended(Mismatch), a), call(10, 12, Add, ended(Mismatch), a),
		}},
		{"new in another program's filter", false, []one{
			call(2, 4, Plant, done(), a, b), call(6, 8, Add, lost(1, told(isNew)), a),
		}},
		{"copied", true, []one{call(2, 4, Add, told(isNew), a), call(6, 8, Snapshot, copied(a))}},
		{"copied while it is added", true, []one{
			call(2, 4, Add, told(isNew), a), call(6, 12, Snapshot, copied(a)), call(8, 10, Add, told(isNew), b),
		}},
		{"an empty copy of a filter that was away", false, []one{
			call(2, 4, Add, told(isNew), a), call(6, 20, Snapshot, copied()),
			call(8, 10, Rename, done()), call(12, 14, Rename, done()).at2(),
		}},
		{"a copy with items of nobody", false, []one{
			call(2, 4, Add, told(isNew), a), call(6, 8, Snapshot, copied(a, b)),
		}},
		{"renamed", true, []one{
			call(2, 4, Add, told(isNew), a), call(6, 8, Rename, done()),
			call(10, 12, Exists, ended(Missing), a), call(14, 16, Exists, told(yes), a).at2(),
		}},
		{"renamed over something", false, []one{
			call(2, 4, Create, told(true)), call(6, 8, Create, told(true)).at2(), call(10, 12, Rename, done()),
		}},
		{"counted behind the last cell", false, []one{
			call(2, 4, Add, told(isNew), a), call(6, 8, Stats, counted(5, done())),
		}},
		{"many refreshes for callers at once", false, []one{call(2, 4, Crowd, counted(2, done()))}},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, f, tt.right, tt.calls) })
	}
}

// TestCheckOver checks the Loads of handles with a Capacity. A filter is too full
// with the items a, b and c.
func TestCheckOver(t *testing.T) {
	const isNew = true
	f, items := Filters{Bits: 53, Hashes: 2, Sized: true}, []string{"item-0", "item-1", "item-2"}
	a, b, c := items[0], items[1], items[2]
	full := bitsOf(nil, 53)
	for _, item := range items {
		full = full.with(f.cells(AddAll, item))
	}
	if n := full.count(); n != 6 || !tooFull(f.geometry(), n) || tooFull(f.geometry(), 4) {
		t.Fatalf("%d bits are set, and two items are too many: %v", n, tooFull(f.geometry(), 4))
	}
	fills := call(1, 2, AddAll, told(isNew, isNew, isNew), a, b, c)
	load := func(over bool, tried int) one {
		r := counted(0, told(false))
		r.Sized, r.Over, r.Tried, r.Maybe = true, over, tried, tried-1
		if tried > 1 {
			r.Count = -1
		}
		return call(5, 6, Load, r, a)
	}
	for _, tt := range []struct {
		name  string
		right bool
		calls []one
	}{
		{"too full", true, []one{fills, load(true, 1)}},
		{"too full, and it does not say so", false, []one{fills, load(false, 1)}},
		{"not too full", true, []one{call(1, 2, Add, told(isNew), a), load(false, 1)}},
		{"not too full, and it says so", false, []one{call(1, 2, Add, told(isNew), a), load(true, 1)}},
		{"an answer from another moment", true, []one{fills, load(false, 2)}},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, f, tt.right, tt.calls) })
	}
}

// TestCheckExpired lets filters with a TTL expire at both keys.
func TestCheckExpired(t *testing.T) {
	for _, ttl := range []time.Duration{0, time.Hour} {
		for key := range 2 {
			f := Filters{Common: Common{TTL: ttl}, Bits: 53, Hashes: 2}
			h := NewHistory(&f)
			h.MayExpire(1)
			for i, c := range []Call{{Verb: Create, Key: key}, {Verb: Exists, Key: key, Items: []string{"a"}}} {
				h.calls = append(h.calls, &called{
					call: c, result: []Result{told(true), ended(Missing)}[i], from: int64(4*i + 2), to: int64(4*i + 4),
				})
			}
			if err := h.Check(); (err == nil) != (ttl > 0) {
				t.Errorf("TTL %v, key %d: Check() = %v, want an error only without a TTL", ttl, key, err)
			}
		}
	}
}

// TestCheckMirror is TestCheck for old answers. Places are half milliseconds.
func TestCheckMirror(t *testing.T) {
	const yes, no, isNew, seen = true, false, true, false
	f := Filters{Bits: 53, Hashes: 2, Staleness: Staleness{MaxStale: 5 * time.Millisecond, MaxTrust: 20 * time.Millisecond}}
	added := call(2, 4, Add, told(isNew), "a")
	copied := Result{End: Answered, Yes: []bool{seen}} // without a request
	for _, tt := range []struct {
		name  string
		right bool
		calls []one
	}{
		{"not found yet", true, []one{
			call(2, 3, Create, told(true)), call(4, 6, Add, told(isNew), "a"), call(10, 12, MirrorExists, told(no), "a"),
		}},
		{"not found for too long", false, []one{
			call(2, 3, Create, told(true)), call(4, 6, Add, told(isNew), "a"), call(30, 32, MirrorExists, told(no), "a"),
		}},
		{"its own Add is forgotten", false, []one{
			call(2, 3, Create, told(true)), call(4, 6, MirrorThrough, told(isNew), "a"),
			call(10, 12, MirrorExists, told(no), "a"),
		}},
		{"a Refresh is forgotten", false, []one{
			call(2, 3, Create, told(true)), call(4, 6, Add, told(isNew), "a"), call(7, 8, Refresh, done()),
			call(10, 12, MirrorExists, told(no), "a"),
		}},
		{"found, and deleted a moment ago", true, []one{
			added, call(6, 8, Delete, told(true)), call(20, 22, MirrorExists, told(yes), "a"),
			call(24, 26, MirrorAdd, copied, "a"),
		}},
		{"found, and deleted long ago", false, []one{
			added, call(6, 8, Delete, told(true)), call(60, 62, MirrorExists, told(yes), "a"),
		}},
		{"seen in the copy, and deleted long ago", false, []one{
			added, call(6, 8, Delete, told(true)), call(60, 62, MirrorAdd, copied, "a"),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, f, tt.right, tt.calls) })
	}
}

// TestCheckMirrorBeside is TestCheckMirror for copies with a stuck region, and
// for an Add repeated across a Replace.
func TestCheckMirrorBeside(t *testing.T) {
	const yes, no, isNew = true, false, true
	stuck := Filters{
		Common: Common{Lag: true, ReadsNearest: true}, Bits: 53, Hashes: 2,
		Staleness: Staleness{MaxStale: 5 * time.Millisecond, MaxTrust: time.Minute}, NoScripts: true,
	}
	trusting := stuck
	trusting.MaxStale = 0
	beside := func(last one) []one {
		return []one{
			call(2, 4, Add, told(isNew), "b"), call(6, 8, Add, told(isNew), "a"),
			call(10, 12, MirrorExists, told(yes), "b"), last,
		}
	}
	patient := Filters{Bits: 53, Hashes: 2, Staleness: Staleness{MaxStale: 20 * time.Millisecond, MaxTrust: time.Minute}}
	// An Add is answered at its second attempt. If the item was there before,
	// "new" proves that the attempt came after the Replace.
	repeated := func(before, found bool) []one {
		calls := []one{
			call(2, 3, Create, told(true)), call(4, 5, Refresh, done()),
			call(8, 20, MirrorThrough, lost(1, told(isNew)), "a"),
			call(10, 11, MirrorThrough, told(isNew), "b"), call(12, 14, Replace, done()),
			call(22, 24, MirrorExists, told(found), "a"),
		}
		if before {
			calls = append(calls, call(6, 7, Add, told(isNew), "a"))
		}
		return calls
	}
	for _, tt := range []struct {
		name  string
		of    Filters
		right bool
		calls []one
	}{
		{"a stuck region's no after MaxStale", stuck, false, beside(call(40, 42, MirrorExists, told(no), "a"))},
		{"the primary's yes", stuck, true, beside(call(40, 42, MirrorExists, told(yes), "a"))},
		{"a no within MaxStale", stuck, true, beside(call(14, 16, MirrorExists, told(no), "a"))},
		{"a region's no that the caller chose", trusting, true, beside(call(40, 42, MirrorExists, told(no), "a"))},
		{"its own Add, repeated, is forgotten", patient, false, repeated(true, no)},
		{"its own Add, repeated, is found", patient, true, repeated(true, yes)},
		{"its own Add may be replaced", patient, true, repeated(false, no)},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, tt.of, tt.right, tt.calls) })
	}
}

// TestCheckLosses is TestCheck for a database that comes back with an older
// state, and for copies that others make. Items a and b share no bit.
func TestCheckLosses(t *testing.T) {
	const yes, no, isNew, did = true, false, true, true
	f, a, b, _ := sharing(t)
	for _, tt := range []struct {
		name  string
		right bool
		calls []one
	}{
		{"an acknowledged Add is lost", true, []one{
			call(2, 4, Add, told(isNew), a), call(6, 8, Keep, done()), call(10, 12, Add, told(isNew), b),
			call(14, 16, Revert, done()), call(18, 20, ExistsAll, told(yes, no), a, b),
		}},
		{"an Add before it is not lost", false, []one{
			call(2, 4, Add, told(isNew), a), call(6, 8, Keep, done()), call(14, 16, Revert, done()),
			call(18, 20, Exists, told(no), a),
		}},
		{"the state was that of no filter", true, []one{
			call(2, 4, Add, told(isNew), a), call(6, 8, Revert, done()), call(10, 12, Exists, ended(Missing), a),
		}},
		{"a copy at the other key", true, []one{
			call(2, 4, Add, told(isNew), a), call(6, 8, CopyOver, done()), call(10, 12, Delete, told(did)),
			call(14, 16, Exists, told(yes), a).at2(),
		}},
		{"a copy has what came later", false, []one{
			call(2, 4, Add, told(isNew), a), call(6, 8, CopyOver, done()), call(10, 12, Add, told(isNew), b),
			call(14, 16, Exists, told(yes), b).at2(),
		}},
		{"a copy is moved over the filter", true, []one{
			call(2, 4, Add, told(isNew), a), call(6, 8, CopyOver, done()), call(10, 12, Add, told(isNew), b),
			call(14, 16, Delete, told(did)), call(18, 20, Rename, done()).at2(),
			call(22, 24, ExistsAll, told(yes, no), a, b),
		}},
		{"a refusal without a reason", false, []one{
			call(2, 4, Add, told(isNew), a), call(6, 8, Add, Result{End: Mismatch, Safe: true}, b),
		}},
		{"a refusal after other data", true, []one{
			call(2, 4, Overwrite, told(no)), call(6, 8, Exists, ended(Mismatch), a),
			call(10, 12, Clear, told(did)), call(14, 16, Add, Result{End: Mismatch, Safe: true}, b),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, f, tt.right, tt.calls) })
	}
}

// TestCheckCopy: after a loss a Mirror's copy counts for MaxCopy, and without one
// for ever.
func TestCheckCopy(t *testing.T) {
	const yes, no, isNew = true, false, true
	f, a, b, _ := sharing(t)
	f.MaxStale, f.MaxTrust = time.Millisecond, time.Millisecond
	lost := func(at int64, v bool, item string) []one {
		return []one{
			call(2, 4, Keep, done()), call(6, 8, Add, told(isNew), a), call(10, 12, Revert, done()),
			call(14, 16, Add, told(isNew), b), call(at, at+2, MirrorExists, told(v), item),
		}
	}
	for _, tt := range []struct {
		name  string
		right bool
		max   time.Duration
		calls []one
	}{
		{"the copy has the lost item", true, 0, lost(60, yes, a)},
		{"the copy lacks a later item", true, 0, lost(60, no, b)},
		{"within MaxCopy", true, 10 * time.Millisecond, lost(20, yes, a)},
		{"the lost item, after MaxCopy", false, 10 * time.Millisecond, lost(60, yes, a)},
		{"the later item, after MaxCopy", false, 10 * time.Millisecond, lost(60, no, b)},
		{"without a loss", false, 0, []one{
			call(6, 8, Add, told(isNew), a), call(60, 62, MirrorExists, told(no), a),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := f
			f.MaxCopy = tt.max
			check(t, f, tt.right, tt.calls)
		})
	}
}
