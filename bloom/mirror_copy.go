package bloom

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// mirrorCopy is a Mirror's knowledge of one filter: rule 1. Its bits are a subset
// of the filter's at any later time, as long as the database loses no acknowledged
// write.
type mirrorCopy struct {
	// To which age a "no" counts, a "yes", a refresh by equal counts, and all of
	// the copy: 4, 5, 6.
	no, yes, full, most time.Duration

	mu    sync.RWMutex
	bits  *copied // replaced if what was known is dropped: a refresh notices it by the pointer
	next  *copied // filled by a download, to take the place of bits; nil if there is none
	birth int64   // of which filter; 0 if nothing is known, noFilter if there was none

	verifiedAt  time.Time // when the latest question was sent whose answer showed birth
	refreshedAt time.Time // bits has all that was there then; zero before the first refresh
	shownAt     time.Time // when the last answer came that showed birth, or the second of two that crossed
}

// noFilter is the birth number of no filter, and of one that is none of ours.
const noFilter = -1

// copied are bits of answers. The oldest of these was sent for at oldest, zero if
// there is none.
type copied struct {
	*Local
	oldest time.Time
}

// plus is the sum of two durations, or the longest there is.
func plus(a, b time.Duration) time.Duration { return a + min(b, math.MaxInt64-a) }

// age returns how long ago then was, by the clock that shows more. The
// monotonic clock may stand still while a process is frozen, and the wall clock
// may be set back. If either age is below 0, age returns that one.
func age(now, then time.Time) time.Duration {
	wall, monotonic := now.Round(0).Sub(then.Round(0)), now.Sub(then)
	if wall < 0 || monotonic < 0 {
		return min(wall, monotonic)
	}
	return max(wall, monotonic)
}

// within reports whether then is no longer ago than the limit, and not in the
// future.
func within(now, then time.Time, limit time.Duration) bool {
	a := age(now, then)
	return !then.IsZero() && a >= 0 && a <= limit
}

// A view is how a call that began then looks at the copy.
type view struct {
	began time.Time
	late  time.Duration // 11
	now   func() time.Time
}

func (m *Mirror) inTime(began time.Time) view { return view{began: began, now: m.now} }

// takes reports whether an answer that was sent for then is new enough: 2, or by
// a limit.
func (v view) takes(sent time.Time, limit time.Duration) bool {
	if sent.Before(v.began) {
		return within(v.began, sent, plus(limit, v.late))
	}
	return age(v.now(), sent) >= 0
}

// answer returns what the copy says of an item. known is false if the server
// must be asked.
func (c *mirrorCopy) answer(v view, item string) (found, known bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	found = c.bits.Exists(item)
	if !c.isYoung(v) {
		return found, false
	}
	if found {
		return true, v.takes(c.verifiedAt, c.yes) // 5
	}
	return false, c.no > 0 && v.takes(c.refreshedAt, c.no) // 4
}

// isYoung reports whether all answers in the copy are new enough. Older ones may
// be of writes that the database has lost.
func (c *mirrorCopy) isYoung(v view) bool {
	return c.bits.oldest.IsZero() || v.takes(c.bits.oldest, c.most)
}

// hasAny reports whether the copy has one of the items, believed or not.
func (c *mirrorCopy) hasAny(items []string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.ContainsFunc(items, c.bits.Exists)
}

// drop forgets what is known, and ends a download.
func (c *mirrorCopy) drop() {
	local := c.bits.Local
	if !c.bits.oldest.IsZero() {
		local = newLocal(local.geo)
	}
	c.bits, c.next, c.birth = &copied{Local: local}, nil, 0
	c.verifiedAt, c.refreshedAt = time.Time{}, time.Time{}
}

// saw records that the primary showed a birth number in answer to a question that
// was sent then, and whether the question made that filter: 3. Number 0, of a
// filter by another program, proves nothing.
func (c *mirrorCopy) saw(birth int64, made bool, sent, now time.Time) {
	if birth != c.birth {
		crossed := !made && sent.Before(c.shownAt) && age(now, c.shownAt) >= 0
		if crossed && c.birth != 0 {
			c.shownAt = now
		}
		c.drop() // a new one each time: a refresh under way must not take it for whole
		if crossed {
			return
		}
		c.birth = birth
	}
	c.shownAt = now
	setBack := age(now, c.verifiedAt) < 0
	if birth > 0 && (setBack || sent.After(c.verifiedAt)) {
		c.verifiedAt = sent
	}
}

// take sets the bits of an answer to a question that was sent then, if the copy is
// of its filter.
func (c *mirrorCopy) take(birth int64, sent time.Time, set func(*Local)) {
	if birth <= 0 || birth != c.birth {
		return
	}
	for _, to := range []*copied{c.bits, c.next} {
		if to == nil {
			continue
		}
		set(to.Local)
		if to.oldest.IsZero() || sent.Before(to.oldest) {
			to.oldest = sent
		}
	}
}

// A question is what a Mirror asks the server. Its requests have it as their
// observer: the copy learns from their answers.
type question struct {
	m       *Mirror
	asked   time.Time
	primary bool // no region may answer
}

// question asks the primary if the last proof is too old, or if a "no" has to be
// as new as MaxStale says.
func (m *Mirror) question() *question {
	q, c := &question{m: m, asked: m.now()}, &m.copy
	c.mu.RLock()
	defer c.mu.RUnlock()
	q.primary = c.no > 0 || !within(q.asked, c.verifiedAt, c.yes)
	return q
}

