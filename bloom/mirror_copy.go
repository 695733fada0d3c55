package bloom

import (
	"errors"
	"sync"
	"time"
)

// mirrorCopy is what a Mirror knows of one filter, by its birth number. All
// bits of local were in the server's answers about that filter, so that local
// is a subset of it at any later time.
type mirrorCopy struct {
	mu     sync.RWMutex
	local  *Local
	birth  int64     // 0: of no filter, and local is empty
	begun  uint64    // how often local was begun anew
	proved time.Time // when the question was sent whose answer last showed the birth number
	fresh  time.Time // all that was in the filter then is in local; zero if there is no such time
}

// age is how long ago then was. A process that was frozen sees it on the wall
// clock alone, and a wall clock that is set back does not move the monotonic
// one: the larger counts, but for an age below 0.
func age(now, then time.Time) time.Duration {
	wall, monotonic := now.Round(0).Sub(then.Round(0)), now.Sub(then)
	if wall < 0 || monotonic < 0 {
		return min(wall, monotonic)
	}
	return max(wall, monotonic)
}

// within reports whether then is no longer ago than the limit, and not to come.
func within(now, then time.Time, limit time.Duration) bool {
	a := age(now, then)
	return !then.IsZero() && a >= 0 && a <= limit
}

// answer is what the copy says of an item. known is false if the server must be
// asked.
func (c *mirrorCopy) answer(now time.Time, cfg MirrorConfig, item string) (found, known bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.local.Exists(item) {
		return true, within(now, c.proved, cfg.MaxTrust)
	}
	return false, cfg.MaxStale > 0 && within(now, c.fresh, cfg.MaxStale)
}

// trusts reports whether the item is in the filter without doubt.
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
		c.proved, c.fresh = sent, sent
	}
	return whole
}

// meet takes note that the primary showed a birth number in answer to a
// question that was sent at the time, and reports whether local is about that
// filter. A filter of birth 0 was written by another program; nothing would
// tell it from its successor.
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

// A lesson is what a Mirror learns from a call's answers, all of them to
// questions that were sent after the time. Once a MaxTrust the primary is
// asked, for only it proves anything.
type lesson struct {
	m       *Mirror
	sent    time.Time
	primary bool
}

func (m *Mirror) lesson() *lesson {
	now := m.now()
	m.copy.mu.RLock()
	defer m.copy.mu.RUnlock()
	return &lesson{m, now, !within(now, m.copy.proved, m.cfg.MaxTrust)}
}

func (l *lesson) asksPrimary() bool { return l.primary }

// learn takes the bits of an answer into the copy, and what it says of the
// filter.
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
		// What a region lacks is lag, and what it has is true of the filter it
		// speaks of.
		if primary && c.meet(q.stands, l.sent, now) || !primary && q.stands == c.birth && c.birth != 0 {
			q.learnCells(c.local)
		}
	case primary && isGone(q.err):
		c.miss(l.sent, now, false)
	}
}

// isGone reports whether an answer of the primary says that there is no such
// filter any more.
func isGone(err error) bool { return errors.Is(err, ErrNotFound) || isForeign(err) }

// learnCells sets the cells that the answers to a look-up showed to be set.
func (q *request) learnCells(local *Local) {
	cells := q.answers[2:] // behind the header and the birth number
	if local.geo.Scheme == SchemeBlocked {
		for i, w := range q.words {
			local.learnWord(w.index, cells[i].Int64)
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
