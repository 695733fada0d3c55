package bloom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

// A Mirror is a copy of a filter in the memory of a warm process. It answers
// most calls without a request. Make it with [NewMirror], once a process. It is
// safe for concurrent use, must not be copied, and leaves no goroutine behind.
//
// An item in the copy is a "yes". By default the server is asked about any
// other item, so a "no" is that of [Filter.Exists]. With
// [MirrorConfig.MaxStale] the copy says "no" as well.
//
// A copy that is too old is refreshed first, once for all callers, who wait. If
// that fails, calls ask the server until the next try, a second later at most.
// COSTS.md says when MaxStale does not pay.
//
// If the filter is deleted, evicted or replaced, the Mirror drops its copy at
// the server's next answer. Until then, for MaxTrust at most, it finds the old
// items, and an Add of one returns "seen" and is not sent. [Mirror.AddThrough]
// always asks.
//
// An age counts from when the answered attempt was sent, by the wall clock and
// the monotonic one: a process that was frozen notices it. In a test, start the
// server, and then sleep in a bubble of testing/synctest.
type Mirror struct {
	f    *Filter
	cfg  MirrorConfig
	copy mirrorCopy
	gate refreshGate // one refresh at a time
	ask  refreshGate // one call asks whether the filter is still the copied one
	out  outage

	now  func() time.Time                // time.Now, except in tests
	sent func(r upstash.Reply) time.Time // upstash.Reply.Sent, except in tests

	hits, asked, saved, refreshes, failures atomic.Uint64
}

// A MirrorConfig says how far a [Mirror] trusts its copy. With the zero value
// its "yes" counts for a minute, and each "no" is the server's.
type MirrorConfig struct {
	_ struct{}

	// MaxTrust is how long a "yes" needs no request after the primary's last
	// answer, which proves that the filter is still the copied one; the
	// default, for 0, is a minute.
	MaxTrust time.Duration

	// MaxStale lets the copy answer "no" as well: an item whose Add was
	// acknowledged longer ago than this is found, a later one may be missed.
	// The default, 0, asks the server about each item not in the copy.
	MaxStale time.Duration

	// MaxCopy is how long the copy counts after its last full download, at
	// least MaxStale; the default, for 0, is an hour. Only a full download
	// notices that the database lost acknowledged writes, or that a COPY or
	// RESTORE replaced the string.
	MaxCopy time.Duration

	// StaleIfError lets the Mirror outlive an outage: if a refresh or a look-up
	// gets no answer, the copy answers for so long beyond MaxTrust, MaxStale
	// and MaxCopy. The default, 0, returns the error. Any answer ends it. One
	// call at a time asks again, at most one a second. It waits, as do all
	// calls until the first has failed, for the client's WithTimeout and
	// WithRetry or the context; the others do not. After its end every call
	// waits so, some for another call too.
	StaleIfError time.Duration

	// MaxBytes is the length of the longest string [NewMirror] accepts, in
	// bytes; the default, for 0, is 64 MiB.
	MaxBytes int
}

const (
	defaultMaxTrust    = time.Minute
	defaultMaxCopy     = time.Hour
	defaultMirrorBytes = 64 << 20
)

// NewMirror makes an empty mirror of a filter and sends nothing. It allocates
// [Geometry.Bytes]. A Bare filter is a [*ConfigError], a read-only client
// [upstash.ErrReadOnly].
func NewMirror(f *Filter, cfg MirrorConfig) (*Mirror, error) {
	if f == nil {
		return nil, errors.New("bloom: the Filter is nil: make one with New or Open")
	}
	if cfg.MaxTrust == 0 {
		cfg.MaxTrust = defaultMaxTrust
	}
	if cfg.MaxCopy == 0 {
		cfg.MaxCopy = max(defaultMaxCopy, cfg.MaxStale)
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = defaultMirrorBytes
	}
	if err := cfg.check(&f.rec); err != nil {
		return nil, err
	}
	m := &Mirror{f: f, cfg: cfg, now: time.Now, sent: upstash.Reply.Sent}
	m.copy.local = newLocal(f.rec.geo)
	return m, nil
}

