package bloom

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// How a Window keeps time.
//
// Epochs are numbered modulo a cycle, and epoch e owns pane e mod R. C is the
// epoch in the window's word, e the epoch for which a command was sent. The
// panes of the epochs C-P to C+1 count. Pane C+1 is the spare: it is clear, and
// counts as soon as something is in it. So writers need not wait for a turn.

// A windowShape is the shape of a Window.
type windowShape struct {
	areas   []area // the R panes
	seconds uint64 // of an epoch
	idle    bool   // the window expires some time after its last turn
	turning atomic.Bool
}

// The window's own word is a u53 at bit 128, from its top bit down:
//
//	1 | idle:1 | R:4 | seconds:23 | epoch:24
const (
	epochBits     = 24
	epochMask     = 1<<epochBits - 1
	secondsShift  = epochBits
	paneShift     = secondsShift + 23
	idleShift     = paneShift + 4
	maxTurnRounds = 8
)

// errAlwaysLate is the error of a write sent for several epochs in turn.
var errAlwaysLate = errors.New("each time its answer came two epochs late or more")

// windowAreas places n panes of a geometry, each on its own bytes.
func windowAreas(g Geometry, n int) []area {
	areas := make([]area, n)
	next := uint64(headerBits)
	for i := range areas {
		areas[i] = area{next, g.Bits / wordBits}
		next = areas[i].end()
	}
	return areas
}

// windowShapeOf reads the shape from a window's header and word.
func windowShapeOf(seen *state) (*windowShape, error) {
	n := seen.parts()
	s := &windowShape{
		seconds: uint64(seen.word >> secondsShift & (1<<23 - 1)), idle: seen.word>>idleShift&1 == 1,
	}
	if seen.header.scheme != SchemeBlocked || n < 3 || n > maxPanes+2 || s.seconds < uint64(minPaneSpan/time.Second) {
		return nil, errHeaderBits
	}
	s.areas = windowAreas(seen.header.geometry(0), n)
	return s, nil
}

func (s *windowShape) panes() uint64 { return uint64(len(s.areas)) } // R

// span returns P, the number of panes in a Span.
func (s *windowShape) span() uint64 { return s.panes() - 2 }

// cycle returns the number of epochs, a multiple of the number of panes.
func (s *windowShape) cycle() uint64 { return (1 << epochBits) / s.panes() * s.panes() }

func (s *windowShape) epochAt(t time.Time) uint64 {
	return uint64(max(t.Unix(), 0)) / s.seconds % s.cycle()
}

// since returns how many epochs a is after b, from 0 up to a cycle.
func (s *windowShape) since(a, b uint64) uint64 { return (a + s.cycle() - b) % s.cycle() }

// isBehind reports whether epoch e is C or shortly before. A longer way back is
// the way forward after a long pause.
func (s *windowShape) isBehind(e, c uint64) bool { return s.since(c, e) < s.cycle()/16 }

// later returns the later of two epochs.
func (s *windowShape) later(e, c uint64) uint64 {
	if s.isBehind(e, c) {
		return c
	}
	return e
}

// counting returns the panes that count for a command of epoch e: those of the
// epochs from max(e, C)-P to C+1.
func (s *windowShape) counting(e, c uint64) (panes uint8) {
	passed := s.since(s.later(e, c), c)
	for i := passed; i < s.panes(); i++ {
		epoch := c + s.cycle() - s.span() + i
		panes |= 1 << (epoch % s.panes())
	}
	return panes
}

// length is that of all panes.
func (s *windowShape) length(*record) uint64 { return s.areas[len(s.areas)-1].end() / 8 }

func (s *windowShape) shorter() string {
	text := "lower the Capacity (a shorter Span has fewer items), raise the FPRate, "
	if s.span() > 1 {
		text += "use fewer Panes, "
	}
	return text + "or choose a larger plan"
}

func (s *windowShape) wordAt(epoch uint64) int64 {
	word := 1<<(wordBits-1) | s.panes()<<paneShift | s.seconds<<secondsShift | epoch
	if s.idle {
		word |= 1 << idleShift
	}
	return int64(word)
}

func epochOf(word int64) uint64 { return uint64(word) & epochMask }

// word of a request is that of its epoch.
func (s *windowShape) word(q *request) int64 {
	if q == nil {
		return s.wordAt(0)
	}
	return s.wordAt(q.at)
}

func (s *windowShape) loose() uint { return epochBits }

func (s *windowShape) differs(word int64) string {
	ours := s.wordAt(0)
	switch {
	case (word^ours)>>paneShift&15 != 0:
		return "Panes"
	case (word^ours)>>secondsShift&(1<<23-1) != 0:
		return "Span"
	}
	return "ExpireIdle"
}

// idleTTL is how long a window stays after its last turn: everything in it is
// forgotten by then.
func (s *windowShape) idleTTL() time.Duration {
	return time.Duration((s.panes()+1)*s.seconds) * time.Second
}

