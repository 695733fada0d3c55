package bloom

import (
	"errors"
	"sync"
	"time"
)

// mirrorCopy is what a Mirror knows of one filter, which it tells from others
// by the birth number. All bits of local were in the server's answers about
// that filter, so that local is a subset of it at any later time.
type mirrorCopy struct {
	mu     sync.RWMutex
	local  *Local
	birth  int64     // 0 if no filter is known, and local is empty
	begun  uint64    // how often local was begun anew
	proved time.Time // when the question was sent whose answer last showed the birth number
	fresh  time.Time // all that was in the filter then is in local; zero if there is no such time
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

// answer returns what the copy says of an item. known is false if the server
// must be asked.
func (c *mirrorCopy) answer(now time.Time, cfg MirrorConfig, item string) (found, known bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.local.Exists(item) {
		return true, within(now, c.proved, cfg.MaxTrust)
	}
	return false, cfg.MaxStale > 0 && within(now, c.fresh, cfg.MaxStale)
}

// trusts reports whether the copy has the item, and its last proof is within
// the limit.
func (c *mirrorCopy) trusts(now time.Time, limit time.Duration, item string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.local.Exists(item) && within(now, c.proved, limit)
}

// drop forgets the filter.
func (c *mirrorCopy) drop() {
	if c.birth != 0 {
		clear(c.local.buf[headerBytes:])
		c.begun++
	}
	c.birth, c.proved, c.fresh = 0, time.Time{}, time.Time{}
}

// isNews reports whether the answer to a question that was sent at the time is
// newer than what is known. An older one, which came late, may speak of the
// past. A proof that lies in the future is from before the clock was set back,
// and cannot be compared.
func (c *mirrorCopy) isNews(sent, now time.Time) bool {
	return !sent.Before(c.proved) || age(now, c.proved) < 0
}

// miss takes note that the primary has no filter, or another one. If a missing
// filter counts as empty, local is then whole, and miss returns true. Of two
// questions that were sent at the same time, none counts as the later one.
func (c *mirrorCopy) miss(sent, now time.Time, isEmpty bool) (whole bool) {
	if !c.isNews(sent, now) {
		return false
	}
	whole = isEmpty && sent.After(c.proved)
	if c.drop(); whole {
		c.fresh = sent // proved stays zero: a filter that an answer shows counts as later
	}
	return whole
}

// meet takes note that the primary showed a birth number, in answer to a
// question that was sent at that time. It reports whether local is now about
// that filter. It never is for birth 0, which is that of a filter that another
// program wrote: nothing tells it from its successor.
func (c *mirrorCopy) meet(birth int64, sent, now time.Time) bool {
	news := c.isNews(sent, now)
	if birth == c.birth {
		if news {
			c.proved = sent
		}
		return birth != 0
	}
	if !news {
		return false
	}
	if c.drop(); birth == 0 {
		return false
	}
	c.birth, c.proved = birth, sent
	return true
}

// A lesson takes what a call's answers say into the copy.
type lesson struct {
	m       *Mirror
	sent    time.Time // before any question of the call was sent
	primary bool      // the primary must answer: the last proof is too old
}

func (m *Mirror) lesson() *lesson {
	now := m.now()
	m.copy.mu.RLock()
	defer m.copy.mu.RUnlock()
	return &lesson{m, now, !within(now, m.copy.proved, m.cfg.MaxTrust)}
}

func (l *lesson) asksPrimary() bool { return l.primary }

// learn takes the bits of an answer into the copy, and notes which filter it is
// about.
func (l *lesson) learn(q *request, primary bool) {
	c, now := &l.m.copy, l.m.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case q.wrote.ok:
		if c.meet(q.wrote.birth, l.sent, now) {
			for _, item := range q.items {
				c.local.Add(item)
			}
		}
	case q.err == nil && len(q.found) > 0:
		// A region lags: it may lack bits, but those that it has are bits of
		// the filter whose birth number it shows.
		if primary && c.meet(q.stands, l.sent, now) || !primary && q.stands == c.birth && c.birth != 0 {
			q.learnCells(c.local)
		}
	case primary && isGone(q.err):
		c.miss(l.sent, now, false)
	}
}

// isGone reports whether an error of the primary says that the filter is no
// longer there.
func isGone(err error) bool { return errors.Is(err, ErrNotFound) || isForeign(err) }

// learnCells sets the cells that the answers to a look-up showed to be set.
func (q *request) learnCells(local *Local) {
	cells := q.answers[2:] // after the header and the birth number
	if local.geo.Scheme == SchemeBlocked {
		for i, w := range q.words {
			local.learnWord(w.Index, cells[i].Int64)
		}
		return
	}
	for _, item := range q.items {
		q.pos = local.geo.Positions(q.pos[:0], item)
		for i, p := range q.pos {
			if cells[i].Int64 == 1 {
				local.setCell(p)
			}
		}
		cells = cells[len(q.pos):]
	}
}
