package bloom

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/synced"
	"github.com/upbloom/upbloom/upstash"
)

// A refresh brings into the copy all bits that were in the filter when it began.
//
// A script returns the birth number and the number of set bits, atomically. Bits
// are never cleared, so the copy is a subset of the filter: equal counts mean equal
// bits, and the refresh is done. This supposes that the database has lost no
// acknowledged write, so it counts for MaxCopy alone.
//
// If the counts differ, the string is read in parts, into a new copy. Each part is
// a script too: scripts run on the primary, where a plain GETRANGE might be
// answered by a region behind it. It checks the birth number in the same step, so
// a part holds all bits that were there when the refresh began. A filter can be
// mirrored while others write to it all the time.

// mirrorCountScript counts from byte ARGV[4], the first with a cell, to byte
// ARGV[2] at bit ARGV[3], the last with one. It returns that last byte as well:
// some of its bits may be no cells.
var mirrorCountScript = upstash.NewScript(engine.LuaFlags + `local w = redis.call('BITFIELD_RO', KEYS[1],
  'GET', 'u53', '0', 'GET', 'u53', '64', 'GET', 'u8', ARGV[3])
if w[1] ~= tonumber(ARGV[1]) then return {w[1]} end
return {w[1], w[2], redis.call('BITCOUNT', KEYS[1], ARGV[4], ARGV[2]), w[3]}`)

const (
	mirrorPartBytes = 2 << 20
	mirrorParallel  = 4

	// refreshPause is how long, at most, calls try no other refresh after a
	// failed one.
	refreshPause = time.Second
)

var errNoBirth = fmt.Errorf("%w with a birth number, which a Mirror needs: the filter was written"+
	" by another program; an Add of this package gives it one", ErrNotFilter)

// Refresh brings the copy up to date: it then has all items whose Add was
// acknowledged before the call. A ticker that calls it ahead of MaxStale spares
// others the wait. A missing filter is [ErrNotFound], unless
// [Config.MissingIsEmpty] is set. After [ErrRecreated], call again.
func (m *Mirror) Refresh(ctx context.Context) (err error) {
	defer fault.OnlyReads(&err)
	for waited := false; ; waited = true {
		under, mine := m.gate.begin()
		if mine {
			return m.refreshNow(ctx, under)
		}
		if err := under.wait(ctx); err != nil {
			return err
		}
		if waited && !under.gaveUp { // else it may have begun before this call
			return under.err
		}
	}
}

// refreshIfStale refreshes the copy if it may not answer the call, or waits for
// the goroutine that does so. It reports whether the copy may answer then. It
// does nothing if a refresh failed a moment ago.
func (m *Mirror) refreshIfStale(ctx context.Context, call *mirrorCall) bool {
	for m.cfg.MaxStale > 0 {
		if m.copy.isFresh(call) {
			return true
		}
		if within(m.now(), m.gate.failedAt(), min(refreshPause, m.cfg.MaxStale)) {
			return false
		}
		under, mine := m.gate.begin()
		switch {
		case mine && m.copy.isFresh(call): // another call refreshed it since
			m.gate.leave(under)
			return true
		case mine:
			return m.refreshNow(ctx, under) == nil
		case under.wait(ctx) != nil:
			return false
		}
	}
	return false
}

