package bloom

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
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
	geo     Geometry // of a pane
	areas   []area   // the R panes
	seconds uint64   // of an epoch
	idle    bool     // the window expires some time after its last turn
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
func windowShapeOf(seen *state, seed uint64) (*windowShape, error) {
	n := seen.parts()
	s := &windowShape{
		seconds: uint64(seen.word >> secondsShift & (1<<23 - 1)), idle: seen.word>>idleShift&1 == 1,
	}
	if seen.header.scheme != SchemeBlocked || n < 3 || n > maxPanes+2 || s.seconds < uint64(minPaneSpan/time.Second) {
		return nil, engine.ErrHeaderBits
	}
	s.geo = seen.header.geometry(seed)
	s.areas = windowAreas(s.geo, n)
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

// holds returns how many items a Span may have in a window made for a coded
// rate, 0 if that is not known: a look-up adds up the rates of its panes.
func (s *windowShape) holds(rate uint64) uint64 { return s.geo.holds(rate, int(s.span())+1) }

// rateAt returns the false positive rate of the whole window with so many items
// in each of its panes.
func (s *windowShape) rateAt(items uint64) float64 {
	return 1 - math.Pow(1-s.geo.FalsePositiveRate(items), float64(s.span()+1))
}

// length is that of all panes.
func (s *windowShape) length() uint64 { return s.areas[len(s.areas)-1].end() / 8 }

func (s *windowShape) howToShorten() string {
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
func (s *windowShape) KindWord(q *engine.Request) int64 {
	if q == nil {
		return s.wordAt(0)
	}
	return s.wordAt(q.BuiltFor)
}

func (s *windowShape) MutableBits() uint { return epochBits }

func (s *windowShape) differingField(word int64) string {
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
func (s *windowShape) now(ctx context.Context, r *engine.Record) (epoch uint64, err error) {
	t, err := r.Client.ServerTime(ctx)
	if err != nil {
		if fault.IsDenied(err) {
			err = fault.Errorf("bloom: %w: %w", ErrNoClock, err)
		}
		return 0, err
	}
	return s.epochAt(t), nil
}

// aim chooses the epoch of a write by the server's clock. A look-up does not
// depend on one; it takes what is known.
func (s *windowShape) Prepare(ctx context.Context, q *engine.Request, write bool) (changed bool, err error) {
	if !write {
		t, ok := q.Rec.Client.KnownServerTime()
		q.BuiltFor, q.Clock = s.epochAt(t), ok
		return false, nil
	}
	e, err := s.now(ctx, q.Rec)
	if err != nil {
		return false, fault.Untouched(err) // it asked for the time
	}
	if q.Resends > 0 {
		e = s.later(e, epochOf(q.KindWord))
	}
	changed = e != q.BuiltFor
	q.BuiltFor = e
	return changed, nil
}

func (s *windowShape) AppendWrite(q *engine.Request, item string) {
	setInArea(q, s.geo, s.areas, int(q.BuiltFor%s.panes()), item)
}

func (s *windowShape) AppendRead(q *engine.Request, item string) { getInAreas(q, s.geo, s.areas, item) }

func (s *windowShape) ItemBytes(write bool) int {
	last := s.areas[len(s.areas)-1].end()
	z, get := s.geo.Hashes/2, upstash.SizeOfGet(engine.U53, last)
	if !write {
		return len(s.areas) * z * get
	}
	return s.geo.Hashes*upstash.SizeOfSet("u1", last, 1) + (len(s.areas)-1)*z*get
}

// wrote decides which items are new by the first answer that counts. If the
// command's epoch is two or more ahead of the window's, the answer does not
// count: its bits went into a pane with old ones.
func (s *windowShape) JudgeWrite(q *engine.Request, answers []upstash.NullInt64) error {
	if err := takeHeld(q, s.geo.Hashes, len(s.areas), true, answers); err != nil {
		return err
	}
	c := epochOf(q.KindWord)
	if q.Lost = !s.isBehind(q.BuiltFor, c) && s.since(q.BuiltFor, c) > 1; q.Valid {
		return nil
	}
	if q.Reply.MaybeRepeated() {
		q.TriedAreas |= 1 << q.TargetArea
	}
	if q.Wrote.Created {
		q.TriedAreas = 0
	}
	q.Valid = !q.Lost
	judgeHeld(q, s.counting(q.BuiltFor, c))
	// An item seen in an older pane fills this one as a new one does.
	q.Wrote.Items, q.Wrote.NewItems, q.Wrote.NewOnes = len(q.Items), q.Fresh, q.FreshOnes
	q.Wrote.Area = q.TargetArea
	return nil
}

// read counts the panes by the server's clock if it is known. If not, the
// process's own clock may be wrong: then all panes count, as long as the two
// clocks seem to agree.
func (s *windowShape) JudgeRead(q *engine.Request, answers []upstash.NullInt64) error {
	if err := takeHeld(q, s.geo.Hashes, len(s.areas), false, answers); err != nil {
		return err
	}
	s.judgeRead(q)
	return nil
}

func (s *windowShape) judgeRead(q *engine.Request) {
	counts := uint8(1<<s.panes() - 1)
	if q.Clock {
		counts = s.counting(q.BuiltFor, epochOf(q.KindWord))
	}
	q.Found = q.Found[:0]
	for _, held := range q.Held {
		q.Found = append(q.Found, held&counts != 0)
	}
}

// follow turns the window when its epoch has passed, and has a write sent again
// if its item would otherwise be forgotten too early.
func (s *windowShape) Follow(ctx context.Context, q *engine.Request, write bool) (again bool) {
	if !write {
		s.followRead(ctx, q)
		return false
	}
	c := epochOf(q.KindWord)
	if q.Lost {
		err := s.turn(ctx, q.Rec, q.KindWord, q.BuiltFor)
		if fault.IsRefusal(err) || q.Resends >= maxTurnRounds {
			if err == nil {
				err = errAlwaysLate
			}
			q.Err = &engine.StepError{Err: fault.Errorf("bloom: the panes of the window could not be turned: %w", err), InFilter: q.Valid}
			q.Wrote.Applied = q.Valid
			return false
		}
		return true
	}
	if s.since(q.BuiltFor, c) == 1 {
		s.turnOnce(ctx, q)
	}
	now, err := s.now(ctx, q.Rec)
	if err != nil {
		q.Err = &engine.StepError{Err: err, InFilter: true}
		return false
	}
	goal := s.later(now, c)
	return goal != q.BuiltFor && s.isBehind(q.BuiltFor, goal) && q.Resends < maxTurnRounds
}

// followRead learns the time if an answer depends on it, and turns a window
// nobody writes to.
func (s *windowShape) followRead(ctx context.Context, q *engine.Request) {
	c := epochOf(q.KindWord)
	if !q.Clock && s.since(q.BuiltFor, c) > 1 {
		// Without the time the answers hold too: all panes count.
		if t, err := q.Rec.Client.ServerTime(ctx); err == nil {
			q.BuiltFor, q.Clock = s.epochAt(t), true
			s.judgeRead(q)
		}
	}
	if q.Clock && !q.Near() && !q.Region && !s.isBehind(q.BuiltFor, c) && s.since(q.BuiltFor, c) > 1 {
		s.turnOnce(ctx, q)
	}
}
