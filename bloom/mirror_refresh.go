package bloom

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
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
// A script returns the birth number, the kind's word and the number of set bits,
// atomically. Bits are never cleared but by a turn, which the word shows: so an area
// of the copy is a subset of the string's. Equal counts mean equal bits, and the
// refresh is done. This supposes that the database has lost no acknowledged write,
// so rule 6 ends it.
//
// The areas whose counts differ are read in parts, into new ones. Each part is
// a script too: scripts run on the primary, where a plain GETRANGE might be
// answered by a region behind it. It checks the birth number in the same step, so
// a part holds all bits that were there when the refresh began. A filter can be
// mirrored while others write to it all the time.

// mirrorCountScript returns, of the header ARGV[1]:
//
//	the words        see engine.LuaWords
//	of each gap      its bits, which are no cells: the GETs from ARGV[8] on read
//	                 them, of which there are ARGV[7] arguments
//	of all           how many bits are set from ARGV[5] to ARGV[6], gaps included
//	of each area     how many are set, but not of the last: the first and last bits
//	                 follow the GETs; nothing at all, if the birth number, the
//	                 kind's word and the count of all are ARGV[2] to ARGV[4]
var mirrorCountScript = upstash.NewScript(engine.LuaFlags + `local n = 7 + tonumber(ARGV[7])
local w = redis.call('BITFIELD_RO', KEYS[1], ` + engine.LuaWords + `, unpack(ARGV, 8, n))
if w[1] ~= tonumber(ARGV[1]) then return {w[1]} end
local all = redis.call('BITCOUNT', KEYS[1], ARGV[5], ARGV[6], 'BIT')
w[#w + 1] = all
if w[3] == tonumber(ARGV[2]) and w[4] == tonumber(ARGV[3]) and all == tonumber(ARGV[4]) then return w end
for i = n + 1, #ARGV, 2 do
  w[#w + 1] = redis.call('BITCOUNT', KEYS[1], ARGV[i], ARGV[i + 1], 'BIT')
end
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
		run, mine := m.refreshing.begin()
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
	if pause == 0 || within(m.now(), m.refreshing.failedAt(), pause) {
		return false, false
	}
	run, mine := m.refreshing.begin()
	switch {
	case mine && k.answerInTime(): // another call has refreshed it since
		m.refreshing.end(run, m.now())
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
func (m *Mirror) refreshNow(ctx context.Context, run *task) (err error) {
	run.gaveUp = true // if there is a panic: the others go on
	defer func() { m.refreshing.end(run, m.now()) }()
	for range 3 {
		if err = m.refresh(synced.Looking(ctx)); err != errCameOrWent {
			break
		}
		err = ErrRecreated // it comes and goes
	}
	run.err, run.gaveUp = err, ctx.Err() != nil
	run.silent = !run.gaveUp && noAnswer(ctx, err)
	if err == nil {
		m.refreshes.Add(1)
		m.copy.kind.learnTime(ctx)
	} else {
		m.failures.Add(1)
	}
	return err
}

// errCameOrWent is returned by refresh if a missing filter counts as an empty
// one, and the filter was made or deleted meanwhile, as far as is known.
var errCameOrWent = errors.New("bloom: the filter was made or deleted during the refresh")

// A tally is how many cells are set in each area of a string, at a moment of which
// the words are.
type tally struct {
	engine.Words
	bits []uint64
}

// refresh counts, and reads the areas in which the copy lacks bits. A copy that has
// nothing whole reads at once.
func (m *Mirror) refresh(ctx context.Context) error {
	c := &m.copy
	c.mu.RLock()
	known, areas, have := c.bits, slices.Clone(c.bits.areas), tally{Words: engine.Words{Birth: c.birth, Kind: c.word}}
	cold := c.refreshedAt.IsZero() && !slices.ContainsFunc(areas, m.isDue)
	c.mu.RUnlock()
	if cold {
		return m.fill(ctx, known)
	}
	have.bits = c.setBits(areas) // all of them were there before the question is sent
	q := m.question()
	n, count := m.countBits(ctx, q, have)
	d := reading{news: n, count: count}
	whole := false
	q.ended(ctx, n, func(before *copied) {
		if d.into, whole = m.compare(&d, areas, have.bits, before == known); d.into != nil {
			c.next, d.areas = d.into, slices.Clone(d.into.areas)
		}
	})
	return m.download(ctx, d, whole)
}

// compare compares the counts of a string with those that the copy's areas had
// before. It returns those to read, or reports that the copy is whole. It returns
// neither if the answer crossed another. kept is false if the copy was dropped since.
func (m *Mirror) compare(d *reading, areas []*area, had []uint64, kept bool) (reads *copied, whole bool) {
	c := &m.copy
	if m.h.allowMissing(d.err) != nil || c.birth == 0 || c.kind.cleared(d.word, c.word) != 0 {
		return nil, false
	}
	reads = &copied{make([]*area, len(areas))}
	whole = kept // 3
	for i, a := range c.bits.areas {
		if a != areas[i] { // this answer, or a turn, has emptied it
			had[i] = 0
		}
		if !kept || d.count[i] != had[i] || m.isDue(a) { // 6
			reads.areas[i], whole = &area{newLocal(a.geo), d.sent}, false
		}
	}
	if whole {
		c.refreshedAt = d.sent
	}
	if whole || d.err != nil {
		return nil, whole
	}
	return reads, false
}

// isDue reports whether an answer in the area is so old that a refresh downloads: 6.
func (m *Mirror) isDue(a *area) bool {
	return !a.oldest.IsZero() && !within(m.now(), a.oldest, m.copy.full)
}

// fill reads the string into the copy in use, which has nothing whole. The first
// part says of which filter it is.
func (m *Mirror) fill(ctx context.Context, known *copied) error {
	c, q, from := &m.copy, m.question(), format.HeaderBytes
	read := engine.PartReader{Rec: &m.h.rec.Record}
	part, err := read.ReadAny(ctx, from, min(from+mirrorPartBytes, m.end()))
	n := news{sent: q.asked, birth: part.Birth, word: part.Kind, err: err}
	if err == nil && n.birth == 0 {
		n.err = errNoBirth
	}
	d := reading{news: n, first: part.Bytes}
	whole := false
	q.ended(ctx, n, func(before *copied) {
		switch {
		case m.h.allowMissing(n.err) != nil || c.birth == 0 || c.kind.cleared(n.word, c.word) != 0 || before != known:
			// the answer crossed another
		case n.err != nil: // there is no filter
			whole, c.refreshedAt = true, n.sent
		default:
			d.into, d.areas = c.bits, slices.Clone(c.bits.areas)
			c.take(n.birth, n.word, n.sent, func([]*area) {}) // the bits follow
		}
	})
	return m.download(ctx, d, whole)
}

// end returns the length of the string, if it lacks nothing.
func (m *Mirror) end() int {
	starts := m.copy.kind.starts()
	return starts[len(starts)-1] + m.areaBytes()
}

func (m *Mirror) areaBytes() int { return int(m.h.rec.geo.Bytes(LayoutHeaded)) - format.HeaderBytes }

// A reading is a download into the copy in use, or into the next one.
type reading struct {
	news
	into  *copied
	areas []*area  // those of into when it began; nil are those that are not read
	count []uint64 // how many cells were set in each area; nil if that is not known
	first []byte   // the part that has come
}

// download reads areas of the string, unless the copy is whole already. Those of the
// next copy then take the place of the others.
func (m *Mirror) download(ctx context.Context, d reading, whole bool) error {
	switch {
	case m.h.allowMissing(d.err) != nil:
		return d.err
	case whole:
		return nil
	case d.into == nil:
		return errCameOrWent
	}
	c := &m.copy
	defer c.abandon(d.into) // a callback of the client may panic
	got, err := m.readParts(ctx, d)
	c.mu.Lock()
	defer c.mu.Unlock()
	mine := c.next == d.into || c.bits == d.into // or the copy is of another filter than the parts
	switch {
	case engine.NoFilterHere(err) && m.h.allowMissing(err) == nil:
		return errCameOrWent
	case err != nil:
		return err
	case !mine && d.count == nil: // it reads all, and can do so again
		return errCameOrWent
	case !mine:
		return ErrRecreated
	}
	for i, a := range d.into.areas {
		switch {
		case a == nil: // it is not read, or was cleared meanwhile
			d.into.areas[i] = c.bits.areas[i]
		case d.count != nil && got[i] < d.count[i]:
			return fault.Errorf("bloom: %w: %d bits in the parts of a string that has %d",
				upstash.ErrBadResponse, got[i], d.count[i])
		}
	}
	c.bits, c.next, c.refreshedAt = d.into, nil, d.sent
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

// countArgs returns the arguments of mirrorCountScript, and how many gaps it reads.
func (m *Mirror) countArgs(have tally) (args []string, gaps int) {
	starts, size := m.copy.kind.starts(), m.h.rec.geo.Bits
	text := func(n uint64) string { return strconv.FormatUint(n, 10) }
	var gets, ranges []string
	first, total := 8*uint64(starts[0]), have.bits[0]
	for i, start := range starts[1:] {
		behind, next := first+size, 8*uint64(start)
		ranges = append(ranges, text(first), text(behind-1))
		if next > behind {
			gets = append(gets, "GET", "u"+text(next-behind), text(behind))
		}
		first, total = next, total+have.bits[1+i]
	}
	args = []string{
		strconv.FormatInt(have.Birth, 10), strconv.FormatInt(have.Kind, 10), text(total),
		text(8 * uint64(starts[0])), text(first + size - 1), strconv.Itoa(len(gets)),
	}
	return slices.Concat(args, gets, ranges), len(gets) / 3
}

// countBits asks for the words and the number of set cells of each area, all of one
// moment.
func (m *Mirror) countBits(ctx context.Context, q *question, have tally) (n news, count []uint64) {
	r := &m.h.rec
	args, gaps := m.countArgs(have)
	reply, err := r.Client.Do(ctx, r.Script(mirrorCountScript, nil, args...).Repeatable(true).AllOrNothing())
	n.sent, count = q.sent(reply), make([]uint64, len(have.bits))
	a := r.JudgeScript(reply, err)
	counted, err := a.Numbers(len(a.More))
	if err == nil {
		err = have.split(count, counted, gaps)
	}
	n.err = err
	if err == nil {
		n.birth, n.word = a.Birth, a.Kind
	}
	return n, count
}

// split sets the count of each area, by what mirrorCountScript has returned behind
// the words. If that counts no area, all is as in the tally.
func (t tally) split(count []uint64, counted []int64, gaps int) error {
	switch len(counted) - gaps {
	case len(count):
		left := counted[gaps]
		for _, gap := range counted[:gaps] {
			left -= int64(bits.OnesCount64(uint64(gap)))
		}
		for i, ones := range counted[gaps+1:] {
			count[i] = uint64(ones)
			left -= ones
		}
		count[len(count)-1] = uint64(left)
		if left < 0 || slices.Min(counted) < 0 {
			return engine.ErrNegative
		}
	case 1:
		copy(count, t.bits)
	default:
		return engine.WrongCount(len(counted), gaps+len(count))
	}
	return nil
}

// readParts reads areas of the string of a birth number, several parts at once. It
// returns how many set cells of each area were in them.
func (m *Mirror) readParts(ctx context.Context, d reading) (got []uint64, err error) {
	var mu sync.Mutex
	got = make([]uint64, len(d.areas))
	starts := m.copy.kind.starts()
	put := func(from int, part []byte) {
		for i, a := range d.areas {
			if a == nil {
				continue
			}
			at, cells := a.clip(from-starts[i]+format.HeaderBytes, part)
			ones := onesIn(cells)
			mu.Lock()
			got[i] += ones
			mu.Unlock()
			m.copy.put(a, at, cells)
		}
	}
	begin := starts[0]
	if d.first != nil {
		put(begin, d.first)
		if len(d.first) < mirrorPartBytes {
			return got, nil // that was all
		}
		begin += mirrorPartBytes
	}
	read := engine.PartReader{Rec: &m.h.rec.Record, Birth: d.birth}.Read
	for i := 0; i < len(d.areas); i++ {
		first := i
		for i < len(d.areas) && d.areas[i] != nil { // areas beside each other are read together
			i++
		}
		if i == first {
			continue
		}
		err := engine.EachSpan(ctx, "the refresh of the Mirror was interrupted", mirrorParallel,
			max(starts[first], begin), starts[i-1]+m.areaBytes(), mirrorPartBytes,
			func(ctx context.Context, from, to int) error {
				q := m.question()
				part, err := read(ctx, from, to) // of another birth number it is an error
				q.ended(ctx, news{sent: q.asked, birth: d.birth, word: part.Kind, err: err}, func(*copied) {})
				if err == nil {
					put(from, part.Bytes)
				}
				return err
			})
		if err != nil {
			return nil, err
		}
	}
	return got, nil
}

// put sets bits of a part. If the download is over, or its area was cleared, another
// has taken the area's place, and nobody sees them.
func (c *mirrorCopy) put(a *area, at int, part []byte) {
	inPieces(part, func(piece []byte) {
		c.mu.Lock()
		defer c.mu.Unlock()
		a.orBytes(at, piece)
		at += len(piece)
	})
}

// inPieces passes bytes to do in pieces that take it a few microseconds: so long
// may a look-up wait for a lock.
func inPieces(b []byte, do func(piece []byte)) {
	for len(b) > 0 {
		piece := b[:min(len(b), 64<<10)]
		do(piece)
		b = b[len(piece):]
	}
}

// setBits returns how many cells are set in each area. What is set meanwhile may
// count or not.
func (c *mirrorCopy) setBits(areas []*area) []uint64 {
	n := make([]uint64, len(areas))
	for i, a := range areas {
		inPieces(a.buf[format.HeaderBytes:], func(piece []byte) {
			c.mu.RLock()
			defer c.mu.RUnlock()
			n[i] += onesIn(piece)
		})
	}
	return n
}

// A gate lets one call at a time do something for all. The others wait for it,
// each as long as its own context lets it.
type gate struct {
	mu     sync.Mutex
	under  *task     // nil if there is none
	failed time.Time // when the last task failed; zero if it did not
}

// A task is what one call does. How it ended may be read when done is closed.
type task struct {
	done   chan struct{}
	err    error
	silent bool // the server gave no answer
	gaveUp bool // err is not of the server: the caller did not wait for it, or ask it
}

func (t *task) wait(ctx context.Context) error {
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		return fault.Errorf("bloom: the Mirror waited for a refresh: %w", engine.Ended(ctx))
	}
}

// begin begins a task, or returns the one under way, which is not mine.
func (g *gate) begin() (under *task, mine bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.under != nil {
		return g.under, false
	}
	g.under = &task{done: make(chan struct{})}
	return g.under, true
}

// end ends a task.
func (g *gate) end(over *task, now time.Time) {
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
