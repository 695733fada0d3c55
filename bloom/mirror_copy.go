package bloom

import (
	"slices"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/upstash"
)

// mirrorCopy is a Mirror's knowledge of one filter. The birth number tells the
// filter from others. All bits of local were in the server's answers about that
// filter: local is a subset of it at any later time, as long as the database
// loses no acknowledged write.
type mirrorCopy struct {
	mu     sync.RWMutex
	local  *Local    // replaced, never cleared: a refresh knows its own by the pointer
	oldest time.Time // when the first question was sent whose answer is in local; zero if none is
	birth  int64     // 0 if no filter is known, and local is empty

	verifiedAt  time.Time // when the latest question with this birth number in its answer was sent
	verifiedBy  time.Time // when the latest such answer came
	refreshedAt time.Time // local has every item the filter had then; zero before the first refresh
	refresh     uint64    // the number of the refresh that set refreshedAt

	// The copy that a refresh under way fills, to take the place of local; nil
	// if there is none.
	next       *Local
	nextOldest time.Time
}

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

// limits say how old a copy may be for an answer.
type limits struct{ trust, stale, copy time.Duration }

// limits returns those of the configuration, each later by so much.
func (c *MirrorConfig) limits(later time.Duration) limits {
	return limits{c.MaxTrust + later, c.MaxStale + later, c.MaxCopy + later}
}

// answer returns what the copy says of an item to a call. known is false if the
// server must be asked. A refresh that began after the call serves it, however
// long it took.
func (c *mirrorCopy) answer(call *mirrorCall, item string, most limits) (found, known bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	found = c.local.Exists(item)
	switch {
	case !found && call.m.cfg.MaxStale == 0:
		return false, false
	case c.refresh > call.refreshes:
		return found, true
	case !c.isYoung(call, most.copy):
		return found, false
	case found:
		return true, call.within(c.verifiedAt, most.trust)
	}
	return false, call.within(c.refreshedAt, most.stale)
}

// isYoung reports whether all answers in the copy are recent enough. Older ones
// may be of writes that the database has lost.
func (c *mirrorCopy) isYoung(call *mirrorCall, limit time.Duration) bool {
	return c.oldest.IsZero() || call.within(c.oldest, limit)
}

// isFresh reports whether the copy may answer "no" to a call.
func (c *mirrorCopy) isFresh(call *mirrorCall) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	most := call.m.cfg.limits(0)
	return c.refresh > call.refreshes ||
		c.isYoung(call, most.copy) && call.within(c.refreshedAt, most.stale)
}

// has reports whether the copy has one of the items, believed or not.
func (c *mirrorCopy) has(items []string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.ContainsFunc(items, c.local.Exists)
}

// trusts reports whether the copy has the item, and the filter was verified
// within MaxTrust.
func (c *mirrorCopy) trusts(call *mirrorCall, item string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	most := call.m.cfg.limits(0)
	return c.local.Exists(item) && c.isYoung(call, most.copy) && call.within(c.verifiedAt, most.trust)
}

// drop forgets the filter, and ends a refresh under way.
func (c *mirrorCopy) drop() {
	if c.birth != 0 {
		c.local = newLocal(c.local.geo)
	}
	c.birth, c.oldest, c.refreshedAt, c.refresh = 0, time.Time{}, time.Time{}, 0
	c.verifiedAt, c.verifiedBy, c.next = time.Time{}, time.Time{}, nil
}

// isLater reports whether an answer to a question sent at that time is certainly
// later than the last proof. If they overlap, or if the clock was set back, nobody
// knows which of them is.
func (c *mirrorCopy) isLater(sent, now time.Time) bool {
	return !sent.Before(c.verifiedBy) && age(now, c.verifiedBy) >= 0
}

// noFilter records that the primary had no filter, or another one, when it was
// asked at sent. The copy is dropped. It reports whether this is certainly the
// latest news.
func (c *mirrorCopy) noFilter(sent, now time.Time) (latest bool) {
	latest = c.isLater(sent, now) && sent.After(c.verifiedAt)
	c.drop() // the next filter that an answer shows counts as later
	return latest
}

// sawFilter records that the primary showed a birth number when it was asked at
// sent. It reports whether local is now about that filter. For birth 0, of a
// filter by another program, it never is: nothing tells such a filter from its
// successor.
func (c *mirrorCopy) sawFilter(birth int64, sent, now time.Time) bool {
	if birth != c.birth {
		later := c.isLater(sent, now)
		if c.drop(); !later || birth == 0 {
			return false // of two filters at one time neither is known to be the later
		}
		c.birth = birth
	}
	if birth == 0 {
		return false
	}
	if !sent.Before(c.verifiedAt) || age(now, c.verifiedAt) < 0 {
		c.verifiedAt = sent
	}
	c.verifiedBy = now
	return true
}

// learn calls take with each copy that is to have an answer to a question sent at
// that time.
func (c *mirrorCopy) learn(sent time.Time, take func(*Local)) {
	if take(c.local); c.oldest.IsZero() || sent.Before(c.oldest) {
		c.oldest = sent
	}
	if c.next == nil {
		return
	}
	if take(c.next); sent.Before(c.nextOldest) {
		c.nextOldest = sent
	}
}

// A mirrorCall is one call of a Mirror. Its requests have it as their observer:
// the copy learns from their answers.
type mirrorCall struct {
	m         *Mirror
	began     time.Time
	refreshes uint64 // how many refreshes had begun before it
	primary   bool   // no region may answer
}

func (m *Mirror) newCall() mirrorCall {
	return mirrorCall{m: m, began: m.now(), refreshes: m.gate.begun.Load()}
}

// within reports whether a time is within the limit before the call began, or
// before now.
func (call *mirrorCall) within(then time.Time, limit time.Duration) bool {
	return within(call.began, then, limit) || within(call.m.now(), then, limit)
}

// asks returns the call as the observer of requests. The primary must answer
// them if the last verification is too old, or if a "no" has to be as new as
// MaxStale says.
func (call *mirrorCall) WantsPrimary() bool { return call.primary }

func (call mirrorCall) asks() *mirrorCall {
	cfg, c := &call.m.cfg, &call.m.copy
	c.mu.RLock()
	defer c.mu.RUnlock()
	call.primary = cfg.MaxStale > 0 || !within(call.m.now(), c.verifiedAt, cfg.MaxTrust)
	return &call
}

// sent returns when the attempt was sent that brought a reply. An error has no
// reply, and counts from the start of the call.
func (call *mirrorCall) sent(reply upstash.Reply) time.Time {
	if sent := call.m.sent(reply); !sent.IsZero() {
		return sent
	}
	return call.began
}

// Learn takes the bits of an answer into the copy, and notes which filter it is
// about.
func (call *mirrorCall) Learn(q *engine.Request, primary bool) {
	c, now, sent := &call.m.copy, call.m.now(), call.sent(q.Reply)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil && !c.isYoung(call, call.m.cfg.MaxCopy) {
		c.drop()
	}
	switch {
	case q.Wrote.Applied:
		if c.sawFilter(q.Wrote.Birth, sent, now) {
			c.learn(sent, func(l *Local) { l.AddAll(q.Items) })
		}
	case q.Err == nil && len(q.Found) > 0:
		// A region lags: it may lack bits, but its bits are bits of the filter
		// whose birth number it shows.
		if primary && c.sawFilter(q.BirthSeen, sent, now) || !primary && q.BirthSeen == c.birth && c.birth != 0 {
			c.learn(sent, func(l *Local) { learnCells(l, q) })
		}
	case primary && engine.NoFilterHere(q.Err):
		c.noFilter(sent, now)
	}
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
