package proof

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

// The rules of a history, some of which need no order of the calls.
type rules struct {
	of    *Filters
	h     *History
	blind bool // an Add sends its items without a look-up first
	// removals are the calls that may have removed the filter.
	removals []*called
}

// consistent returns an error for a result no state of the filter explains.
func (s *rules) consistent(n int, c *called) error {
	r, v := c.result, c.call.Verb
	if err := errors.Join(safe(c), s.mirrored(c), s.outage(c), c.batch(false)); err != nil {
		return err
	}
	if !c.call.Parts && c.call.More < bigMore && v == AddAll && !c.ranOrNot() {
		return errors.New("some items of one write are in, and others are not")
	}
	unsure := r.End == Uncertain || slices.Contains(r.States, bloom.ItemUncertain) ||
		slices.Contains(r.Ends, Uncertain)
	switch {
	case unsure && r.Maybe == 0:
		return errors.New("uncertain, although no attempt may have run before")
	case v == ProbeTTL:
		return timed(s.h.calls, c, s.of.TTL)
	case v == AddSeq:
		return c.counted()
	case (v == Add || v == AddAll) && r.End == Mismatch && r.Safe && s.mayHaveWritten(c):
		return errors.New("safe to retry, although it may have written to other data")
	case v == ReplaceWrong && (r.End != Mismatch || r.Tried > 0) && r.End != NotRun:
		return errors.New("a Local of another geometry was not refused at once")
	case v == Refresh && r.End == Missing && s.of.MissingIsEmpty:
		return errors.New("a missing filter counts as empty, and Refresh did not find it so")
	case v == Crowd && r.Count > 2: // one begun by another caller just before, and the next
		return fmt.Errorf("%d callers that began at once made %d refreshes", len(r.Ends), r.Count)
	case v == AddAll && c.laterIsNew() && !slices.ContainsFunc(s.removals, c.overlaps):
		return errors.New("of equal items a later one was new, and the first was not")
	case s.blind && c.sends() && r.End == Mismatch && r.Tried == 0 && !s.mayKnowOther(n, c):
		return errors.New("a handle that met no other data refused to write")
	case c.sends() && !c.spread && r.Tried > 0 && s.isRefused(n, c):
		return errors.New("a handle that met other data wrote again")
	}
	return nil
}

// batch returns an error if the error of a batch, or the states of its items,
// say less than is known. copies is true if equal items count each time.
func (c *called) batch(copies bool) error {
	r := c.result
	if r.End != Partly || !c.call.Verb.is(adds) && c.call.Verb != RemoveAll {
		return nil
	}
	lost := slices.Contains(r.States, bloom.ItemUnknown)
	if lost && (r.ErrSafe || copies && !r.ErrUnsure && !r.ErrGone) {
		return errors.New("an item may have been written, and the error of its batch says that nothing was")
	}
	if copies || len(r.States) != len(c.call.Items) {
		return nil
	}
	in := make(map[string]bool)
	for i, item := range c.call.Items {
		state := r.States[i]
		if in[item] && (state != bloom.ItemDone || r.Yes[i]) {
			return errors.New("an item that follows an equal one in the filter is not seen")
		}
		in[item] = in[item] || state == bloom.ItemDone || state == bloom.ItemUncertain
	}
	return nil
}

// timed returns an error if a probe finds a filter without a TTL after a write that
// said nothing of it, and no other call can be the reason. The filter has not expired
// before the end of life.
func timed(calls []*called, probe *called, life time.Duration) error {
	if probe.result.End != Answered || probe.result.Yes[0] {
		return nil
	}
	decides := []Verb{Persist, SetTTL, Plant, Revert, CopyOver, Smudge, RestoreBackup, AddOther, Overwrite}
	for _, w := range calls {
		r := w.result
		if !w.call.Verb.is(adds) || w.call.Verb == AddSeq || w.must || w.call.Key != probe.call.Key || w.to > probe.from ||
			r.End != Answered && r.End != Uncertain || r.Tried == 0 || r.NoTTL || probe.ended-w.began > life {
			continue
		}
		cleared := int64(-1) // when it was last removed before
		for _, o := range calls {
			if o.call.Verb == Clear && o.call.Key == w.call.Key && o.result.End == Answered && o.to < w.from {
				cleared = max(cleared, o.from)
			}
		}
		if !slices.ContainsFunc(calls, func(o *called) bool {
			after := w.from
			if slices.Contains(decides, o.call.Verb) {
				after = cleared
			} else if !o.mayRemove() {
				return false
			}
			return o != w && o.from < probe.to && (o.to > after || o.mayBeLate())
		}) {
			return errors.New("a write left the filter without its TTL, and did not say so")
		}
	}
	return nil
}

