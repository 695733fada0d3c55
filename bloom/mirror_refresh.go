package bloom

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/synced"
	"github.com/upbloom/upbloom/upstash"
)

// A refresh brings into the copy all bits that were in the filter when it began.
//
// A script returns the birth number and the number of set bits, atomically. Bits
// are never cleared, so the copy is a subset of the filter: equal counts mean equal
// bits, and the refresh is done. This supposes that the database has lost no
// acknowledged write, so rule 6 ends it.
//
// If the counts differ, the string is read in parts, into a new copy. Each part is
// a script too: scripts run on the primary, where a plain GETRANGE might be
// answered by a region behind it. It checks the birth number in the same step, so
// a part holds all bits that were there when the refresh began. A filter can be
// mirrored while others write to it all the time.

// mirrorCountScript counts from byte ARGV[4], the first with a cell, to byte
// ARGV[2] at bit ARGV[3], the last with one. It returns that last byte as well:
// some of its bits may be no cells.
var mirrorCountScript = upstash.NewScript(engine.LuaFlags + `local w = redis.call('BITFIELD_RO', KEYS[1], ` +
	engine.LuaWords + `, 'GET', 'u8', ARGV[3])
if w[1] ~= tonumber(ARGV[1]) then return {w[1]} end
w[6] = redis.call('BITCOUNT', KEYS[1], ARGV[4], ARGV[2])
return w`)

const (
	mirrorPartBytes = 2 << 20
	mirrorParallel  = 4

	// refreshPause is how long, at most, calls try no other refresh after a
	// failed one, and how long nobody asks in an outage after one that did.
	refreshPause = time.Second
)

var errNoBirth = fmt.Errorf("%w with a birth number, which a Mirror needs: the filter was written"+
	" by another program; an Add of this package gives it one", ErrNotFilter)

// Refresh brings the copy up to date: it then has all items whose Add was
// acknowledged before the call. A ticker that calls it ahead of MaxStale spares
// others the wait.
func (m *Mirror) Refresh(ctx context.Context) (err error) {
	defer fault.OnlyReads(&err)
	for waited := false; ; waited = true {
		run, mine := m.fresh.begin()
		if mine {
			return m.refreshNow(ctx, run)
		}
		if err := run.wait(ctx); err != nil {
			return err
		}
		if waited && !run.gaveUp { // else it may have begun before this call
			return run.err
		}
	}
}

// refreshFor makes the refresh that a call wants, or waits for the one under way:
// 10c. silent reports that the refresh got no answer, again that it was given up,
// or was too early for the call.
func (m *Mirror) refreshFor(ctx context.Context, k *mirrorCall) (silent, again bool) {
	pause := min(refreshPause, m.cfg.MaxStale)
	if pause == 0 || within(m.now(), m.fresh.failedAt(), pause) {
		return false, false
	}
	run, mine := m.fresh.begin()
	switch {
	case mine && k.inTime(): // another call has refreshed it since
		m.fresh.end(run, m.now())
		return false, false
	case mine:
		err := m.refreshNow(ctx, run)
		return noAnswer(ctx, err), false
	case run.wait(ctx) != nil:
		return false, false
	}
	return run.silent, run.gaveUp || run.err == nil
}

// refreshNow makes a refresh that the caller has begun, and ends it.
func (m *Mirror) refreshNow(ctx context.Context, run *turn) (err error) {
	run.gaveUp = true // if there is a panic: the others go on
	defer func() { m.fresh.end(run, m.now()) }()
	for range 3 {
		if err = m.refresh(synced.Looking(ctx)); err != errCameOrWent {
			break
		}
		err = ErrRecreated // it comes and goes
	}
	run.err, run.gaveUp = err, err != nil && ctx.Err() != nil
	run.silent = !run.gaveUp && noAnswer(ctx, err)
	if err == nil {
		m.refreshes.Add(1)
	} else {
		m.failures.Add(1)
	}
	return err
}

// errCameOrWent is returned by refresh if a missing filter counts as an empty
// one, and the filter was made or deleted meanwhile, as far as is known.
var errCameOrWent = errors.New("bloom: the filter was made or deleted during the refresh")

