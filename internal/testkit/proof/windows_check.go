package proof

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/upbloom/upbloom/bloom"
)

// The model of a Window has no order of calls. It compares each answer with all
// possible reasons: the calls and the times of their beginnings and ends.

const anyItem = "*"

// windowOp is one item of a call, or a call without items.
type windowOp struct {
	*called
	item  string
	state bloom.ItemState
	yes   bool // the answer: an Add's "seen"
	// since is when its Span began: at the end of its last attempt to send
	// items. What a frozen process does later counts as done after the call.
	since time.Duration
	// until is when the last attempt of a call to send items ended.
	until time.Duration
	// last is the latest time at which it can have taken effect.
	last time.Duration
	// explained is true if the answer "yes" of an Add has a reason.
	explained bool
}

type windowCheck struct {
	rules
	w            *Windows
	adds         []*windowOp
	reads        []*windowOp
	opens        []*windowOp
	wipes, makes []*windowOp
	// clears remove whatever the key holds, or may do so. others store other data; maybe do
	// so if there is no window.
	clears, others, maybe []*windowOp
	saved                 *windowOp     // the TakeBackup whose Backup is restored
	forgets               time.Duration // older items are not found
	hold                  time.Duration // no unanswered attempt is under way for longer
}

// Steps checks a history and returns no steps.
func (w *Windows) Steps(h *History) ([]porcupine.Operation, error) {
	of := w.Common
	of.MissingIsEmpty = w.ExpireIdle
	k := windowCheck{rules: newRules(&of, w.Staleness, h), w: w, forgets: time.Duration(w.Panes+1)*w.Pane() + clockError}
	k.span, k.isOpen = w.Span, k.mayBeOpen
	k.hold = time.Minute + time.Duration(w.Patient)*w.Pane()
	for _, c := range h.calls {
		k.take(c)
	}
	for n, c := range h.calls {
		general := cmp.Or(judge(c, callRules), judge(c, batchRules), judge(k.judged(c), mirrorRules))
		if err := cmp.Or(general, judge(windowCall{&k, c}, windowRules)); err != nil {
			return nil, fmt.Errorf("call %d: %w", n, err)
		}
	}
	k.explain()
	for _, o := range slices.Concat(k.adds, k.reads, k.opens, k.makes) {
		if err := judge(windowAnswer{&k, o}, answerRules); err != nil {
			return nil, fmt.Errorf("%s %s of %s at %v: %w", o.client, o.call.Verb, o.item, o.began, err)
		}
	}
	return nil, nil
}

type windowCall struct {
	*windowCheck
	*called
}

// windowRules are of a call to a Window, whatever the others answered.
var windowRules = []rule[windowCall]{
	{untimed, func(j windowCall) bool { return j.isUntimed(j.h.calls, j.w.Pane()) }},
	{"uncertain, although no attempt may have run before, and no answer was late", func(j windowCall) bool {
		lacksTime := j.result.Early && strings.Contains(j.result.Err, "TIME: ")
		return j.isUnsure() && j.result.Maybe == 0 && !j.endsEpoch(j.called) && !lacksTime
	}},
	{"there are no other data, but they were met", func(j windowCall) bool {
		return j.result.End == Mismatch && j.call.Verb != AddOther && !j.mayBeOther(j.called)
	}},
	{"a window that expires is empty if it is missing", func(j windowCall) bool {
		tells := slices.Contains([]Verb{Stats, Rename, Open, TakeBackup}, j.call.Verb)
		return j.result.End == Missing && j.w.ExpireIdle && !tells
	}},
	{"an Add makes the window", func(j windowCall) bool {
		return j.result.End == Missing && j.call.Verb == Add && !j.w.MustExist
	}},
}

type windowAnswer struct {
	*windowCheck
	*windowOp
}

