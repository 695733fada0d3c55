package bloom

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// A refresh brings the copy up to a moment that is not before its own start.
//
// If nothing changed, one script shows it: it returns the birth number and the
// count of set bits at one moment. The copy is a subset of the filter, so that
// an equal count means equal bits. Else the string is read in parts, by scripts
// too, because the primary runs them: each part is checked for the birth number
// in its own atomic step, holds all bits that were there at the start of the
// refresh, and is added to the copy. A plain GETRANGE might be answered by a
// region that lags; and as parts of the primary need no second count to be
// believed, a filter that others write to all the time is mirrored as well.

const (
	mirrorCountScript = ours + `return {w[1], w[3], redis.call('BITCOUNT', KEYS[1], '16', '-1')}`
	mirrorPartScript  = ours + `return {w[1], w[3], redis.call('GETRANGE', KEYS[1], ARGV[2], ARGV[3])}`

	mirrorPartBytes = 2 << 20
	mirrorParallel  = 4

	// refreshPause is the longest time after a failed refresh in which none is
	// tried.
	refreshPause = time.Second
)

var errNoBirth = fmt.Errorf("%w with a birth number, which a Mirror needs: the filter was written"+
	" by another program; an Add of this package gives it one", ErrNotFilter)

// Refresh brings the copy up to date: all items whose Add was acknowledged
// before the call are in it. It costs three commands if nothing changed, else
// three more for each 2 MiB of the string and its bytes. If MaxStale is set,
// calls do it by themselves. After an error the copy is trusted no more than
// before.
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

// refreshIfStale reports whether a refresh was made since the call, by this
// goroutine or another. It does nothing if the copy is fresh enough or a
// refresh failed a moment ago.
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

// refreshNow is one refresh. The turn is the caller's.
func (m *Mirror) refreshNow(ctx context.Context) (err error) {
	var failed time.Time
	defer func() { m.turn.end(failed) }() // a panic too lets the others go on
	if err = m.refresh(ctx); err == nil {
		m.refreshes.Add(1)
		return nil
	}
	m.failures.Add(1)
	if ctx.Err() == nil { // else it says nothing of the server
		failed = m.now()
	}
	return err
}

func (m *Mirror) refresh(ctx context.Context) error {
	c := &m.copy
	// What is counted here was in the filter before the question below is sent.
	c.mu.RLock()
	begun, have := c.begun, c.local.setBits()
	c.mu.RUnlock()
	sent := m.now()
	answers, _, err := m.f.rec.evalInts(ctx, true, mirrorCountScript, nil)
	if err == nil && len(answers) != 2 {
		err = wrongCount(len(answers), 2)
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
	if !answers[1].Valid || answers[1].Int64 < 0 {
		return errNegative
	}
	count := uint64(answers[1].Int64)

	c.mu.Lock()
	if same := c.begun == begun && c.birth == birth; same && count < have {
		c.drop() // bits only ever get set: it was put back from a backup
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
	part, stands, err := m.f.rec.bytesAt(ctx, from, mirrorPartBytes)
	if err != nil {
		return err
	}
	if stands != birth {
		return ErrRecreated
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

// bytesAt reads n bytes of the string, or fewer at its end, and the birth
// number: as RESP2, and as base64 from a server that does not send that.
func (r *record) bytesAt(ctx context.Context, from, n int) (part []byte, birth int64, err error) {
	script := func() upstash.Command {
		return r.script(mirrorPartScript, nil, strconv.Itoa(from), strconv.Itoa(from+n-1)).
			Repeatable(true).Binary()
	}
	reply, err := r.run(ctx, script)
	if part, birth, err = r.judgePart(reply, err, n); err == nil || noAnswer(err) || isGone(err) {
		return part, birth, err
	}
	replies, again := r.client.Pipeline(ctx, script())
	if again != nil {
		return nil, 0, err
	}
	return r.judgePart(replies[0], replies[0].Err(), n)
}

func (r *record) judgePart(reply upstash.Reply, err error, n int) (part []byte, birth int64, _ error) {
	if err != nil {
		return nil, 0, r.failed(err)
	}
	answers, err := reply.Array()
	if err != nil {
		return nil, 0, r.failed(err)
	}
	if len(answers) == 0 {
		return nil, 0, wrongCount(0, 3)
	}
	word, err := replyWord(answers[0])
	if err == nil {
		err = r.learn(word)
	}
	if err == nil && len(answers) != 3 {
		err = wrongCount(len(answers), 3)
	}
	if err != nil {
		return nil, 0, err
	}
	if birth, err = replyWord(answers[1]); err != nil {
		return nil, 0, err
	}
	if part, err = answers[2].Bytes(); err == nil && len(part) > n {
		err = fmt.Errorf("bloom: %w: more bytes than were asked for", upstash.ErrBadResponse)
	}
	return part, birth, err
}

// replyWord is fieldWord of a reply by itself.
func replyWord(reply upstash.Reply) (int64, error) {
	n, err := reply.Int64()
	if err != nil {
		return 0, err
	}
	return fieldWord(upstash.NullInt64{Int64: n, Valid: true})
}

// A refreshTurn lets one goroutine at a time refresh. The others wait for it,
// each as long as its own context lets it.
type refreshTurn struct {
	mu     sync.Mutex
	under  turn // nil: nobody refreshes
	failed time.Time
}

// A turn is closed when its refresh is over.
type turn chan struct{}

func (t turn) wait(ctx context.Context) error {
	select {
	case <-t:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin takes the turn, or returns that of who has it.
func (t *refreshTurn) begin() (under turn, mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.under != nil {
		return t.under, false
	}
	t.under = make(turn)
	return t.under, true
}

// end lets the next one begin. failed is when the refresh failed, or zero.
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
