package proof

import (
	"errors"
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

const (
	// clockError is how far two clients' epochs may be apart.
	clockError = 4 * time.Second
	anyItem    = "*"
)

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
	of           *Windows
	begin        time.Time
	calls        []*called
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
	k := windowCheck{
		of: w, begin: h.begin, calls: h.calls, forgets: time.Duration(w.Panes+1)*w.Pane() + clockError,
	}
	k.hold = time.Minute + time.Duration(w.Patient)*w.Pane()
	for _, c := range h.calls {
		k.take(c)
	}
	for n, c := range h.calls {
		if err := k.sane(c); err != nil {
			return nil, fmt.Errorf("call %d: %w", n, err)
		}
	}
	k.explain()
	for _, o := range slices.Concat(k.adds, k.reads) {
		if err := k.answer(o); err != nil {
			return nil, fmt.Errorf("%s %s of %s at %v: %w", o.client, o.call.Verb, o.item, o.began, err)
		}
	}
	for _, o := range k.opens {
		if err := k.opened(o); err != nil {
			return nil, fmt.Errorf("%s open at %v: %w", o.client, o.began, err)
		}
	}
	return nil, k.made()
}

// sane returns an error for a result no history explains.
func (k *windowCheck) sane(c *called) error {
	r := c.result
	if err := errors.Join(safe(c), c.batch(false)); err != nil {
		return err
	}
	unsure := r.End == Uncertain
	for _, s := range r.States {
		unsure = unsure || s == bloom.ItemUncertain
	}
	switch {
	case c.call.Verb == ProbeTTL:
		return timed(k.calls, c, k.of.Pane())
	case unsure && r.Maybe == 0 && !k.mayBeLate(c) && (r.Timed && !strings.Contains(r.Err, "TIME: ") || !r.Early): // else it did not get the time
		return errors.New("uncertain, although no attempt may have run before, and no answer was late")
	case r.End == Mismatch && c.call.Verb != AddOther && !k.mayBeOther(c):
		return errors.New("there are no other data, but they were met")
	case r.End == Missing && k.of.ExpireIdle && c.call.Verb != Stats && c.call.Verb != Rename &&
		c.call.Verb != Open && c.call.Verb != TakeBackup:
		return errors.New("a window that expires is empty if it is missing")
	case r.End == Missing && c.call.Verb == Add && !k.of.MustExist:
		return errors.New("an Add makes the window")
	}
	return nil
}

// mayBeLate reports whether an epoch may have ended during a call.
func (k *windowCheck) mayBeLate(c *called) bool {
	return k.epoch(c.began-clockError) < k.epoch(c.ended+clockError)
}