// answerRules are of an answer about an item, or about a window, beside all that may
// be its reason.
var answerRules = []rule[windowAnswer]{
	{"the window was there, and cannot have gone away", func(j windowAnswer) bool {
		return j.result.End == Missing && !j.mayBeMissing(j.windowOp)
	}},
	{"there were other data, and it was answered", func(j windowAnswer) bool {
		return j.tells() && j.isOther(j.windowOp) && !j.of.Lag
	}},
	{"there were other data, and they were opened", func(j windowAnswer) bool {
		return j.opens() && j.isOther(j.windowOp) && !j.regional()
	}},
	{"nobody made a window of another shape", func(j windowAnswer) bool {
		before := func(a *windowOp) bool { return a.from < j.to && a.result.End != NotRun }
		return j.opens() && !j.result.Yes[0] && !slices.ContainsFunc(j.maybe, before)
	}},
	{"nobody made the window", func(j windowAnswer) bool {
		needs := j.opens() && j.result.Yes[0] || j.tells() && j.w.MustExist
		return needs && !j.mayBeThere(j.windowOp)
	}},
	{"nobody added it, or too long ago", func(j windowAnswer) bool {
		explained := j.explained || !j.call.Verb.is(adds) && j.reason(j.windowOp)
		return j.tells() && j.yes && !explained && !(j.item == anyItem && len(j.maybe) > 0)
	}},
	{"it was added within the Span, and is not found", func(j windowAnswer) bool {
		return j.denies() && j.hasAdd(j.isForgotten)
	}},
	{"two were told that it is new", func(j windowAnswer) bool {
		return j.denies() && j.call.Verb.is(adds) && j.hasAdd(j.isNewTwice)
	}},
	{"a Create made a window that was there", func(j windowAnswer) bool {
		makes := j.call.Verb == Create || j.call.Verb == RestoreBackup
		return makes && j.result.End == Answered && j.result.Yes[0] && j.isThere(j.windowOp)
	}},
}

// opens reports whether an Open found something.
func (j windowAnswer) opens() bool { return j.call.Verb == Open && j.result.End == Answered }

// regional reports whether a region answered an Open in place of a full primary. What
// it knows may be old.
func (j windowAnswer) regional() bool { return j.of.Lag && j.result.Refused }

// tells reports whether the op says something of its item.
func (j windowAnswer) tells() bool { return j.item != "" && j.answered() }

// denies reports whether the op says that its item is not there. Stats may be a
// region's.
func (j windowAnswer) denies() bool { return j.tells() && !j.yes && !(j.item == anyItem && j.of.Lag) }

func (j windowAnswer) hasAdd(is func(a *windowOp) bool) bool {
	return slices.ContainsFunc(j.adds, func(a *windowOp) bool {
		return a.called != j.called && j.concerns(a) && is(a)
	})
}

// isForgotten reports whether an op must find what an Add has added. The "no" of a
// Mirror's copy may be as old as the copy is.
func (j windowAnswer) isForgotten(a *windowOp) bool {
	known := a.to < j.from
	if j.call.Verb.is(mirrored) && !j.call.Verb.is(adds) {
		mine := a.session == j.session && a.call.Verb.is(mirrored)
		// What came after a loss may stand behind equal counts, until a download.
		others := !j.mayLose(j.called) && (a.ended < j.began-j.staleNo(j.called) || a.to < j.told(j.called, j.item))
		known = known && (mine || others)
	}
	isIn := known && a.promised() && j.ended < a.since+j.w.Span
	return isIn && (!j.mayBeWiped(a.began-j.trust(a), j.ended) || j.isRestored(a, j.windowOp) || j.outlived(a, j.windowOp))
}

// isNewTwice reports whether an Add and another one were told that the item is new.
// What counts is when they were told, however long they had asked before.
func (j windowAnswer) isNewTwice(a *windowOp) bool {
	apart := max(a.until, j.until) - min(a.since, j.since)
	return a.answered() && !a.yes && apart < j.w.Span && !j.mayBeWiped(min(a.began, j.began), max(a.ended, j.ended))
}