func (c MirrorConfig) check(r *record) error {
	wrong := func(field, format string, args ...any) error {
		return &ConfigError{Field: field, Reason: fmt.Sprintf(format, args...), of: "MirrorConfig"}
	}
	size := r.geo.Bytes(LayoutHeaded)
	switch {
	case c.MaxTrust < 0:
		return wrong("MaxTrust", "is %v: use 0 for the default of a minute, or more", c.MaxTrust)
	case c.MaxStale < 0:
		return wrong("MaxStale", "is %v: use 0 to have the server say every no, or more", c.MaxStale)
	case c.MaxCopy < c.MaxStale:
		return wrong("MaxCopy", "is %v, below MaxStale: use 0 for the default of an hour, or at least %v",
			c.MaxCopy, c.MaxStale)
	case c.StaleIfError < 0:
		return wrong("StaleIfError", "is %v: use 0 to have each failure returned, or more", c.StaleIfError)
	case c.MaxBytes < 0:
		return wrong("MaxBytes", "is %d: use 0 for the default of 64 MiB, or more", c.MaxBytes)
	case size > uint64(c.MaxBytes):
		return wrong("MaxBytes", "is %s (%d), and the filter has %s (%d): raise it, or make the"+
			" filter smaller", human.Bytes(uint64(c.MaxBytes)), c.MaxBytes, human.Bytes(size), size)
	case !r.Headed():
		return configErrorf("Layout", "is bare, which has no header to tell the filter by:"+
			" a Mirror needs LayoutHeaded")
	case r.Client.ReadOnly():
		return fault.Errorf("bloom: %w: a Mirror asks the primary, which takes a token that may run"+
			" BITFIELD and EVAL", upstash.ErrReadOnly)
	}
	return nil
}

// Exists reports whether the item is in the filter. The copy answers if it may,
// else the server, as [Filter.Exists] does.
func (m *Mirror) Exists(ctx context.Context, item string) (bool, error) {
	call := m.newCall()
	if found, known := m.copy.answer(&call, item, m.cfg.limits(0)); known {
		m.count(1, 0, true)
		return found, nil
	}
	return m.existsSlowly(ctx, call, item) // apart, so that the line above allocates nothing
}

func (m *Mirror) existsSlowly(ctx context.Context, call mirrorCall, item string) (bool, error) {
	found, err := m.lookUp(ctx, &call, []string{item}, func(ctx context.Context, _ []string) ([]bool, error) {
		found, err := m.f.exists(ctx, item, call.asks())
		return []bool{found}, err
	})
	return found[0], err
}

// ExistsAll is [Mirror.Exists] for many items. It asks the server about those
// that the copy cannot answer. A [*BatchError] speaks of all items.
func (m *Mirror) ExistsAll(ctx context.Context, items []string) ([]bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	call := m.newCall()
	return m.lookUp(ctx, &call, items, func(ctx context.Context, left []string) ([]bool, error) {
		return m.f.existsAll(ctx, left, call.asks())
	})
}