// refreshNow makes a refresh that the caller has begun, and ends it.
func (m *Mirror) refreshNow(ctx context.Context, run *refreshRun) (err error) {
	run.gaveUp = true // if there is a panic: the others go on
	defer func() { m.gate.end(run, m.now()) }()
	for range 3 {
		if err = m.refresh(synced.Looking(ctx), run.number); err != errCameOrWent {
			break
		}
		err = ErrRecreated // it comes and goes
	}
	m.out.heard(ctx, err, m.now())
	// A caller that gave up says nothing of the server.
	run.err, run.gaveUp = err, err != nil && ctx.Err() != nil
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

// refresh makes the refresh of a number: it counts, and reads the string if the
// copy lacks bits.
func (m *Mirror) refresh(ctx context.Context, number uint64) error {
	c := &m.copy
	// All bits counted here were in the filter before the question below is
	// sent.
	c.mu.RLock()
	local, have := c.local, c.local.setBits()
	c.mu.RUnlock()
	birth, count, sent, err := m.countBits(ctx)
	if engine.NoFilterHere(err) {
		return m.refreshMissing(err, sent, number)
	}
	if err != nil {
		return err
	}
	if birth == 0 {
		err = errNoBirth
	}
	c.mu.Lock()
	if same := c.local == local && c.birth == birth; same && count < have {
		c.drop() // bits are never cleared: the filter was put back from a backup
	}
	known := c.sawFilter(birth, sent, m.now())
	whole := known && c.local == local && count == have && (c.oldest.IsZero() ||
		within(m.now(), c.oldest, m.cfg.MaxCopy))
	var next *Local
	switch {
	case whole:
		c.refreshedAt, c.refresh = sent, number
	case known:
		next = newLocal(c.local.geo)
		c.next, c.nextOldest = next, sent
	}
	c.mu.Unlock()
	switch {
	case err != nil:
		return err
	case !known:
		return ErrRecreated
	case whole:
		return nil
	}
	err = m.readParts(ctx, birth, next)
	return m.refreshed(err, next, count, sent, number)
}

// countBits asks for the birth number and the number of set cells, both of one
// moment after sent.
func (m *Mirror) countBits(ctx context.Context) (birth int64, count uint64, sent time.Time, err error) {
	call, r, geo := m.newCall(), &m.f.rec, m.f.rec.geo
	last := geo.Bytes(LayoutHeaded) - 1
	reply, err := r.Client.Do(ctx, r.Script(mirrorCountScript, nil, strconv.FormatUint(last, 10),
		strconv.FormatUint(8*last, 10), strconv.Itoa(headerBytes)).Repeatable(true).AllOrNothing())
	sent = call.sent(reply)
	answers, err := r.JudgeChecked(reply, err)
	if err != nil {
		return 0, 0, sent, err
	}
	if len(answers) != 3 {
		return 0, 0, sent, engine.WrongCount(len(answers), 3)
	}
	if birth, err = engine.FieldWord(answers[0]); err != nil {
		return 0, 0, sent, err
	}
	noCells := int64(bits.OnesCount8(uint8(answers[2].Int64) & (1<<(-geo.Bits&7) - 1)))
	if !answers[1].Valid || answers[1].Int64 < noCells {
		return 0, 0, sent, engine.ErrNegative
	}
	return birth, uint64(answers[1].Int64 - noCells), sent, nil
}

// refreshMissing ends a refresh whose question, sent at that time, found no
// filter, or another one.
func (m *Mirror) refreshMissing(err error, sent time.Time, number uint64) error {
	c := &m.copy
	c.mu.Lock()
	defer c.mu.Unlock()
	latest := c.noFilter(sent, m.now())
	switch {
	case m.f.allowMissing(err) != nil:
		return err
	case !latest:
		return errCameOrWent
	}
	c.refreshedAt, c.refresh = sent, number // an empty copy has all of an empty filter
	return nil
}

// refreshed ends a refresh after the parts were read into next. err is the error
// of that.
func (m *Mirror) refreshed(err error, next *Local, count uint64, sent time.Time, number uint64) error {
	c := &m.copy
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != next { // the copy is of another filter than the parts
		return ErrRecreated
	}
	c.next = nil
	switch {
	case engine.NoFilterHere(err), fault.Is(err, ErrRecreated):
		if c.drop(); m.f.allowMissing(err) == nil {
			return errCameOrWent
		}
		return err
	case err != nil:
		return err
	}
	if n := next.setBits(); n < count {
		return fault.Errorf("bloom: %w: %d bits in the parts of a string that has %d",
			upstash.ErrBadResponse, n, count)
	}
	c.local, c.oldest = next, c.nextOldest
	c.refreshedAt, c.refresh = sent, number
	return nil
}

// readParts reads the string into a new copy, several parts at once.
func (m *Mirror) readParts(ctx context.Context, birth int64, next *Local) error {
	read := engine.PartReader{Rec: &m.f.rec.Record, Birth: birth}.Read
	return engine.EachSpan(ctx, "the refresh of the Mirror was interrupted", mirrorParallel,
		headerBytes, next.size, mirrorPartBytes, func(ctx context.Context, from, to int) error {
			part, err := read(ctx, from, to)
			if err != nil {
				return err
			}
			c := &m.copy
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.next != next {
				return ErrRecreated
			}
			next.orBytes(from, part)
			return nil
		})
}

// A refreshGate lets one goroutine at a time refresh. The others wait for it,
// each as long as its own context lets it.
type refreshGate struct {
	begun  atomic.Uint64 // how many refreshes have begun
	mu     sync.Mutex
	under  *refreshRun // nil if there is none
	failed time.Time   // when the last refresh failed; zero if it did not
}

// A refreshRun is one refresh. Its outcome may be read when done is closed.
type refreshRun struct {
	number uint64 // counted from 1
	done   chan struct{}
	err    error
	gaveUp bool // err is not of the server: the caller did not wait for it, or ask it
}

func (r *refreshRun) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("bloom: the Mirror waited for a refresh: %w", engine.Ended(ctx))
	}
}