// outlived reports whether the items of an AddAll, which are in one window, are in
// that which came after each removal: a later look-up found one that nobody else
// added.
func (k *windowCheck) outlived(a, o *windowOp) bool {
	return a.call.Verb == AddAll && a.result.End == Answered && !k.mayComeBack() && !k.mayBeWiped(a.ended+1, o.ended) &&
		slices.ContainsFunc(k.reads, func(r *windowOp) bool {
			return r.from > a.to && r.to <= o.to && r.answered() && r.yes && r.item != anyItem && !k.isShared(r) &&
				!r.call.Verb.is(mirrored) && slices.Contains(a.call.Items, r.item) &&
				!slices.ContainsFunc(k.adds, func(b *windowOp) bool {
					return b.called != a.called && b.item == r.item && b.from < r.to && b.state != bloom.ItemNotDone
				})
		})
}

// endsEpoch reports whether an epoch may have ended during a call.
func (k *windowCheck) endsEpoch(c *called) bool {
	return k.epoch(c.began-clockError) < k.epoch(c.ended+clockError)
}

// epoch returns the number of the epoch of a time.
func (k *windowCheck) epoch(t time.Duration) int64 {
	return k.h.begin.Add(t).UnixNano() / int64(k.w.Pane())
}

func (k *windowCheck) take(c *called) {
	r := c.result
	last := c.ended
	if r.Maybe > 0 || r.End == Unknown || r.End == Partly {
		last = min(c.ended, math.MaxInt64-k.hold) + k.hold
	}
	until := c.ended - r.Sent
	since := until
	// The last attempt is not that of a part, and may be that of a turn, if both
	// are scripts.
	if c.call.Parts || k.w.MustExist {
		since = c.began
	}
	one := &windowOp{called: c, last: last, since: since, until: until, state: stateOf(r, 0)}
	switch c.call.Verb {
	case Clear, Delete, Overwrite, Rename, Revert:
		if (r.End == Unknown || r.End == Answered) && c.call.Key == 0 {
			k.wipes = append(k.wipes, one)
		}
		switch c.call.Verb {
		case Clear, Revert:
			k.clears = append(k.clears, one)
		case Overwrite:
			k.others = append(k.others, one)
		}
	case Smudge, AddOther:
		k.maybe = append(k.maybe, one)
	case Create:
		k.makes = append(k.makes, one)
	case TakeBackup:
		if r.End == Answered && r.Yes[0] {
			k.saved = one
		}
	case RestoreBackup:
		if r.End != Answered { // it may have made the window, or not
			one.state = bloom.ItemUnknown
		}
		k.makes = append(k.makes, one)
	case Open:
		k.opens = append(k.opens, one)
	case Stats: // a look-up of any item
		one.item, one.yes = anyItem, one.answered() && r.Yes[0]
		k.reads = append(k.reads, one)
	case Add, AddAll, Exists, ExistsAll, MirrorExists, MirrorAll, MirrorAdd, MirrorAddAll, MirrorThrough:
		for i, item := range c.call.Items {
			o := &windowOp{called: c, item: item, last: last, since: since, until: until, state: stateOf(r, i)}
			if o.state == bloom.ItemDone && i < len(r.Yes) {
				o.yes = r.Yes[i] != c.call.Verb.is(adds)
			}
			if o.yes && c.call.Verb == MirrorAddAll && len(r.Questions) > 0 { // perhaps its copy said so, before it sent others
				o.since = min(o.since, k.rules.since(r.Questions[0].Asked))
			}
			if c.call.Verb.is(adds) {
				k.adds = append(k.adds, o)
			} else {
				k.reads = append(k.reads, o)
			}
		}
	}
}

// mayBeOther reports whether other data may have been stored at the key before
// the end of a call. A handle may remember this.
func (k *windowCheck) mayBeOther(c *called) bool {
	before := func(o *windowOp) bool { return o.from < c.to }
	return slices.ContainsFunc(k.others, before) || slices.ContainsFunc(k.maybe, before)
}

// isOther reports whether the key certainly held other data during an op.
func (k *windowCheck) isOther(o *windowOp) bool {
	return slices.ContainsFunc(k.others, func(other *windowOp) bool {
		return other.to < o.from && other.ended <= k.known(o) && !slices.ContainsFunc(k.clears, func(c *windowOp) bool {
			return c.to > other.from && c.from < o.to
		})
	})
}

