package proof

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

// A rule says what an answer must not be, whatever the order of the calls. A
// history that breaks it shows the sentence.
type rule[T any] struct {
	sentence string
	isBroken func(T) bool
}

// judge returns the sentence of the first rule that is broken.
func judge[T any](of T, list []rule[T]) error {
	for _, r := range list {
		if r.isBroken(of) {
			return errors.New(r.sentence)
		}
	}
	return nil
}

// rules is what the rules of a history's calls know.
type rules struct {
	of *Common
	Staleness
	h     *History
	blind bool // an Add sends its items without a look-up first
	// removals are the calls that may have removed the filter; opens gave a session's
	// Mirror another handle, and thus made a new one.
	removals, opens []*called

	// Of a Window: for how long it finds an item; and whether the server may be asked
	// for the item of a look-up by a Mirror, although the copy is in time.
	span   time.Duration
	isOpen func(*called) bool
}

func newRules(of *Common, stale Staleness, h *History) rules {
	s := rules{of: of, Staleness: stale, h: h}
	for _, c := range h.calls {
		if c.mayRemove() {
			s.removals = append(s.removals, c)
		}
		if c.call.Key == 0 && !c.call.Parts && c.adopted() {
			s.opens = append(s.opens, c)
		}
	}
	return s
}

// A judged is a call beside the rules of its history.
type judged struct {
	*rules
	*called
	all []*called // that have used the same Mirror, with itself
}

func (s *rules) judged(c *called) judged {
	j := judged{rules: s, called: c}
	if c.call.Verb.is(mirrored) {
		j.all = s.sameMirror(c)
	}
	return j
}

// callRules are of each call, of any type. A look-up changes nothing. A write that
// found no filter may have, if an attempt of it got no answer.
var callRules = []rule[*called]{
	{"the server refused the first line of a script, and the caller was told", func(c *called) bool {
		return strings.Contains(c.result.Err, "shebang")
	}},
	{"only reads, and is not safe to retry", func(c *called) bool {
		return c.call.Verb.is(reads) && c.result.Err != "" && !c.result.Safe && !c.result.Lost
	}},
	{"safe to retry, although an attempt may have run", func(c *called) bool {
		return c.foundNone() && c.result.Safe && c.result.Maybe > 0 && !c.call.Verb.is(uploads) // a part of one may be lost
	}},
	{"a write that found no filter is not safe to retry", func(c *called) bool { // it changed no other filter
		return c.foundNone() && !c.result.Safe && c.result.Maybe == 0 && c.result.Tried < 2 && !c.spread
	}},
}

func (c *called) foundNone() bool {
	return c.result.End == Missing && (c.call.Verb.is(adds|uploads) || c.call.Verb == Remove)
}

// batchRules are of the error of a batch, and of the states of its items.
var batchRules = []rule[*called]{
	{"an item may have been written, and the error of its batch says that nothing was", func(c *called) bool {
		return c.hasUnknown() && c.result.ErrSafe
	}},
	{"an item that follows an equal one in the filter is not seen", (*called).isUnseenAgain},
}

// copiesRules are batchRules if equal items count each time.
var copiesRules = []rule[*called]{
	batchRules[0],
	{"an item may have been written, and the error of its batch does not say so", func(c *called) bool {
		return c.hasUnknown() && !c.result.ErrUnsure && !c.result.ErrGone
	}},
}

// hasUnknown reports whether a batch failed, and may have written an item.
func (c *called) hasUnknown() bool {
	writes := c.call.Verb.is(adds) || c.call.Verb == RemoveAll
	return c.result.End == Partly && writes && slices.Contains(c.result.States, bloom.ItemUnknown)
}

func (c *called) isUnseenAgain() bool {
	r, in := c.result, make(map[string]bool)
	if r.End != Partly || !c.call.Verb.is(adds) || len(r.States) != len(c.call.Items) {
		return false
	}
	for i, item := range c.call.Items {
		if in[item] && (r.States[i] != bloom.ItemDone || r.Yes[i]) {
			return true
		}
		in[item] = in[item] || isIn(r.States[i])
	}
	return false
}