// epoch returns the number of the epoch of a time.
func (k *windowCheck) epoch(t time.Duration) int64 {
	return k.begin.Add(t).UnixNano() / int64(k.of.Pane())
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
	if c.call.Parts || k.of.MustExist || c.call.Verb == MirrorAddAll { // its copy answers at once, the others later
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
		return other.to < o.from && other.ended <= o.began-k.trust(o) && !slices.ContainsFunc(k.clears, func(c *windowOp) bool {
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

// isWiped reports whether the window certainly went away in an interval.
func (k *windowCheck) isWiped(from, to time.Duration) bool {
	if k.of.Renames || k.of.Losses || k.of.Backups != nil || k.of.Lag { // it may come back, or a region may not know
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
	if k.of.Shared == nil || o.item != k.of.Shared[windowItems-1] {
		return len(of(o.item)) > 0
	}
	return slices.ContainsFunc(of(k.of.Shared[0]), func(a *windowOp) bool {
		return slices.ContainsFunc(of(k.of.Shared[1]), func(b *windowOp) bool {
			apart := max(k.epoch(a.began-clockError), k.epoch(b.began-clockError)) >
				min(k.epoch(a.last+clockError), k.epoch(b.last+clockError))
			return !apart
		})
	})
}

// explains reports whether an op may find what an Add has added. A reader that was
// refused the time may find old items, and so do Stats without it: they do not
// ask.
func (k *windowCheck) explains(a, o *windowOp) bool {
	// A late command may set bits in the spare pane, which counts for a pane more.
	forgets := k.forgets
	if k.mayBeLate(a.called) {
		forgets += k.of.Pane()
	}
	if o.call.Verb.is(mirrored) && k.of.StaleIfError > 0 { // late, and the process was frozen
		forgets += k.trust(o)
	}
	untimed := o.result.NoTime && !o.call.Verb.is(adds) || o.item == anyItem && !o.result.Timed
	age := o.began - a.last
	return a.explained && a.from < o.to &&
		(age <= 0 || (age <= forgets || untimed) && !k.isWiped(a.last, o.began-k.trust(o)))
}

// trust returns for how long a Mirror finds items of a window that is gone.
func (k *windowCheck) trust(o *windowOp) time.Duration {
	switch {
	case !o.call.Verb.is(mirrored):
		return 0
	case o.call.Verb.is(adds) && o.result.Tried > 0 && len(o.call.Items) == 1:
		return 0
	case k.of.MaxStale > 0:
		return k.of.MaxStale + k.of.StaleIfError
	}
	return time.Minute + k.of.StaleIfError
}

// answer returns an error if an op's answer is wrong.
func (k *windowCheck) answer(o *windowOp) error {
	switch {
	case o.result.End == Missing:
		return k.missing(o)
	case !o.answered():
		return nil
	case k.isOther(o) && !k.of.Lag:
		return errors.New("there were other data, and it was answered")
	case k.of.MustExist && !k.mayBeThere(o):
		return errors.New("nobody made the window")
	case o.item == anyItem && (o.yes && len(k.maybe) > 0 || !o.yes && k.of.Lag):
		return nil
	case o.yes && o.call.Verb.is(adds) && !o.explained, o.yes && !o.call.Verb.is(adds) && !k.reason(o):
		return errors.New("nobody added it, or too long ago")
	case o.yes:
		return nil
	}
	for _, a := range k.adds {
		if a.called == o.called || !o.concerns(a) {
			continue
		}
		before := a.promised() && a.to < o.from && o.ended < a.since+k.of.Span
		if o.call.Verb.is(mirrored) && !o.call.Verb.is(adds) && !(a.session == o.session && a.call.Verb.is(mirrored)) {
			before = before && a.ended < o.began-k.of.MaxStale-k.of.StaleIfError
		}
		if before && (!k.mayBeWiped(a.began-k.trust(a), o.ended) || k.isRestored(a, o)) {
			return fmt.Errorf("it was added until %v, in the last %v", a.since, k.of.Span)
		}
		// What counts is when they were told, however long they had asked before.
		both := o.call.Verb.is(adds) && a.answered() && !a.yes
		apart := max(a.until, o.until) - min(a.since, o.since)
		if both && apart < k.of.Span && !k.mayBeWiped(min(a.began, o.began), max(a.ended, o.ended)) {
			return errors.New("two were told that it is new")
		}
	}
	return nil
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

// opened returns an error if an Open's answer is wrong. The primary gives it.
func (k *windowCheck) opened(o *windowOp) error {
	before := func(a *windowOp) bool { return a.from < o.to && a.result.End != NotRun }
	switch {
	case k.of.Lag && o.result.Refused: // a region has answered in place of a full primary
		return nil
	case o.result.End == Missing:
		return k.missing(o)
	case o.result.End != Answered:
		return nil
	case k.isOther(o):
		return errors.New("there were other data, and they were opened")
	case !o.result.Yes[0] && !slices.ContainsFunc(k.maybe, before):
		return errors.New("nobody made a window of another shape")
	case o.result.Yes[0] && !k.mayBeThere(o):
		return errors.New("nobody made the window")
	}
	return nil
}

// mayBeThere reports whether a call may have made the window, and it was not
// certainly removed since. If it must exist, an Add does not make it.
func (k *windowCheck) mayBeThere(o *windowOp) bool {
	makes := k.makes
	if !k.of.MustExist {
		makes = slices.Concat(k.adds, makes)
	}
	return slices.ContainsFunc(makes, func(a *windowOp) bool {
		return a.from < o.to && a.result.End != NotRun && !k.isWiped(a.last, o.began-k.trust(o))
	})
}

// missing returns an error if a window cannot be missing.
func (k *windowCheck) missing(o *windowOp) error {
	if o.item == anyItem && (k.of.Lag || k.of.ExpireIdle) { // a region may not know it
		return nil
	}
	for _, a := range slices.Concat(k.adds, k.makes) {
		made := a.promised() || a.call.Verb == Create && a.result.End == Answered
		if made && a.to < o.from && !k.mayBeExpired(a, o) && !k.mayBeWiped(a.began-k.trust(a), o.ended) {
			return errors.New("the window was there, and cannot have gone away")
		}
	}
	return nil
}

// mayBeExpired reports whether the window of a may have expired before o ended.
// A Create that finds the window does not prolong its life.
func (k *windowCheck) mayBeExpired(a, o *windowOp) bool {
	found := a.call.Verb == Create && a.result.End == Answered && !a.result.Yes[0]
	return k.of.ExpireIdle && (found || o.ended-a.began > k.of.Span)
}

// made returns an error if a Create made a window that was there.
func (k *windowCheck) made() error {
	for _, o := range k.makes {
		if o.result.End != Answered || !o.result.Yes[0] {
			continue
		}
		for _, a := range slices.Concat(k.adds, k.makes) {
			there := a.promised() || a.call.Verb == Create && a.result.End == Answered
			if there && a.to < o.from && !k.mayBeExpired(a, o) && !k.mayBeWiped(a.began-k.trust(a), o.ended) {
				return fmt.Errorf("the Create at %v made a window that was there", o.began)
			}
		}
	}
	return nil
}