// concerns reports whether an Add is of an op's item.
func (o *windowOp) concerns(add *windowOp) bool { return o.item == add.item || o.item == anyItem }

// answered reports whether the op has an answer about its item.
func (o *windowOp) answered() bool {
	return o.state == bloom.ItemDone && o.result.End != Missing && o.result.End != Mismatch
}

// promised reports whether the item is in for a Span.
func (o *windowOp) promised() bool {
	return o.result.End != Missing && o.result.End != Mismatch && !o.result.Early &&
		(o.state == bloom.ItemDone || o.state == bloom.ItemUncertain)
}

// mayBeWiped reports whether the window may have gone away in an interval.
func (k *windowCheck) mayBeWiped(from, to time.Duration) bool {
	for _, w := range k.wipes {
		if w.last >= from && w.began <= to {
			return true
		}
	}
	return false
}

// mayComeBack reports whether a window may come back that has gone, or a region may not
// know that it has.
func (k *windowCheck) mayComeBack() bool {
	return k.w.Renames || k.of.Losses || k.of.Backups != nil || k.of.Lag
}

// isWiped reports whether the window certainly went away in an interval.
func (k *windowCheck) isWiped(from, to time.Duration) bool {
	if k.mayComeBack() {
		return false
	}
	for _, w := range k.wipes {
		if w.result.End == Answered && w.began > from && w.ended < to {
			return true
		}
	}
	return false
}

// explain looks for the reasons of the answers "seen" to Adds. A reason is an
// earlier Add that has a reason itself, or needs none.
func (k *windowCheck) explain() {
	for _, o := range k.adds {
		o.explained = o.state != bloom.ItemNotDone && !(o.answered() && o.yes) &&
			(o.result.End != Missing || o.result.Maybe > 0 || !o.result.Safe) // a command before the last may have run
	}
	for again := true; again; {
		again = false
		for _, o := range k.adds {
			if !o.explained && o.answered() && o.yes && k.reason(o) {
				o.explained, again = true, true
			}
		}
	}
}

// reason reports whether an Add explains the answer "yes", or of the item that
// shares its cells two Adds of one epoch do.
func (k *windowCheck) reason(o *windowOp) bool {
	of := func(item string) (found []*windowOp) {
		for _, a := range k.adds {
			if a.called != o.called && (item == a.item || item == anyItem) && k.explains(a, o) {
				found = append(found, a)
			}
		}
		return found
	}
	if !k.isShared(o) {
		return len(of(o.item)) > 0
	}
	return slices.ContainsFunc(of(k.w.Shared[0]), func(a *windowOp) bool {
		return slices.ContainsFunc(of(k.w.Shared[1]), func(b *windowOp) bool {
			apart := max(k.epoch(a.began-clockError), k.epoch(b.began-clockError)) >
				min(k.epoch(a.last+clockError), k.epoch(b.last+clockError))
			return !apart
		})
	})
}

// isShared reports whether an op is of the item that shares the cells of two others.
func (k *windowCheck) isShared(o *windowOp) bool {
	return k.w.Shared != nil && o.item == k.w.Shared[windowItems-1]
}

// explains reports whether an op may find what an Add has added. A reader that was
// refused the time may find old items, and so do Stats without it: they do not
// ask.
func (k *windowCheck) explains(a, o *windowOp) bool {
	// A late command may set bits in the spare pane, which counts for a pane more.
	forgets := k.forgets
	if k.endsEpoch(a.called) {
		forgets += k.w.Pane()
	}
	untimed := o.result.NoTime && !o.call.Verb.is(adds) || o.item == anyItem && !o.result.Timed
	// Late, a Mirror counts by the earliest time that it may be: while the process was
	// frozen, its monotonic clock may have stood still.
	if o.call.Verb.is(mirrored) && !o.call.Verb.is(adds) && k.mayAnswerLate(o.called) {
		stood := o.result.Stood
		if !k.metWithoutTime(o) {
			stood = min(stood, k.trust(o))
		}
		forgets += stood
		untimed = untimed || o.result.Unlearned
	}
	age := o.began - a.last
	return a.explained && a.from < o.to &&
		(age <= 0 || (age <= forgets || untimed) && !k.isWiped(a.last, k.known(o)))
}