// isIn reports whether an item of a write is in.
func isIn(s bloom.ItemState) bool { return s == bloom.ItemDone || s == bloom.ItemUncertain }

// seqRules are of an AddSeq, whose counts must not contradict its end.
var seqRules = []rule[*called]{
	{"more items are new than are in", func(c *called) bool {
		r := c.result
		return r.Count+r.Unsure > r.Done+len(r.States) || r.Unsure > r.Done || r.Done > len(c.call.Items)
	}},
	{"all items are in, by the error, and are not", func(c *called) bool {
		return (c.result.End == Answered || c.result.In) && c.result.Done != len(c.call.Items)
	}},
	{"items may have been new, and there is no error", func(c *called) bool {
		return c.result.End == Answered && c.result.Unsure > 0
	}},
	{"more items are uncertain than those of lost requests", func(c *called) bool {
		return c.result.Unsure > c.result.Maybe*c.request()
	}},
	{"uncertain, and not all items are in, or all answers are certain", func(c *called) bool {
		return c.result.End == Uncertain && (!c.result.In || c.result.Unsure == 0)
	}},
	{"the filter went away, and the result is not zero", func(c *called) bool {
		return c.lostFilter() && (c.result.In || c.result.Done > 0)
	}},
	{"safe to retry, although an earlier round has added items", func(c *called) bool {
		return c.result.Safe && (c.result.Done > 0 || c.lostFilter() && c.result.Tried > 1)
	}},
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

// filterRules are of a Filter, and of the types that answer like one.
var filterRules = []rule[judged]{
	{"some items of one write are in, and others are not", func(j judged) bool {
		whole := !j.call.Parts && j.call.More < bigMore
		return j.call.Verb == AddAll && whole && slices.ContainsFunc(j.result.States, func(s bloom.ItemState) bool {
			first := j.result.States[0]
			return s != first && !(isIn(s) && isIn(first)) // those that are in are done or uncertain, each by itself
		})
	}},
	{"uncertain, although no attempt may have run before", func(j judged) bool {
		return j.isUnsure() && j.result.Maybe == 0
	}},
	{untimed, func(j judged) bool { return j.isUntimed(j.h.calls, j.of.TTL) }},
	{"safe to retry, although it may have written to other data", func(j judged) bool {
		add := j.call.Verb == Add || j.call.Verb == AddAll
		return add && j.result.End == Mismatch && j.result.Safe && j.mayHaveWritten()
	}},
	{"a Local of another geometry was not refused at once", func(j judged) bool {
		refused := j.result.End == Mismatch && j.result.Tried == 0 || j.result.End == NotRun
		return j.call.Verb == ReplaceWrong && !refused
	}},
	{"a missing filter counts as empty, and Refresh did not find it so", func(j judged) bool {
		return j.call.Verb == Refresh && j.result.End == Missing && j.of.MissingIsEmpty
	}},
	{"callers that began at once made three refreshes", func(j judged) bool {
		return j.call.Verb == Crowd && j.result.Count > 2 // one begun by another caller just before, and the next
	}},
	{"of equal items a later one was new, and the first was not", func(j judged) bool {
		return j.call.Verb == AddAll && j.laterIsNew() && !slices.ContainsFunc(j.removals, j.overlaps)
	}},
	{"a handle that met no other data refused to write", func(j judged) bool {
		return j.blind && j.sends() && j.result.End == Mismatch && j.result.Tried == 0 && !j.mayKnowOther()
	}},
	{"a handle that met other data wrote again", func(j judged) bool {
		return j.sends() && !j.spread && j.result.Tried > 0 && j.isRefused()
	}},
}

// consistent returns an error for a result no state of the filter explains.
func (s *rules) consistent(c *called) error {
	j := s.judged(c)
	err := errors.Join(judge(c, callRules), judge(c, batchRules), judge(j, mirrorRules), judge(j, filterRules))
	if c.call.Verb == AddSeq {
		err = errors.Join(err, judge(c, seqRules))
	}
	return err
}

// isUnsure reports whether a call says that an item of it may have been new.
func (c *called) isUnsure() bool {
	return c.result.End == Uncertain || slices.Contains(c.result.States, bloom.ItemUncertain) ||
		slices.Contains(c.result.Ends, Uncertain)
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

const untimed = "a write left the filter without its TTL, and did not say so"

// isUntimed reports whether a probe finds a filter without a TTL after a write that
// said nothing of it, and no other call can be the reason. The filter has not expired
// before the end of life.
func (c *called) isUntimed(calls []*called, life time.Duration) bool {
	if c.call.Verb != ProbeTTL || c.result.End != Answered || c.result.Yes[0] {
		return false
	}
	return slices.ContainsFunc(calls, func(w *called) bool {
		if !w.sets(c) || c.ended-w.began > life {
			return false
		}
		cleared := int64(-1) // when it was last removed before
		for _, o := range calls {
			if o.call.Verb == Clear && o.call.Key == w.call.Key && o.result.End == Answered && o.to < w.from {
				cleared = max(cleared, o.from)
			}
		}
		return !slices.ContainsFunc(calls, func(o *called) bool {
			since := w.from
			if o.decidesTTL() {
				since = cleared
			}
			return o != w && (o.decidesTTL() || o.mayRemove()) && o.from < c.to && (o.to > since || o.mayBeLate())
		})
	})
}

// sets reports whether a write ended before a probe, and its filter then had a TTL
// unless it said so.
func (c *called) sets(probe *called) bool {
	r := c.result
	said := r.End == Answered && !r.NoTTL || r.End == Uncertain && !r.NoTTL
	writes := c.call.Verb.is(adds) && c.call.Verb != AddSeq && !c.must && r.Tried > 0
	return writes && said && c.call.Key == probe.call.Key && c.to <= probe.from
}

// decidesTTL reports whether a call stores a filter, or decides about its TTL.
func (c *called) decidesTTL() bool {
	switch c.call.Verb {
	case Persist, SetTTL, Plant, Revert, CopyOver, Smudge, RestoreBackup, AddOther, Overwrite:
		return true
	}
	return false
}

// mayHaveWritten reports whether a write that met other data may have written to
// them, or to a filter before. A script looks at them first, and so does an Add
// to a Scalable. Of two handles only that with the script may have sent anything.
func (j judged) mayHaveWritten() bool {
	looks := j.of.MustExist || slices.Contains(j.call.Into, intoStrict)
	return j.blind && (j.result.Maybe > 0 || j.result.Tried > 0 && !looks)
}

// sends reports whether the call is an Add that a handle sends unless it has
// met other data.
func (c *called) sends() bool {
	return (c.call.Verb == Add || c.call.Verb == AddAll) && len(c.call.Into) == 0
}

// isRefused reports whether the handle of an Add met other data before, and no
// call since could have told it that they are gone.
func (j judged) isRefused() bool {
	var others []*called // of the same handle, that could tell it something
	met := int64(-1)     // when the last Add to meet other data began
	for _, o := range j.h.calls {
		if o == j.called || o.from > j.to || !o.shares(j.called) || o.call.Verb == ReplaceWrong {
			continue
		}
		switch {
		case o.call.Verb == Open && !o.adopted(): // the handle stays
		case !o.sends():
			others = append(others, o)
		case o.result.End == Mismatch && o.to < j.from:
			met = max(met, o.from)
		case o.result.Tried > 0:
			others = append(others, o)
		}
	}
	return met >= 0 && !slices.ContainsFunc(others, func(o *called) bool { return o.to > met })
}

// mayKnowOther reports whether the primary may have shown other data to the
// handle of an Add that sent nothing.
func (j judged) mayKnowOther() bool {
	return slices.ContainsFunc(j.h.calls, func(o *called) bool {
		region := j.of.Lag && j.of.ReadsNearest && o.call.Verb.is(reads) && !o.call.Verb.is(mirrored)
		return o != j.called && o.from < j.to && o.session == j.session && !region && j.mayMeetOther(o)
	})
}

// mayMeetOther reports whether another call of the handle may have met other data.
func (j judged) mayMeetOther(o *called) bool {
	switch r := o.result; {
	case r.End == Mismatch, r.End == Partly, r.End == Unknown, r.End == Uncertain:
		return true
	case j.of.TTL != 0 && o.call.Verb.is(adds): // its EXPIRE may have met them
		return true
	case (o.call.Verb == Replace || o.call.Verb.is(uploads)) && r.Maybe > 0: // so may an attempt of it
		return true
	}
	// A refresh may have, whose call goes on, or failed by its last question.
	q := o.result.Questions
	return len(q) > 1 && (o.result.End == NotRun || o.to > j.from) &&
		slices.ContainsFunc(q[:len(q)-1], func(q Question) bool { return q.Answered })
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
			return min(c.from, s.oldest(c, s.MaxCopy))
		}
		switch {
		case near && (s.MaxStale == 0 || p.end != answered):
			return 0
		case p.end != answered, c.call.Verb == Crowd: // its Mirror is new
			return c.from
		case yes:
			return min(c.from, max(s.oldest(c, s.MaxTrust), s.shownAt(c)))
		}
		if s.MaxStale > 0 {
			return min(c.from, max(s.oldest(c, s.MaxStale), s.told(c, c.call.Items[0])))
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
func (s *rules) told(c *called, item string) (at int64) {
	for _, o := range s.h.calls {
		if o.session != c.session || o.to > c.from || o.result.End != Answered || s.reopened(o, c) {
			continue
		}
		switch o.call.Verb {
		case Refresh:
			at = max(at, o.from)
		case MirrorAdd, MirrorAddAll, MirrorThrough:
			if o.sent(item) {
				at = max(at, o.to+1)
			}
		}
	}
	return at
}

// shown returns the last call before c that brought its Mirror an answer of the
// primary, or nil. A filter that was gone when that call began is not in the copy. Only
// the answer to an Add that crossed it, and may have made an earlier filter, may bring
// that back.
func (s *rules) shown(c *called) (last *called) {
	if s.of.Lag && s.of.ReadsNearest {
		return nil
	}
	all := s.sameMirror(c)
	for _, o := range all {
		crossed := slices.ContainsFunc(all, func(p *called) bool {
			seen := p.result.End == Answered && !slices.Contains(p.result.Yes, true)
			return p != o && p.call.Verb.is(adds) && !seen && p.from < o.to && p.to > o.from
		})
		if o.to < c.from && s.learned(o) && !crossed && (last == nil || o.from > last.from) {
			last = o
		}
	}
	return last
}

func (s *rules) shownAt(c *called) int64 {
	if last := s.shown(c); last != nil {
		return last.from
	}
	return 0
}

// learned reports whether a call certainly told its Mirror what is at the key. An
// answer that the package refuses told it nothing, and the copy may have answered.
func (s *rules) learned(c *called) bool {
	v := c.call.Verb
	return (s.Outages || v == Refresh || v == MirrorThrough) && slices.ContainsFunc(c.result.Questions, c.answered)
}

// reopened reports whether the call c may have used another Mirror than o: an
// opened filter has a new one.
func (s *rules) reopened(o, c *called) bool {
	return slices.ContainsFunc(s.opens, func(a *called) bool {
		return a.session == c.session && o.from < a.to && a.from < c.to
	})
}

// asksRegion reports whether a call asks the nearest region alone.
func (s *rules) asksRegion(c *called) bool {
	v := c.call.Verb
	return v.is(regional) || (v == Exists || v == ExistsAll) && len(c.call.Into) == 0 && s.of.ReadsNearest
}

// sent reports whether the answers of a Mirror's Adds say that an item was sent.
func (c *called) sent(item string) bool {
	i := slices.Index(c.call.Items, item)
	return i >= 0 && c.result.Tried > 0 && (c.call.Verb != MirrorAddAll || c.result.Yes[i])
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