// begin begins a refresh, or returns the one under way, which is not mine.
func (g *refreshGate) begin() (under *refreshRun, mine bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.under != nil {
		return g.under, false
	}
	g.under = &refreshRun{number: g.begun.Add(1), done: make(chan struct{})}
	return g.under, true
}

// end ends a refresh.
func (g *refreshGate) end(over *refreshRun, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.under, g.failed = nil, (time.Time{}); over.err != nil && !over.gaveUp {
		g.failed = now
	}
	close(over.done)
}

// leave ends one in which nothing was refreshed.
func (g *refreshGate) leave(over *refreshRun) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.under, over.gaveUp = nil, true
	close(over.done)
}

func (g *refreshGate) failedAt() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed
}

// An outage is a time in which the server gives no answer.
type outage struct {
	mu    sync.Mutex
	since time.Time // when the first call got none; zero while the server answers
	tried time.Time // when a call last asked
	probe bool      // a call asks now whether the outage is over
}

// heard notes how a call ended that asked the server.
func (o *outage) heard(ctx context.Context, err error, now time.Time) {
	silent := isSilence(err)
	if silent && errors.Is(ctx.Err(), context.Canceled) {
		return // its caller gave up
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tried = now; !silent {
		o.since = time.Time{}
	} else if o.since.IsZero() {
		o.since = now
	}
}

// isSilence reports whether an error says nothing of the filter: no whole answer
// came, or one that says to come again, as that of a Redis which has just started
// and still loads its data.
func isSilence(err error) bool {
	if _, ok := fault.As[*upstash.CallError](err); ok || fault.Is(err, upstash.ErrBadResponse) {
		return true
	}
	server, ok := fault.As[*upstash.Error](err)
	return ok && (!fault.IsFinal(server) || strings.HasPrefix(server.Message, "LOADING "))
}

func (o *outage) silentSince() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since
}

// begin reports whether the caller may ask. In an outage one call at a time may,
// and not a moment after another: it is the probe, and calls end.
func (o *outage) begin(now time.Time) (mayAsk, probe bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return true, false
	}
	if o.probe || within(now, o.tried, refreshPause) {
		return false, false
	}
	o.probe = true
	return true, true
}

// end lets another call be the probe.
func (o *outage) end(probe bool) {
	if probe {
		o.mu.Lock()
		o.probe = false
		o.mu.Unlock()
	}
}

// label tells the client's observer since when the server is silent.
func (o *outage) label(ctx context.Context, c *upstash.Client) context.Context {
	since := o.silentSince()
	if since.IsZero() || !c.Observed() {
		return ctx
	}
	own := upstash.LabelOf(ctx)
	if own != "" {
		own += " "
	}
	return upstash.WithLabel(ctx, own+"stale since "+since.UTC().Format(time.RFC3339))
}