// ranOrNot reports whether all items of a write that failed are in, or none. Each
// is judged by itself: those that are in are done or uncertain.
func (c *called) ranOrNot() bool {
	in := func(s bloom.ItemState) bool { return s == bloom.ItemDone || s == bloom.ItemUncertain }
	states := c.result.States
	return !slices.ContainsFunc(states, func(s bloom.ItemState) bool { return s != states[0] && (!in(s) || !in(states[0])) })
}

// laterIsNew reports whether an item was new, and an equal one before it was seen.
func (c *called) laterIsNew() bool {
	for i, isNew := range c.result.Yes {
		first := slices.Index(c.call.Items, c.call.Items[i])
		if isNew && stateOf(c.result, first) == bloom.ItemDone && !c.result.Yes[first] {
			return true
		}
	}
	return false
}

// mayHaveWritten reports whether a write that met other data may have written to
// them, or to a filter before. A script looks at them first, and so does an Add
// to a Scalable. Of two handles only that with the script may have sent anything.
func (s *rules) mayHaveWritten(c *called) bool {
	looks := s.of.MustExist || slices.Contains(c.call.Into, intoStrict)
	return s.blind && (c.result.Maybe > 0 || c.result.Tried > 0 && !looks)
}

// safe returns an error if a call tells of a refusal that concerns nobody, or is
// wrong about whether it changed anything. A look-up never does. A write that found no filter may have, if an attempt of it
// got no answer.
func safe(c *called) error {
	r := c.result
	switch {
	case strings.Contains(r.Err, "shebang"):
		return errors.New("the server refused the first line of a script, and the caller was told")
	case c.call.Verb.is(reads) && r.Err != "" && !r.Safe && !r.Lost:
		return errors.New("only reads, and is not safe to retry")
	case r.End != Missing || !c.call.Verb.is(adds) && !c.call.Verb.is(uploads) && c.call.Verb != Remove:
	case r.Safe && r.Maybe > 0 && !c.call.Verb.is(uploads): // a part of an upload may be lost
		return errors.New("safe to retry, although an attempt may have run")
	case !r.Safe && r.Maybe == 0 && r.Tried < 2 && !c.spread: // else it may have changed another filter
		return errors.New("a write that found no filter is not safe to retry")
	}
	return nil
}

// sends reports whether the call is an Add that a handle sends unless it has
// met other data.
func (c *called) sends() bool {
	return (c.call.Verb == Add || c.call.Verb == AddAll) && len(c.call.Into) == 0
}

// isRefused reports whether the handle of an Add met other data before, and no
// call since could have told it that they are gone.
func (s *rules) isRefused(n int, c *called) bool {
	var others []*called // of the same handle, that could tell it something
	met := int64(-1)     // when the last Add to meet other data began
	for i, o := range s.h.calls {
		if i == n || o.from > c.to || !o.shares(c) || o.call.Verb == ReplaceWrong {
			continue
		}
		switch {
		case o.call.Verb == Open && !o.adopted(): // the handle stays
		case !o.sends():
			others = append(others, o)
		case o.result.End == Mismatch && o.to < c.from:
			met = max(met, o.from)
		case o.result.Tried > 0:
			others = append(others, o)
		}
	}
	return met >= 0 && !slices.ContainsFunc(others, func(o *called) bool { return o.to > met })
}