// lookUp answers from the copy, after a refresh if need be, and asks the server
// about the items that the copy leaves open.
func (m *Mirror) lookUp(ctx context.Context, call *mirrorCall, items []string,
	ask func(ctx context.Context, left []string) ([]bool, error),
) ([]bool, error) {
	found, open := m.answers(call, items, m.cfg.limits(0))
	stale := func() bool { // in an outage the copy may answer all the same
		if m.out.silentSince().IsZero() {
			return false
		}
		later := *call
		later.began = m.now() // what was asked in vain took its time
		late, unknown := m.answers(&later, items, m.cfg.limits(m.cfg.StaleIfError))
		if len(unknown) > 0 {
			return false
		}
		found, open = late, nil
		return true
	}
	saved := len(open) == 0
	if !saved {
		mayAsk, probe := m.out.begin(m.now())
		defer m.out.end(probe)
		saved = !mayAsk && stale()
	}
	if !saved {
		ctx = m.out.label(ctx, m.f.rec.Client)
		if m.refreshIfStale(ctx, call) {
			found, open = m.answers(call, items, m.cfg.limits(0))
		} else {
			stale()
		}
	}
	if len(open) > 0 {
		again, leave := m.awaitProof(ctx, items)
		defer leave()
		if again {
			found, open = m.answers(call, items, m.cfg.limits(0))
			if len(open) > 0 {
				stale()
			}
		}
	}
	m.count(len(items)-len(open), len(open), saved)
	found, err := m.rest(items, found, open, func(left []string) ([]bool, error) {
		got, err := ask(ctx, left)
		m.out.heard(ctx, err, m.now())
		return got, err
	})
	if err != nil {
		answered := found
		if stale() {
			return found, nil
		}
		return answered, err
	}
	return found, nil
}

// awaitProof lets one call at a time ask about items of the copy: its answer
// proves for all which filter is at the key. It reports whether another call may
// have asked meanwhile: then look again. The caller asks, if it still must, and
// then calls leave.
func (m *Mirror) awaitProof(ctx context.Context, items []string) (again bool, leave func()) {
	nothing := func() {}
	if !m.copy.has(items) {
		return false, nothing
	}
	under, mine := m.ask.begin()
	if mine {
		return true, func() { m.ask.leave(under) } // the one before may have left just now
	}
	return under.wait(ctx) == nil, nothing
}

// Add is [Filter.Add], except for an item in the copy within MaxTrust: then it
// sends nothing and returns false.
func (m *Mirror) Add(ctx context.Context, item string) (added bool, err error) {
	call := m.newCall()
	if m.copy.trusts(&call, item) {
		m.count(1, 0, true)
		return false, nil
	}
	again, leave := m.awaitProof(ctx, []string{item})
	defer leave()
	if again && m.copy.trusts(&call, item) {
		m.count(1, 0, false)
		return false, nil
	}
	return m.AddThrough(ctx, item)
}

// AddThrough is [Filter.Add], and brings the item into the copy. It always asks
// the server.
func (m *Mirror) AddThrough(ctx context.Context, item string) (added bool, err error) {
	m.count(0, 1, false)
	return m.f.write(ctx, item, m.newCall().asks())
}

// AddAll is [Mirror.Add] for many items. A [*BatchError] speaks of all items.
func (m *Mirror) AddAll(ctx context.Context, items []string) ([]bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	call := m.newCall()
	open := m.untrusted(&call, items)
	saved := len(open) == 0
	if !saved {
		again, leave := m.awaitProof(ctx, items)
		defer leave()
		if again {
			open = m.untrusted(&call, items)
		}
	}
	m.count(len(items)-len(open), len(open), saved)
	return m.rest(items, make([]bool, len(items)), open, func(left []string) ([]bool, error) {
		return m.f.writeAll(ctx, left, call.asks())
	})
}

// untrusted returns the places of the items that have to be sent.
func (m *Mirror) untrusted(call *mirrorCall, items []string) (open []int) {
	for i, item := range items {
		if !m.copy.trusts(call, item) {
			open = append(open, i)
		}
	}
	return open
}

// rest asks the server about the items whose places are open. It puts the
// answers at these places, and makes a BatchError speak of all items.
func (m *Mirror) rest(items []string, answers []bool, open []int,
	ask func(left []string) ([]bool, error),
) ([]bool, error) {
	if len(open) == 0 {
		return answers, nil
	}
	left := make([]string, len(open))
	for n, i := range open {
		left[n] = items[i]
	}
	got, err := ask(left)
	for n := range got {
		answers[open[n]] = got[n]
	}
	batch, ok := fault.As[*BatchError](err)
	if !ok {
		return answers, err
	}
	states := make([]ItemState, len(items))
	for i := range states {
		states[i] = ItemDone
	}
	for n, s := range batch.Items {
		states[open[n]] = s
	}
	return answers, &BatchError{Items: states, Err: batch.Err, reads: batch.reads}
}

