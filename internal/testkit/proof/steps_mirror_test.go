package proof

import (
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

// TestCheckMirrorBatch is TestCheckMirror for the items of a batch. Items a and b
// share no cells.
func TestCheckMirrorBatch(t *testing.T) {
	const yes, no, isNew, seen, done, not, unknown = true, false, true, false,
		bloom.ItemDone, bloom.ItemNotDone, bloom.ItemUnknown
	asks := Filters{Bits: 53, Hashes: 2, Staleness: Staleness{MaxTrust: 20 * time.Millisecond}}
	trusts := asks
	trusts.MaxStale = 5 * time.Millisecond
	added, through := call(2, 4, Add, told(isNew), "a"), call(2, 4, MirrorThrough, told(isNew), "a")
	deleted := call(6, 8, Delete, told(true))
	copied := Result{End: Answered, Yes: []bool{seen, seen}} // without a request
	failed := func(r Result, states ...bloom.ItemState) Result {
		r.End, r.States, r.Safe = Partly, states, true
		return r
	}
	batch := func(v Verb, r Result) one { return call(20, 22, v, r, "b", "a") }
	for _, tt := range []struct {
		name  string
		of    Filters
		right bool
		calls []one
	}{
		{"one sent, and one of the copy", asks, true, []one{through, batch(MirrorAddAll, told(isNew, seen))}},
		{"both sent", asks, true, []one{batch(MirrorAddAll, told(isNew, isNew))}},
		{"at wrong places", asks, false, []one{through, batch(MirrorAddAll, told(seen, isNew))}},
		{"not added", asks, false, []one{
			through, batch(MirrorAddAll, told(isNew, seen)), call(24, 26, Exists, told(no), "b"),
		}},
		{"seen in the copy, and deleted a moment ago", asks, true, []one{
			through, deleted, batch(MirrorAddAll, told(isNew, seen)),
		}},
		{"seen, and deleted, and there is no copy", asks, false, []one{
			added, deleted, batch(MirrorAddAll, told(isNew, seen)),
		}},
		{"seen, and deleted long ago", asks, false, []one{
			through, deleted, call(60, 62, MirrorAddAll, told(isNew, seen), "b", "a"),
		}},
		{"all of the copy", asks, true, []one{
			through, call(10, 12, MirrorThrough, told(isNew), "b"), batch(MirrorAddAll, copied),
		}},
		{"new without a request", asks, false, []one{
			batch(MirrorAddAll, Result{End: Answered, Yes: []bool{isNew, isNew}}),
		}},
		{"unknown, and one of the copy", asks, true, []one{
			through, batch(MirrorAddAll, failed(lost(1, Result{Yes: []bool{no, seen}}), unknown, done)),
		}},
		{"unknown, and one was sent", asks, false, []one{
			through, batch(MirrorAddAll, failed(lost(1, Result{Yes: []bool{no, isNew}}), unknown, done)),
		}},
		{"its own Add is forgotten", trusts, false, []one{
			call(2, 4, MirrorAddAll, told(isNew, isNew), "a", "b"), call(6, 8, MirrorExists, told(no), "b"),
		}},
		{"an answer of the copy", asks, true, []one{
			through, batch(MirrorAll, failed(Result{Yes: []bool{no, yes}}, not, done)),
		}},
		{"the states are at wrong places", asks, false, []one{
			through, batch(MirrorAll, failed(Result{Yes: []bool{no, yes}}, done, not)),
		}},
		{"not found without an answer", asks, false, []one{
			through, batch(MirrorAll, failed(Result{Yes: []bool{no, yes}}, done, done)),
		}},
		{"not found in the copy", trusts, true, []one{
			through, call(6, 8, MirrorAll, failed(Result{Yes: []bool{no, no}}, done, not), "b", "a"),
		}},
		{"a look-up that may have run", asks, false, []one{
			through, batch(MirrorAll, failed(Result{Yes: []bool{no, yes}}, unknown, done)),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, tt.of, tt.right, tt.calls) })
	}
}

// asks adds to the result of a call what it asked between two places of a history.
func asks(r Result, from, to int64, answered bool) Result {
	at := func(place int64) time.Time { return time.Time{}.Add(time.Duration(place) * time.Millisecond / 2) }
	r.Questions = append(r.Questions, Question{Asked: at(from), Sent: at(from), Ended: at(to), Answered: answered})
	return r
}