// earliest returns the first place at which a step may have taken effect. It is
// the beginning of the call, unless the answer may be old.
func (s *rules) earliest(c *called, p step) int64 {
	near := s.of.Lag && s.of.ReadsNearest
	yes := p.end == answered && !slices.Contains(p.yes, false) && len(p.yes) > 0
	switch p.verb {
	case Exists, ExistsAll, OtherExists, Count:
		if c.call.Verb != Refresh && near {
			return s.synced(c)
		}
	case Inspect, Open: // and the nearest region answers a client that may not run BITFIELD
		if s.of.Lag && c.result.Refused {
			return s.synced(c)
		}
	case Stats, Cardinality: // the nearest region answers
		if s.of.Lag {
			return s.synced(c)
		}
	case Snapshot:
		// The nearest region sends the parts of the filter that is there. If the
		// server refuses BITFIELD, it answers the first request too.
		if s.of.Lag && !s.of.Tokens {
			return 0
		}
	case MirrorExists, Crowd:
		if c.call.Verb != Crowd && s.mayLose(c) { // neither a birth number nor a count shows it
			if s.of.MaxCopy == 0 {
				return 0
			}
			return min(c.from, s.oldest(c, s.of.MaxCopy))
		}
		switch {
		case near && (s.of.MaxStale == 0 || p.end != answered):
			return 0
		case p.end != answered, c.call.Verb == Crowd: // its Mirror is new
			return c.from
		case yes:
			return min(c.from, max(s.oldest(c, s.of.MaxTrust), s.shown(c)))
		}
		if s.of.MaxStale > 0 {
			return min(c.from, max(s.oldest(c, s.of.MaxStale), s.told(c)))
		}
	}
	return c.from
}

// mayLose reports whether acknowledged writes may have been lost before a call
// ended, or another filter may have come to the key with the same birth number.
func (s *rules) mayLose(c *called) bool {
	return slices.ContainsFunc(s.h.calls, func(o *called) bool {
		return (o.call.Verb == Revert || o.call.Verb == CopyOver) && o.from < c.to
	})
}

// late is how long after its call an attempt may run.
const late = 4 * time.Second

// mayKnowOther reports whether the primary may have shown other data to the
// handle of an Add that sent nothing.
func (s *rules) mayKnowOther(n int, c *called) bool {
	for i, o := range s.h.calls {
		region := s.of.Lag && s.of.ReadsNearest && o.call.Verb.is(reads) && !o.call.Verb.is(mirrored)
		if i != n && o.from < c.to && o.session == c.session && !region {
			switch o.result.End {
			case Mismatch, Partly, Unknown, Uncertain:
				return true
			}
			if s.of.TTL != 0 && o.call.Verb.is(adds) { // its EXPIRE may have met them
				return true
			}
			if (o.call.Verb == Replace || o.call.Verb.is(uploads)) && o.result.Maybe > 0 { // so may an attempt of it
				return true
			}
			// A refresh may have met them, whose call goes on, or failed by its last question.
			if q := o.result.Questions; len(q) > 1 && (o.result.End == NotRun || o.to > c.from) &&
				slices.ContainsFunc(q[:len(q)-1], func(q Question) bool { return q.Answered }) {
				return true
			}
		}
	}
	return false
}

// synced returns the place after which a region is that answers a call. A client
// sends the sync token of the write that was answered last. Of two that overlap,
// it may be the older one. The token of a read replaces no write's.
func (s *rules) synced(c *called) (at int64) {
	if !s.of.Tokens {
		return 0
	}
	for _, o := range s.h.calls {
		if !o.isOfClient(c) || !o.leavesToken(c) {
			continue
		}
		oldest := s.reached(o, c)
		for _, w := range s.h.calls {
			if w.isOfClient(c) && w.to > o.from && w.from < c.to && !s.asksRegion(w) {
				oldest = min(oldest, s.reached(w, c))
			}
		}
		at = max(at, oldest)
	}
	return at
}

// leavesToken reports whether c is a write whose token the client knows before
// the next call.
func (c *called) leavesToken(next *called) bool {
	return c.call.Verb.is(adds) && len(c.call.Into) == 0 && c.result.End == Answered && c.result.Tried > 0 && c.to < next.from
}