// answers returns what the copy says of each item. open are the places of the
// items about which the server must be asked.
func (m *Mirror) answers(call *mirrorCall, items []string, most limits) (found []bool, open []int) {
	found = make([]bool, len(items))
	for i, item := range items {
		var known bool
		if found[i], known = m.copy.answer(call, item, most); !known {
			open = append(open, i)
		}
	}
	return found, open
}

// MirrorStats says what a [Mirror] did and what it holds.
type MirrorStats struct {
	// Hits is how many items the copy answered, Asked how many went to the
	// server.
	Hits, Asked uint64
	// Saved is how many calls needed no request: the copy answered, and no
	// refresh was waited for.
	Saved uint64
	// Refreshes is how many refreshes succeeded, Failures how many did not.
	Refreshes, Failures uint64
	// Copied is true if a refresh has brought the whole filter into the copy,
	// or found none with [Config.MissingIsEmpty]. Age is the time since that
	// began; below 0, the clock was set back.
	Copied bool
	Age    time.Duration
	// StaleSince is when the server first gave no answer, zero while it
	// answers.
	StaleSince time.Time
	// Bytes is the memory of the copy, in bytes. SetBits is how many of its
	// cells are set.
	Bytes, SetBits uint64
}

// String returns four lines of text.
func (s MirrorStats) String() string {
	state := "not filled yet"
	if s.Copied {
		state = s.Age.Round(time.Millisecond).String() + " old"
	}
	if !s.StaleSince.IsZero() {
		state += ", the server is silent since " + s.StaleSince.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("items            %s answered by the copy, %s by the server\n"+
		"calls            %s without a request\n"+
		"refreshes        %s, and %s failed\n"+
		"copy             %s bytes, %s bits set, %s",
		human.Count(s.Hits), human.Count(s.Asked), human.Count(s.Saved), human.Count(s.Refreshes),
		human.Count(s.Failures), human.Count(s.Bytes), human.Count(s.SetBits), state)
}

// Stats returns what the mirror did, without a request, in about 0.1 ms a
// megabyte of the copy.
func (m *Mirror) Stats() MirrorStats {
	s := MirrorStats{
		Hits: m.hits.Load(), Asked: m.asked.Load(), Saved: m.saved.Load(),
		Refreshes: m.refreshes.Load(), Failures: m.failures.Load(),
		StaleSince: m.out.silentSince(),
	}
	c := &m.copy
	c.mu.RLock()
	defer c.mu.RUnlock()
	s.Bytes, s.SetBits = uint64(len(c.local.buf)), c.local.setBits()
	if s.Copied = !c.refreshedAt.IsZero(); s.Copied {
		s.Age = age(m.now(), c.refreshedAt)
	}
	return s
}

func (m *Mirror) count(hits, asked int, saved bool) {
	if hits > 0 {
		m.hits.Add(uint64(hits))
	}
	if asked > 0 {
		m.asked.Add(uint64(asked))
	}
	if saved {
		m.saved.Add(1)
	}
}

// String describes the mirror without its key and seed.
func (m *Mirror) String() string { return "bloom.Mirror(" + m.f.rec.geo.String() + ")" }

// Format is String for every verb.
func (m *Mirror) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, m.String()) }

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

// WantsPrimary reports whether no region may answer.
func (call *mirrorCall) WantsPrimary() bool { return call.primary }

// asks returns the call of requests that it observes. The primary must answer
// them if the last verification is too old, or if a "no" has to be as new as
// MaxStale says.
func (call mirrorCall) asks() engine.Call {
	cfg, c := &call.m.cfg, &call.m.copy
	c.mu.RLock()
	defer c.mu.RUnlock()
	call.primary = cfg.MaxStale > 0 || !within(call.m.now(), c.verifiedAt, cfg.MaxTrust)
	return engine.Call{Observer: &call}
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
