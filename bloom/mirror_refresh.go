package bloom

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"sync"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// A refresh brings into the copy all bits that were in the filter when the
// refresh began.
//
// First one script returns the birth number and the count of set bits, both of
// one moment. The copy is a subset of the filter, so that an equal count means
// equal bits, and the refresh is done. Else the string is read in parts. Each
// part is a script too, because scripts run on the primary: a plain GETRANGE
// might be answered by a region that lags. The script checks the birth number
// in the same atomic step, so that its part holds all bits that were there when
// the refresh began. The parts need no second count, so that a filter can be
// mirrored while others write to it all the time.

// mirrorCountScript counts up to byte ARGV[2], which is the last with a cell
// and is at bit ARGV[3], and returns that byte as well: some of its bits may
// be no cells.
var mirrorCountScript = upstash.NewScript(shebang + `local w = redis.call('BITFIELD_RO', KEYS[1],
  'GET', 'u53', '0', 'GET', 'u53', '64', 'GET', 'u8', ARGV[3])
if w[1] ~= tonumber(ARGV[1]) then return {w[1]} end
return {w[1], w[2], redis.call('BITCOUNT', KEYS[1], '16', ARGV[2]), w[3]}`)

const (
	mirrorPartBytes = 2 << 20
	mirrorParallel  = 4

	// refreshPause is the longest time after a failed refresh during which
	// calls try no other.
	refreshPause = time.Second
)

var errNoBirth = fmt.Errorf("%w with a birth number, which a Mirror needs: the filter was written"+
	" by another program; an Add of this package gives it one", ErrNotFilter)

// Refresh brings the copy up to date: afterwards all items are in it whose Add
// was acknowledged before the call. It costs three commands if nothing changed,
// else three more for each 2 MiB of the string, and its bytes. If MaxStale is
// set, the other calls refresh the copy by themselves.
//
// A missing filter is ErrNotFound, unless Config.MissingIsEmpty says that it is
// an empty one. ErrRecreated means that the filter was made anew meanwhile:
// call again. After an error the copy is trusted no more than before.
func (m *Mirror) Refresh(ctx context.Context) error {
	for {
		began, mine := m.turn.begin()
		if mine {
			return m.refreshNow(ctx)
		}
		if err := began.wait(ctx); err != nil {
			return err
		}
	}
}

// refreshIfStale refreshes a copy that is older than MaxStale, or waits for
// another goroutine that does, and reports whether the copy is fresh then. It
// does nothing if a refresh failed a moment ago.
func (m *Mirror) refreshIfStale(ctx context.Context) bool {
	for m.cfg.MaxStale > 0 {
		m.copy.mu.RLock()
		fresh := m.copy.fresh
		m.copy.mu.RUnlock()
		now := m.now()
		if within(now, fresh, m.cfg.MaxStale) {
			return true
		}
		if within(now, m.turn.failedAt(), min(refreshPause, m.cfg.MaxStale)) {
			return false
		}
		began, mine := m.turn.begin()
		if mine {
			return m.refreshNow(ctx) == nil
		}
		if began.wait(ctx) != nil {
			return false
		}
	}
	return false
}

// refreshNow makes one refresh and ends the turn, which the caller has taken.
func (m *Mirror) refreshNow(ctx context.Context) (err error) {
	var failed time.Time
	defer func() { m.turn.end(failed) }() // after a panic too, so that the others go on
	if err = m.refresh(ctx); err == nil {
		m.refreshes.Add(1)
		return nil
	}
	m.failures.Add(1)
	if ctx.Err() == nil { // a caller that gave up says nothing of the server
		failed = m.now()
	}
	return err
}

func (m *Mirror) refresh(ctx context.Context) error {
	c := &m.copy
	// All bits that are counted here were in the filter before the question
	// below is sent.
	c.mu.RLock()
	begun, have := c.begun, c.local.setBits()
	c.mu.RUnlock()
	sent := m.now()
	last := c.local.size - 1
	r := &m.f.rec
	answers, _, err := r.order(ctx, r.script(mirrorCountScript, nil,
		strconv.Itoa(last), strconv.FormatUint(8*uint64(last), 10)).Repeatable(true))
	if err == nil && len(answers) != 3 {
		err = wrongCount(len(answers), 3)
	}
	if isGone(err) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.miss(sent, m.now(), m.f.missing(err) == nil) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	birth, err := fieldWord(answers[0])
	if err != nil {
		return err
	}
	noCells := int64(bits.OnesCount8(uint8(answers[2].Int64) & (1<<(-c.local.geo.Bits&7) - 1)))
	if !answers[1].Valid || answers[1].Int64 < noCells {
		return errNegative
	}
	count := uint64(answers[1].Int64 - noCells)

	c.mu.Lock()
	if same := c.begun == begun && c.birth == birth; same && count < have {
		c.drop() // bits are never cleared: the filter was put back from a backup
	}
	known := c.meet(birth, sent, m.now())
	whole := c.begun == begun && count == have
	if begun = c.begun; known && whole {
		c.fresh = sent
	}
	c.mu.Unlock()
	switch {
	case birth == 0:
		return errNoBirth
	case !known:
		return ErrRecreated
	case whole:
		return nil
	}
	err = m.readParts(ctx, birth, begun)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.begun != begun: // the copy is of another filter than the parts
		return ErrRecreated
	case isGone(err), errors.Is(err, ErrRecreated):
		c.drop()
		return err
	case err != nil:
		return err
	}
	if n := c.local.setBits(); n < count {
		return fmt.Errorf("bloom: %w: %d bits in the parts of a string that has %d",
			upstash.ErrBadResponse, n, count)
	}
	c.fresh = sent
	return nil
}

// readParts reads the string into the copy, several parts at once.
func (m *Mirror) readParts(ctx context.Context, birth int64, begun uint64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, mirrorParallel)
	var parts sync.WaitGroup
	for from := headerBytes; from < m.copy.local.size && ctx.Err() == nil; from += mirrorPartBytes {
		slots <- struct{}{}
		parts.Go(func() {
			defer func() { <-slots }()
			if err := m.readPart(ctx, from, birth, begun); err != nil {
				cancel(err)
			}
		})
	}
	parts.Wait()
	return context.Cause(ctx)
}

func (m *Mirror) readPart(ctx context.Context, from int, birth int64, begun uint64) error {
	part, err := partReader{rec: &m.f.rec, birth: birth}.read(ctx, from, from+mirrorPartBytes)
	if err != nil {
		return err
	}
	c := &m.copy
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun != begun {
		return ErrRecreated
	}
	c.local.orBytes(from, part)
	return nil
}

// A refreshTurn lets one goroutine at a time refresh. The others wait for it,
// each as long as its own context lets it.
type refreshTurn struct {
	mu     sync.Mutex
	under  turn      // of the goroutine that refreshes; nil if none does
	failed time.Time // when the last refresh failed; zero if it did not
}

// A turn is a channel that is closed when its refresh is over.
type turn chan struct{}

func (t turn) wait(ctx context.Context) error {
	select {
	case <-t:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin takes the turn, or returns the turn of the goroutine that has it.
func (t *refreshTurn) begin() (under turn, mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.under != nil {
		return t.under, false
	}
	t.under = make(turn)
	return t.under, true
}

// end ends the turn. failed is when the refresh failed, or zero.
func (t *refreshTurn) end(failed time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.under)
	t.under, t.failed = nil, failed
}

func (t *refreshTurn) failedAt() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}