// reached returns the place after which a region is that has the state of a call
// o before c. If another call ended while o ran, somebody may have seen what came
// after that state.
func (s *rules) reached(o, c *called) int64 {
	endsWithin := func(v *called) bool { return o.from < v.to && v.to < o.to }
	if !o.leavesToken(c) || slices.ContainsFunc(s.h.calls, endsWithin) {
		return o.from
	}
	return o.to + 1
}

// told returns the place after which the Mirror of a look-up knows the item:
// the end of the Mirror's own Add, or the beginning of a Refresh.
func (s *rules) told(c *called) (at int64) {
	for _, o := range s.h.calls {
		if o.session != c.session || o.to > c.from || o.result.End != Answered || s.reopened(o, c) {
			continue
		}
		switch o.call.Verb {
		case Refresh:
			at = max(at, o.from)
		case MirrorAdd, MirrorAddAll, MirrorThrough:
			if o.sent(c.call.Items[0]) {
				at = max(at, o.to+1)
			}
		}
	}
	return at
}

// shown returns the place after which a filter was there that the Mirror of a call
// may have a copy of: the beginning of the last call that brought an answer of the
// primary. Only the answer to an Add that crossed it, and may have made an earlier
// filter, may bring that back.
func (s *rules) shown(c *called) (at int64) {
	if s.of.Lag && s.of.ReadsNearest {
		return 0
	}
	all := s.sameMirror(c)
	for _, o := range all {
		if o.to < c.from && s.learned(o) && !slices.ContainsFunc(all, func(p *called) bool {
			seen := p.result.End == Answered && !slices.Contains(p.result.Yes, true)
			return p != o && p.call.Verb.is(adds) && !seen && p.from < o.to && p.to > o.from
		}) {
			at = max(at, o.from)
		}
	}
	return at
}

// learned reports whether a call certainly told its Mirror what is at the key. An
// answer that the package refuses told it nothing, and the copy may have answered.
func (s *rules) learned(c *called) bool {
	v := c.call.Verb
	return (s.of.Outages || v == Refresh || v == MirrorThrough) && slices.ContainsFunc(c.result.Questions, c.answered)
}

// reopened reports whether the call c may have used another Mirror than o: an
// opened filter has a new one.
func (s *rules) reopened(o, c *called) bool {
	return slices.ContainsFunc(s.h.calls, func(a *called) bool {
		return a.session == c.session && a.call.Key == 0 && !a.call.Parts && a.adopted() &&
			o.from < a.to && a.from < c.to
	})
}

// asksRegion reports whether a call asks the nearest region alone.
func (s *rules) asksRegion(c *called) bool {
	v := c.call.Verb
	return v.is(regional) || (v == Exists || v == ExistsAll) && len(c.call.Into) == 0 && s.of.ReadsNearest
}

// counted returns an error if the counts of an AddSeq contradict its end.
func (c *called) counted() error {
	r := c.result
	gone := c.lostFilter()
	switch {
	case r.Count+r.Unsure > r.Done+len(r.States) || r.Unsure > r.Done || r.Done > len(c.call.Items):
		return errors.New("more items are new than are in")
	case (r.End == Answered || r.In) && r.Done != len(c.call.Items):
		return errors.New("all items are in, by the error, and are not")
	case r.End == Answered && r.Unsure > 0:
		return errors.New("items may have been new, and there is no error")
	case r.Unsure > r.Maybe*c.request():
		return errors.New("more items are uncertain than those of lost requests")
	case r.End == Uncertain && (!r.In || r.Unsure == 0):
		return errors.New("uncertain, and not all items are in, or all answers are certain")
	case gone && r.In:
		return errors.New("the filter went away with the items that are in")
	case gone && r.Done > 0:
		return errors.New("the filter went away, and the result is not zero")
	case r.Safe && r.Done > 0, gone && r.Safe && r.Tried > 1:
		return errors.New("safe to retry, although an earlier round has added items")
	}
	return nil
}