// now returns the epoch of the server's clock, for a writer.
func (s *windowShape) now(ctx context.Context, r *record) (epoch uint64, err error) {
	t, err := r.client.ServerTime(ctx)
	if err != nil {
		if isDenied(err) {
			err = errorf("bloom: %w: %w", ErrNoClock, err)
		}
		return 0, err
	}
	return s.epochAt(t), nil
}

// aim chooses the epoch of a write by the server's clock. A look-up does not
// depend on one; it takes what is known.
func (s *windowShape) aim(ctx context.Context, q *request, write bool) (changed bool, err error) {
	if !write {
		t, ok := q.rec.client.KnownServerTime()
		q.at, q.clock = s.epochAt(t), ok
		return false, nil
	}
	e, err := s.now(ctx, q.rec)
	if err != nil {
		return false, untouched(err) // it asked for the time
	}
	if q.rounds > 0 {
		e = s.later(e, epochOf(q.word))
	}
	changed = e != q.at
	q.at = e
	return changed, nil
}

func (s *windowShape) setItem(q *request, item string) {
	q.setInArea(s.areas, int(q.at%s.panes()), item)
}

func (s *windowShape) getItem(q *request, item string) { q.getInAreas(s.areas, item) }

func (s *windowShape) itemBytes(r *record, write bool) int {
	last := s.areas[len(s.areas)-1].end()
	z, get := r.geo.Hashes/2, upstash.SizeOfGet(u53, last)
	if !write {
		return len(s.areas) * z * get
	}
	return r.geo.Hashes*upstash.SizeOfSet("u1", last, 1) + (len(s.areas)-1)*z*get
}

// wrote decides which items are new by the first answer that counts. If the
// command's epoch is two or more ahead of the window's, the answer does not
// count: its bits went into a pane with old ones.
func (s *windowShape) wrote(q *request, answers []upstash.NullInt64) error {
	if err := q.takeHeld(len(s.areas), true, answers); err != nil {
		return err
	}
	c := epochOf(q.word)
	if q.lost = !s.isBehind(q.at, c) && s.since(q.at, c) > 1; q.valid {
		return nil
	}
	if q.reply.MaybeRepeated() {
		q.tried |= 1 << q.target
	}
	if q.wrote.created {
		q.tried = 0
	}
	q.valid = !q.lost
	q.judgeHeld(s.counting(q.at, c))
	// An item seen in an older pane fills this one as a new one does.
	q.wrote.items, q.wrote.newItems, q.wrote.newOnes = len(q.items), q.fresh, q.freshOnes
	q.wrote.area = q.target
	return nil
}

// read counts the panes by the server's clock if it is known. If not, the
// process's own clock may be wrong: then all panes count, as long as the two
// clocks seem to agree.
func (s *windowShape) read(q *request, answers []upstash.NullInt64) error {
	if err := q.takeHeld(len(s.areas), false, answers); err != nil {
		return err
	}
	s.judgeRead(q)
	return nil
}

func (s *windowShape) judgeRead(q *request) {
	counts := uint8(1<<s.panes() - 1)
	if q.clock {
		counts = s.counting(q.at, epochOf(q.word))
	}
	q.found = q.found[:0]
	for _, held := range q.held {
		q.found = append(q.found, held&counts != 0)
	}
}

// follow turns the window when its epoch has passed, and has a write sent again
// if its item would otherwise be forgotten too early.
func (s *windowShape) follow(ctx context.Context, q *request, write bool) (again bool) {
	if !write {
		s.followRead(ctx, q)
		return false
	}
	c := epochOf(q.word)
	if q.lost {
		err := s.turn(ctx, q.rec, q.word, q.at)
		if isRefusal(err) || q.rounds >= maxTurnRounds {
			if err == nil {
				err = errAlwaysLate
			}
			q.err = &stepError{err: errorf("bloom: the panes of the window could not be turned: %w", err), in: q.valid}
			q.wrote.ok = q.valid
			return false
		}
		return true
	}
	if s.since(q.at, c) == 1 {
		s.turnOnce(ctx, q)
	}
	now, err := s.now(ctx, q.rec)
	if err != nil {
		q.err = &stepError{err: err, in: true}
		return false
	}
	goal := s.later(now, c)
	return goal != q.at && s.isBehind(q.at, goal) && q.rounds < maxTurnRounds
}

// followRead learns the time if an answer depends on it, and turns a window
// nobody writes to.
func (s *windowShape) followRead(ctx context.Context, q *request) {
	c := epochOf(q.word)
	if !q.clock && s.since(q.at, c) > 1 {
		// Without the time the answers hold too: all panes count.
		if t, err := q.rec.client.ServerTime(ctx); err == nil {
			q.at, q.clock = s.epochAt(t), true
			s.judgeRead(q)
		}
	}
	if q.clock && !q.near() && !q.region && !s.isBehind(q.at, c) && s.since(q.at, c) > 1 {
		s.turnOnce(ctx, q)
	}
}