// asking is what a call of the Mirror wants beside the answers.
func (m *Mirror) asking() engine.Call { return engine.Call{Observer: m.question()} }

// WantsPrimary reports whether no region may answer.
func (q *question) WantsPrimary() bool { return q.primary }

// sent returns when the attempt was sent that brought a reply. An error has no
// reply, and counts from the question.
func (q *question) sent(reply upstash.Reply) time.Time {
	if sent := q.m.sent(reply); !sent.IsZero() {
		return sent
	}
	return q.asked
}

// news is how a request to the primary ended, the last attempt of which was sent
// then.
type news struct {
	sent  time.Time
	birth int64 // 0 if there is an error
	made  bool  // it made the filter
	err   error
}

// learn is the one place that the end of each request to the primary passes: a
// look-up, an Add, a count, a part of a download. After an answer it calls take
// with what was copied before it. Other ends change nothing: 7.
func (q *question) learn(ctx context.Context, n news, take func(before *copied)) {
	c, now := &q.m.copy, q.m.now()
	if !isAnswer(n.err) {
		q.m.out.unanswered(ctx, n.err, q.asked, now)
		return
	}
	q.m.out.answered(n.sent, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.bits
	renewed := c.next != nil || c.no > 0 && !c.refreshedAt.IsZero()
	if !renewed && !c.isYoung(q.m.inTime(now)) { // 6
		c.drop()
	}
	if n.err != nil {
		n.birth = noFilter
	}
	c.saw(n.birth, n.made, n.sent, now)
	take(before)
}

// Learn takes the bits of an answer into the copy. A region lags: it proves
// nothing, but its bits are of the filter whose birth number it shows.
func (q *question) Learn(ctx context.Context, r *engine.Request, primary bool) {
	c, n := &q.m.copy, news{sent: q.sent(r.Reply), birth: r.BirthSeen, err: r.Err}
	set := func(l *Local) { learnCells(l, r) }
	if r.Wrote.Applied {
		n.birth, n.err = r.Wrote.Birth, nil
		n.made = r.Wrote.Created
		set = func(l *Local) { l.AddAll(r.Items) }
	}
	take := func(*copied) {
		if n.err == nil {
			c.take(n.birth, n.sent, set)
		}
	}
	if primary {
		q.learn(ctx, n, take)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	take(c.bits)
}

// learnCells sets the cells that are set in the answers to a look-up.
func learnCells(local *Local, q *engine.Request) {
	cells := q.Answers[2:] // after the header and the birth number
	if local.geo.Scheme == SchemeBlocked {
		for i, w := range q.Words {
			local.learnWord(w.Index, cells[i].Int64)
		}
		return
	}
	for _, item := range q.Items {
		q.Pos = local.geo.Positions(q.Pos[:0], item)
		for i, p := range q.Pos {
			if cells[i].Int64 == 1 {
				local.setCell(p)
			}
		}
		cells = cells[len(q.Pos):]
	}
}

// An outage is a time in which the primary gives no answer about the filter.
type outage struct {
	mu    sync.Mutex
	since time.Time // when the first question ended without an answer; zero if there is no outage
	heard time.Time // when the latest question was sent that was answered
	tried time.Time // when a question last ended
	probe bool      // a call asks whether the outage is over
}

// answered notes that an answer came to a question that was sent then: 8.
func (o *outage) answered(sent, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since, o.tried = time.Time{}, now
	if sent.After(o.heard) || age(now, o.heard) < 0 {
		o.heard = sent
	}
}

// unanswered notes the error of a request that brought no answer: 8.
func (o *outage) unanswered(ctx context.Context, err error, asked, now time.Time) {
	if !wasSent(err) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tried = now
	if noAnswer(ctx, err) && o.since.IsZero() && !asked.Before(o.heard) {
		o.since = now
	}
}

// isAnswer reports whether a request brought an answer about the filter: 9.
func isAnswer(err error) bool {
	return err == nil || engine.IsAnswer(err)
}

// wasSent reports whether the request was sent whose error this is.
func wasSent(err error) bool {
	if call, ok := fault.As[*upstash.CallError](err); ok {
		return call.Attempts > 0
	}
	_, refused := fault.As[*upstash.Error](err)
	return refused || fault.Is(err, upstash.ErrBadResponse) || fault.Is(err, upstash.ErrNil)
}

// noAnswer reports whether a question got no answer, and its caller waited for it: 9.
func noAnswer(ctx context.Context, err error) bool {
	return !isAnswer(err) && wasSent(err) && !errors.Is(ctx.Err(), context.Canceled)
}

// began returns when the outage began, zero if there is none.
func (o *outage) began() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since
}

func (o *outage) isOn() bool { return !o.began().IsZero() }

// spares reports whether there is an outage in which the call need not ask. If no
// other call asks, nor did within a second, it is this one's turn: 10b.
func (o *outage) spares(k *mirrorCall) bool {
	now := k.m.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() || k.probe {
		return false
	}
	if o.probe || within(now, o.tried, refreshPause) {
		return true
	}
	o.probe, k.probe = true, true
	return false
}

// end ends the turn of a call.
func (o *outage) end(k *mirrorCall) {
	if k.probe {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.probe = false
	}
}