// lostFilter reports whether an AddSeq found that the filter went away. If it
// met other data in its first round, its items have states.
func (c *called) lostFilter() bool {
	r := c.result
	return r.End == Missing || r.End == Recreated || r.End == Mismatch && r.Tried > 0
}

// request returns how many items of an AddSeq a request carries.
func (c *called) request() int {
	if c.call.Parts {
		return 1
	}
	return len(c.call.Items)
}

// sent reports whether the answers of a Mirror's Adds say that an item was sent.
func (c *called) sent(item string) bool {
	i := slices.Index(c.call.Items, item)
	return i >= 0 && c.result.Tried > 0 && (c.call.Verb != MirrorAddAll || c.result.Yes[i])
}

// mirrored returns an error if a Mirror's batch is wrong about what was sent.
func (s *rules) mirrored(c *called) error {
	r := c.result
	failed := slices.ContainsFunc(r.States, func(s bloom.ItemState) bool {
		return s != bloom.ItemDone && s != bloom.ItemUncertain
	})
	for i, state := range r.States {
		done, yes := state == bloom.ItemDone, i < len(r.Yes) && r.Yes[i]
		switch {
		case c.call.Verb == MirrorAddAll && failed && done && yes:
			return errors.New("the items that were sent have several states")
		case c.call.Verb != MirrorAll:
		case !done && state != bloom.ItemNotDone:
			return errors.New("a look-up has a state of a write")
		case !done && yes:
			return errors.New("an item without an answer was found")
		case done && !yes && s.of.MaxStale == 0:
			return errors.New("the server did not answer, and an item was not found")
		}
	}
	if c.call.Verb == MirrorAddAll && r.Tried == 0 && slices.Contains(r.Yes, true) {
		return errors.New("an item is new, and nothing was sent")
	}
	return nil
}

// adopted reports whether c is an Open, and its client has used the handle
// since.
func (c *called) adopted() bool {
	r := c.result
	return c.call.Verb == Open && r.End == Answered && (len(r.Yes) == 0 || r.Yes[0])
}

// mayRemove reports whether a call may have removed a filter or its items.
func (c *called) mayRemove() bool {
	r := c.result
	switch c.call.Verb {
	case Delete, Expire, Clear:
		return r.End != NotRun && (r.End != Answered || len(r.Yes) == 0 || r.Yes[0])
	case Rename, Replace:
		return r.End == Unknown || r.End == Answered
	case Overwrite, Plant, Lapse, Revert, CopyOver:
		return true
	}
	return false
}

// mayBeLate reports whether an attempt of a call may take effect after the call.
func (c *called) mayBeLate() bool { return c.result.End == Unknown || c.result.Maybe > 0 }

// overlaps reports whether other may have taken effect during c.
func (c *called) overlaps(other *called) bool {
	return other.from < c.to && (other.to > c.from || other.mayBeLate())
}

// fromCopy reports whether a Mirror found an item in its copy and did not add
// it.
func (c *called) fromCopy() bool {
	return c.call.Verb == MirrorAdd && c.result.End == Answered && c.result.Tried == 0
}

// shares reports whether two calls use the same handle.
func (c *called) shares(o *called) bool {
	if c.session != o.session || c.call.Parts != o.call.Parts {
		return false
	}
	return len(c.call.Into)+len(o.call.Into) > 0 || c.call.Key == o.call.Key
}

// isOfClient reports whether the workers of one client made both calls.
func (c *called) isOfClient(o *called) bool {
	a, _, _ := strings.Cut(c.client, ".")
	b, _, _ := strings.Cut(o.client, ".")
	return a == b
}

// stateOf returns the state of an item after a result, as a batch would.
func stateOf(r Result, i int) bloom.ItemState {
	switch r.End {
	case Partly:
		if r.States != nil {
			return r.States[i]
		}
	case Answered, Missing, Mismatch, Taken, NoNumber, Full:
		return bloom.ItemDone
	case Uncertain:
		return bloom.ItemUncertain
	case Unknown:
		return bloom.ItemUnknown
	}
	return bloom.ItemNotDone
}