// TestCheckMirrorDrops has histories of a Mirror that was told that its filter is gone
// or another one, while an answer about the old one is under way.
func TestCheckMirrorDrops(t *testing.T) {
	const yes, no, isNew, seen, answered, silent = true, false, true, false, true, false
	plain := Filters{Bits: 53, Hashes: 2, Staleness: Staleness{StaleIfError: time.Hour}}
	plain.limit()
	outages, near := plain, plain
	outages.Outages, near.Lag, near.ReadsNearest, near.MaxStale = true, true, true, time.Minute
	added := call(2, 4, Add, told(isNew), "a")
	under := func(v Verb, yes bool) one { return call(6, 16, v, asks(told(yes), 6, 16, answered), "a") }
	late := under(MirrorExists, yes)
	replaced := call(8, 9, Replace, told())
	shows := func(v Verb, r Result, says bool) one { return call(10, 12, v, asks(r, 10, 12, says), "b") }
	none, other := shows(Refresh, ended(Missing), answered), shows(Refresh, told(), answered)
	copied := call(20, 22, MirrorExists, Result{End: Answered, Yes: []bool{yes}}, "a")
	begins := func(at int64, o one) one { o.from = at; return o }
	ofAnother := other
	ofAnother.session = "y"
	for _, tt := range []struct {
		name  string
		of    Filters
		right bool
		calls []one
	}{
		{"nobody has asked", plain, true, []one{added, late, replaced, copied}},
		{"another filter was shown", plain, false, []one{added, late, replaced, other, copied}},
		{"none was", plain, false, []one{added, late, call(8, 9, Delete, told(true)), none, copied}},
		{"another Mirror was shown it", plain, true, []one{added, late, replaced, ofAnother, copied}},
		{"an Add was shown another", plain, false, []one{
			added, late, replaced, shows(MirrorThrough, told(isNew), answered), copied,
		}},
		{"and found as seen without a request", plain, false, []one{
			added, late, replaced, other, call(20, 22, MirrorAdd, Result{End: Answered, Yes: []bool{seen}}, "a"),
		}},
		{"in a batch", plain, false, []one{
			added, late, replaced, other, call(20, 22, MirrorAll, Result{End: Answered, Yes: []bool{yes}}, "a"),
		}},
		{"it was added again", plain, true, []one{
			added, late, replaced, other, call(13, 14, Add, told(isNew), "a"), copied,
		}},
		{"the question is older than the Replace", plain, true, []one{added, late, replaced, begins(7, other), copied}},
		{"the call began before the answer came", plain, true, []one{added, late, replaced, other, begins(11, copied)}},
		{"an Add that crossed made the old one", plain, true, []one{
			under(MirrorThrough, isNew), call(6, 7, Exists, told(yes), "a"), replaced, other, copied,
		}},
		{"an Add that did not cross made it", plain, false, []one{
			call(2, 4, MirrorThrough, asks(told(isNew), 2, 4, answered), "a"), replaced, other, copied,
		}},
		{"an Add that crossed did not", plain, false, []one{
			added, under(MirrorThrough, seen), replaced, other, copied,
		}},
		{"a look-up has an answer that may be refused", plain, true, []one{
			added, late, replaced, shows(MirrorExists, told(no), answered), copied,
		}},
		{"late in an outage", outages, false, []one{
			added, late, replaced, shows(MirrorExists, told(no), answered),
			call(17, 19, MirrorThrough, asks(opened(), 17, 19, silent), "b"), copied,
		}},
		{"the question got no answer", outages, true, []one{
			added, late, replaced, shows(MirrorThrough, opened(), silent), copied,
		}},
		{"a region may answer", near, true, []one{added, late, replaced, other, copied}},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, tt.of, tt.right, tt.calls) })
	}
}

// TestCheckOutage has histories of a Mirror in an outage, and of what a handle may
// know from one.
func TestCheckOutage(t *testing.T) {
	const yes, no, isNew, answered, silent = true, false, true, true, false
	of := Filters{Bits: 53, Hashes: 2, Staleness: Staleness{Outages: true, StaleIfError: time.Hour}}
	of.limit()
	through := call(2, 4, MirrorThrough, asks(told(isNew), 2, 4, answered), "a")
	unheard := call(6, 8, MirrorThrough, asks(opened(), 6, 8, silent), "b")
	stats := func(outage bool) one { return call(10, 12, MirrorStats, told(outage)) }
	look := call(20, 22, MirrorExists, asks(told(yes), 20, 22, answered), "a")
	later := call(2400, 2402, MirrorExists, asks(told(yes), 2400, 2402, answered), "a")
	stays := call(2300, 2310, MirrorExists, asks(told(yes), 2300, 2310, silent), "a")
	leaves := stays
	leaves.call.Cause, leaves.call.CauseAfter = 1, time.Millisecond
	refuses := call(30, 32, Add, Result{End: Mismatch, Safe: true}, "a")
	other := call(2, 4, Overwrite, told(no))
	failed := func(refresh bool) one {
		return call(6, 16, MirrorExists, asks(asks(Result{End: NotRun, Safe: true}, 6, 8, refresh), 10, 12, silent), "a")
	}
	goesOn := call(6, 40, MirrorExists, asks(asks(ended(Missing), 6, 8, answered), 36, 38, answered), "a")
	for _, tt := range []struct {
		name  string
		right bool
		calls []one
	}{
		{"begun by an Add", true, []one{through, unheard, stats(yes)}},
		{"begun, and not known", false, []one{through, unheard, stats(no)}},
		{"begun by nothing", false, []one{through, stats(yes)}},
		{"known before", false, []one{through, call(2, 5, MirrorStats, told(yes)), unheard}},
		{"answered by the copy", true, []one{through, unheard, call(20, 22, MirrorExists, told(yes), "a")}},
		{"asked soon after another", false, []one{through, unheard, look}},
		{"asked soon after another, whose caller left", true, []one{through, unheard, leaves, later}},
		{"asked soon after another, whose caller stayed", false, []one{through, unheard, stays, later}},
		{"asked after the end", true, []one{through, unheard, call(10, 12, Refresh, asks(told(), 10, 12, answered)), look}},
		{"other data in the answer to a refresh", true, []one{other, failed(answered), refuses}},
		{"other data in the answer to a refresh of a call that goes on", true, []one{other, goesOn, refuses, call(33, 34, Clear, told(yes))}},
		{"other data, and nobody said so", false, []one{other, failed(silent), refuses}},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, of, tt.right, tt.calls) })
	}
}