// metWithoutTime reports whether the server may have shown a Mirror what it has, and not
// told it the time, so late that the Mirror may rely on that in an op.
func (k *windowCheck) metWithoutTime(o *windowOp) bool {
	return slices.ContainsFunc(k.sameMirror(o.called), func(c *called) bool {
		return c.result.LostTime && c.from <= o.from && c.ended >= o.began-k.trust(o)
	})
}

// trust returns for how long a Mirror finds items of a window that is gone.
func (k *windowCheck) trust(o *windowOp) time.Duration {
	switch v := o.call.Verb; {
	case !v.is(mirrored), v == MirrorThrough, v == MirrorAdd && o.result.Tried > 0:
		return 0
	case !v.is(adds) && k.mayAnswerLate(o.called):
		return k.MaxTrust + k.StaleIfError
	}
	return k.MaxTrust
}

// known returns until when a removal of the window was certainly known to an op.
func (k *windowCheck) known(o *windowOp) time.Duration {
	at := o.began - k.trust(o)
	if shown := k.shown(o.called); o.call.Verb.is(mirrored) && shown != nil {
		at = max(at, shown.began)
	}
	return at
}

// mayBeOpen reports whether the panes that have the item of a look-up may be those
// that count at one time that it may be, and not at another: then the server is asked.
func (k *windowCheck) mayBeOpen(c *called) bool {
	return !c.result.Timed || k.w.Shared != nil || slices.ContainsFunc(k.adds, func(a *windowOp) bool {
		counts, is := a.began > c.ended-k.w.Span+clockError, a.last > c.began-k.forgets-k.w.Pane()
		return a.item == c.call.Items[0] && a.from < c.to && is && !counts
	})
}

// isRestored reports whether the window that an op asks has the item of an Add
// from a Backup.
func (k *windowCheck) isRestored(a, o *windowOp) bool {
	if k.saved == nil || a.to >= k.saved.from || k.mayBeWiped(a.began, k.saved.ended) {
		return false
	}
	return slices.ContainsFunc(k.makes, func(r *windowOp) bool {
		return r.call.Verb == RestoreBackup && r.result.End == Answered && r.to < o.from && !k.mayBeWiped(r.began, o.ended)
	})
}

// mayBeThere reports whether a call may have made the window, and it was not
// certainly removed since. If it must exist, an Add does not make it.
func (k *windowCheck) mayBeThere(o *windowOp) bool {
	makes := k.makes
	if !k.w.MustExist {
		makes = slices.Concat(k.adds, makes)
	}
	return slices.ContainsFunc(makes, func(a *windowOp) bool {
		return a.from < o.to && a.result.End != NotRun && !k.isWiped(a.last, k.known(o))
	})
}

// mayBeMissing reports whether the window of an op may be missing. A region may not
// know it yet.
func (k *windowCheck) mayBeMissing(o *windowOp) bool {
	region := o.call.Verb == Open && o.result.Refused || o.item == anyItem
	return region && k.of.Lag || o.item == anyItem && k.w.ExpireIdle || !k.isThere(o)
}

// isThere reports whether the window was there before an op, and cannot have gone
// away until it ended.
func (k *windowCheck) isThere(o *windowOp) bool {
	return slices.ContainsFunc(slices.Concat(k.adds, k.makes), func(a *windowOp) bool {
		made := a.promised() || a.call.Verb == Create && a.result.End == Answered
		return made && a.to < o.from && !k.mayBeExpired(a, o) && !k.mayBeWiped(a.began-k.trust(a), o.ended)
	})
}

// mayBeExpired reports whether the window of a may have expired before o ended.
// A Create that finds the window does not prolong its life.
func (k *windowCheck) mayBeExpired(a, o *windowOp) bool {
	found := a.call.Verb == Create && a.result.End == Answered && !a.result.Yes[0]
	return k.w.ExpireIdle && (found || o.ended-a.began > k.w.Span)
}