// refresh counts, and reads the string if the copy lacks bits.
func (m *Mirror) refresh(ctx context.Context) error {
	c, q := &m.copy, m.question()
	c.mu.RLock()
	bits, have := c.bits, c.bits.setBits() // all of them were there before the question is sent
	c.mu.RUnlock()
	n, count := m.countBits(ctx, q)
	var next *copied
	whole := false
	q.learn(ctx, n, func(before *copied) {
		if c.bits != before { // this answer has dropped them
			have = 0
		}
		oldest := c.bits.oldest
		switch {
		case m.f.allowMissing(n.err) != nil || c.birth == 0: // the answer crossed another
		case before == bits && count == have && (oldest.IsZero() || within(m.now(), oldest, c.full)): // 3, 6
			whole, c.refreshedAt = true, n.sent
		case n.err == nil:
			next = &copied{newLocal(c.bits.geo), n.sent}
			c.next = next
		}
	})
	switch {
	case m.f.allowMissing(n.err) != nil:
		return n.err
	case whole:
		return nil
	case next == nil:
		return errCameOrWent
	}
	return m.download(ctx, n, count, next)
}

// download reads the string into a new copy, which then takes the place of the
// other.
func (m *Mirror) download(ctx context.Context, n news, count uint64, next *copied) error {
	c := &m.copy
	defer c.abandon(next) // a callback of the client may panic
	err := m.readParts(ctx, n.birth, next)
	c.mu.Lock()
	defer c.mu.Unlock()
	mine := c.next == next // or the copy is of another filter than the parts
	switch {
	case engine.NoFilterHere(err) && m.f.allowMissing(err) == nil:
		return errCameOrWent
	case err != nil:
		return err
	case !mine:
		return ErrRecreated
	}
	if n := next.setBits(); n < count {
		return fault.Errorf("bloom: %w: %d bits in the parts of a string that has %d",
			upstash.ErrBadResponse, n, count)
	}
	c.bits, c.next, c.refreshedAt = next, nil, n.sent
	return nil
}

// abandon ends the download into next, if it is still under way.
func (c *mirrorCopy) abandon(next *copied) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == next {
		c.next = nil
	}
}

// countBits asks for the birth number and the number of set cells, both of one
// moment.
func (m *Mirror) countBits(ctx context.Context, q *question) (n news, count uint64) {
	r, geo := &m.f.rec, m.f.rec.geo
	last := geo.Bytes(LayoutHeaded) - 1
	reply, err := r.Client.Do(ctx, r.Script(mirrorCountScript, nil, strconv.FormatUint(last, 10),
		strconv.FormatUint(8*last, 10), strconv.Itoa(format.HeaderBytes)).Repeatable(true).AllOrNothing())
	n.sent = q.sent(reply)
	a := r.JudgeScript(reply, err)
	counted, err := a.Numbers(2)
	if err != nil {
		n.err = err
		return n, 0
	}
	n.birth = a.Birth
	noCells := int64(bits.OnesCount8(uint8(counted[0]) & (1<<(-geo.Bits&7) - 1)))
	if counted[1] < noCells {
		n.err = engine.ErrNegative
	} else if n.birth == 0 {
		n.err = errNoBirth
	}
	return n, uint64(counted[1] - noCells)
}

// readParts reads the string of a birth number into a new copy, several parts at
// once.
func (m *Mirror) readParts(ctx context.Context, birth int64, next *copied) error {
	read := engine.PartReader{Rec: &m.f.rec.Record, Birth: birth}.Read
	return engine.EachSpan(ctx, "the refresh of the Mirror was interrupted", mirrorParallel,
		format.HeaderBytes, next.size, mirrorPartBytes, func(ctx context.Context, from, to int) error {
			q := m.question()
			part, err := read(ctx, from, to)
			q.learn(ctx, news{sent: q.asked, birth: birth, err: err}, func(*copied) {
				if err == nil && m.copy.next == next {
					next.orBytes(from, part)
				}
			})
			return err
		})
}

// A gate lets one call at a time do something for all. The others wait for it,
// each as long as its own context lets it.
type gate struct {
	mu     sync.Mutex
	under  *turn     // nil if there is none
	failed time.Time // when the last turn failed; zero if it did not
}

// A turn is what one call does. How it ended may be read when done is closed.
type turn struct {
	done   chan struct{}
	err    error
	silent bool // the server gave no answer
	gaveUp bool // err is not of the server: the caller did not wait for it, or ask it
}

func (t *turn) wait(ctx context.Context) error {
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		return fault.Errorf("bloom: the Mirror waited for a refresh: %w", engine.Ended(ctx))
	}
}

// begin begins a turn, or returns the one under way, which is not mine.
func (g *gate) begin() (under *turn, mine bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.under != nil {
		return g.under, false
	}
	g.under = &turn{done: make(chan struct{})}
	return g.under, true
}

// end ends a turn.
func (g *gate) end(over *turn, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.under, g.failed = nil, time.Time{}
	if over.err != nil && !over.gaveUp {
		g.failed = now
	}
	close(over.done)
}

func (g *gate) failedAt() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed
}
