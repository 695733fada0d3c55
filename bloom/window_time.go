package bloom

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/bloom/internal/opsize"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/upstash"
)

// How a Window keeps time.
//
// Time is cut into epochs, which are numbered modulo a cycle. A window has R panes,
// P = R-2 of them for a Span, and epoch e owns pane e mod R. C is the epoch in the
// window's word: the turn to it has cleared the pane of C+1, the spare. A writer
// whose epoch is C+1 uses the spare, and turns the window after its answer: it
// waits for no turn. So the panes of the epochs C-P to C+1 count at epoch C.
//
// With R = 4 and C = 10 these are the epochs 8 to 11. At epoch 11, before the turn,
// 9 to 11 count. A turn to 12 clears the panes of 12 and 13, which hold what was
// added in 8 and 9: then 10 to 13 count, and 13 is the spare.

// A windowShape is the shape of a Window.
type windowShape struct {
	geo     Geometry      // of a pane
	areas   []format.Area // the R panes
	seconds uint64        // of an epoch
	idle    bool          // the window expires some time after its last turn
	turning atomic.Bool
}

const (
	// answerGrace is how long after its epoch a command's answer still counts.
	// Without it, every command under way at the end of an epoch would be sent
	// again. It is part of clockSlack.
	answerGrace = time.Second
	// maxResends is how often a command is sent again, for one epoch after
	// another.
	maxResends = 8
)

// errAlwaysLate is the error of a write whose every command was too late.
var errAlwaysLate = errors.New("each time its answer came after the end of its epoch")

// windowShapeOf reads the shape from a window's header and word.
func windowShapeOf(seen *state, seed uint64) (*windowShape, error) {
	if err := seen.CheckWord(); err != nil {
		return nil, err
	}
	w := format.ParseWindow(seen.Word)
	s := &windowShape{geo: geometryOf(seen.Header, seed), seconds: w.Seconds, idle: w.Idle}
	s.areas = format.PaneAreas(s.geo.Bits, w.Panes)
	return s, nil
}

func (s *windowShape) panes() uint64 { return uint64(len(s.areas)) } // R

// span returns P, the number of panes in a Span.
func (s *windowShape) span() uint64 { return s.panes() - 2 }

// lasts returns the Span, rounded up to what its panes last.
func (s *windowShape) lasts() time.Duration {
	return time.Duration(s.span()*s.seconds)*time.Second - clockSlack
}

// holds returns how many items a Span may have in a window made for a coded
// rate, 0 if that is not known: a look-up adds up the rates of its panes.
func (s *windowShape) holds(rate uint64) uint64 { return s.geo.holds(rate, int(s.span())+1) }

// rateAt returns the false positive rate of the whole window with so many items
// in each of its panes.
func (s *windowShape) rateAt(items uint64) float64 {
	return 1 - math.Pow(1-s.geo.FalsePositiveRate(items), float64(s.span()+1))
}

// cycle returns the number of epochs, a multiple of the number of panes.
func (s *windowShape) cycle() uint64 { return (1 << format.EpochBits) / s.panes() * s.panes() }

func (s *windowShape) epochAt(t time.Time) uint64 {
	return uint64(max(t.Unix(), 0)) / s.seconds % s.cycle()
}

// ahead returns how many epochs a is later than b: 0 if it is not later. A way back
// of a sixteenth of the cycle or more is taken as the way forward after a long pause.
func (s *windowShape) ahead(a, b uint64) uint64 {
	if back := (b + s.cycle() - a) % s.cycle(); back < s.cycle()/16 {
		return 0
	}
	return (a + s.cycle() - b) % s.cycle()
}

func (s *windowShape) later(a, b uint64) uint64 {
	if s.ahead(a, b) > 0 {
		return a
	}
	return b
}

// counting returns the panes that count at epoch e, in a window at epoch c: those
// of the epochs max(e, c)-P to c+1.
func (s *windowShape) counting(e, c uint64) (panes uint8) {
	for i := s.ahead(e, c); i < s.panes(); i++ {
		panes |= 1 << s.pane(c+s.cycle()-s.span()+i)
	}
	return panes
}

// cleared returns the panes that a turn from epoch c to epoch to clears, none if
// that is no later one: those of the epochs c+2 to to+1, at most all. They hold old
// items. The pane of c+1 does not: it was the spare.
func (s *windowShape) cleared(c, to uint64) (panes uint8) {
	for i := range min(s.ahead(to, c), s.panes()) {
		panes |= 1 << s.pane(to+1+s.cycle()-i)
	}
	return panes
}

func (s *windowShape) pane(epoch uint64) int { return int(epoch % s.panes()) }

// serverTime returns the time of the server's clock, for a writer.
func (s *windowShape) serverTime(ctx context.Context, c *upstash.Client, k *engine.Clock) (time.Time, error) {
	t, err := k.Time(ctx, c)
	if fault.IsDenied(err) {
		err = fault.Errorf("bloom: %w: %w", ErrNoClock, err)
	}
	return t, err
}

// A windowCommand is what a Window remembers between the steps of a request.
type windowCommand struct {
	epoch   uint64 // that this command was built for
	now     uint64 // the epoch when the answer came
	clocked bool   // of a look-up: epoch is of the server's clock
	tainted bool   // an earlier command may be why an item is found
	late    bool   // the answer came too late, or the bits are lost: it decides nothing
	held    []uint8
}

// commandOf returns what the Window remembers of a request.
func commandOf(q *engine.Request) *windowCommand {
	w, ok := q.Kept.(*windowCommand)
	if !ok {
		w = new(windowCommand)
		q.Kept = w
	}
	return w
}

// Prepare aims a write at the present epoch, or at that of the window if it is
// further on. A look-up reads all panes. It takes what is known of the time.
func (s *windowShape) Prepare(ctx context.Context, q *engine.Request, write bool) (changed bool, err error) {
	w := commandOf(q)
	if !write {
		t, ok := door.KnownServerTime(q.Rec.Client)
		w.epoch, w.clocked = s.epochAt(t), ok
		return false, nil
	}
	now, err := s.serverTime(ctx, q.Rec.Client, q.Clock)
	if err != nil {
		return false, fault.Untouched(err) // it asked for the time
	}
	e := s.epochAt(now)
	if q.Resends > 0 {
		e = s.later(e, format.EpochOf(q.KindWord))
	} else {
		w.tainted = false
	}
	changed = e != w.epoch
	w.epoch = e
	return changed, nil
}

func (s *windowShape) AppendWrite(q *engine.Request, item string) {
	setInArea(q, s.geo, s.areas, s.pane(commandOf(q).epoch), item)
}

func (s *windowShape) AppendRead(q *engine.Request, item string) { getInAreas(q, s.geo, s.areas, item) }

func (s *windowShape) ItemBytes(write bool) int {
	last := s.areas[len(s.areas)-1].End()
	z, get := s.geo.Hashes/2, opsize.Get(engine.U53, last)
	if !write {
		return len(s.areas) * z * get
	}
	return s.geo.Hashes*opsize.Set("u1", last, 1) + (len(s.areas)-1)*z*get
}

// JudgeWrite notes which panes held the items. Judge decides about them.
func (s *windowShape) JudgeWrite(q *engine.Request, answers []upstash.NullInt64) (err error) {
	w := commandOf(q)
	w.held, err = appendHeld(w.held[:0], q, s.geo.Hashes, len(s.areas), s.pane(w.epoch), answers)
	return err
}

// What the answer to a write does, aimed at epoch e of a window that it shows at C:
//
//	answer           its bits                        it decides   Follow
//	in time          count                           yes          turns to e, if that is C+1
//	late             count until a turn passes       no           turns if it is later than C+1 now,
//	                 them: holdsBits                              and sends again
//	at all, e > C+1  the next turn clears their      no           turns, and sends again
//	                 pane: bitsAreLost
//
// Late bits taint the items: a command that is sent again and finds one may find
// what this one set. Others may have found that too, and been told "seen". So the
// item is uncertain. Lost bits taint only if there were two attempts, the first of
// which may have run in time.

// Judge judges the items of a write, if its answer decides. Then the window was
// turned to e or to the epoch before, which cleared all bits that were lost: no pane
// that counts holds any.
func (s *windowShape) Judge(ctx context.Context, q *engine.Request) {
	w, c := commandOf(q), format.EpochOf(q.KindWord)
	now, err := s.serverTime(ctx, q.Rec.Client, q.Clock) // the answer has come
	if err != nil {
		q.FailAfter(err, !s.bitsAreLost(q))
		return
	}
	w.now = s.epochAt(now)
	inTime := s.ahead(s.epochAt(now.Add(-answerGrace)), w.epoch) == 0
	w.late = !inTime || s.bitsAreLost(q)
	if !w.late {
		s.decide(q, s.counting(w.epoch, c))
	}
}

// bitsAreLost reports whether nobody will find a command's bits: it was aimed at a
// pane that the next turn clears, because that holds old items.
func (s *windowShape) bitsAreLost(q *engine.Request) bool {
	return s.ahead(commandOf(q).epoch, format.EpochOf(q.KindWord)) > 1
}

// taints reports whether a late command's items are tainted.
func (s *windowShape) taints(q *engine.Request) bool {
	return !s.bitsAreLost(q) || q.Reply.MaybeRepeated()
}

// holdsBits reports whether a late command's bits are in a pane that still counts.
func (s *windowShape) holdsBits(q *engine.Request) bool {
	w := commandOf(q)
	return !s.bitsAreLost(q) && s.counting(w.now, format.EpochOf(q.KindWord))>>s.pane(w.epoch)&1 == 1
}

// Follow turns the window if its epoch has passed, and has a write sent again
// whose answer decides nothing.
func (s *windowShape) Follow(ctx context.Context, q *engine.Request) (again, in bool) {
	w := commandOf(q)
	c, e := format.EpochOf(q.KindWord), w.epoch
	if !w.late {
		if s.ahead(e, c) == 1 {
			s.turnOnce(ctx, q, e)
		}
		return false, false
	}
	w.tainted = w.tainted || s.taints(q)
	in = s.holdsBits(q)
	var err error
	if to := s.later(w.now, e); s.ahead(to, c) > 1 {
		err = s.turn(ctx, q, to)
	}
	if fault.IsRefusal(err) || q.Resends >= maxResends {
		if err == nil || fault.Is(err, ErrNotFound) { // a write makes a missing window
			err = errAlwaysLate
		}
		q.FailAfter(fault.Errorf("bloom: the panes of the window could not be turned: %w", err), in)
		return false, in
	}
	return true, in
}

// decide judges the items of a write: new are those in none of the panes that
// count. An item that was found is uncertain if an earlier command of the call
// may have set its bits, or an earlier attempt of this one, which set bits in
// this command's pane alone.
func (s *windowShape) decide(q *engine.Request, counts uint8) {
	w, repeated := commandOf(q), q.Reply.MaybeRepeated()
	own := uint8(1) << s.pane(w.epoch)
	for _, held := range w.held {
		q.JudgeItem(held&counts == 0, w.tainted || repeated && held&own != 0)
	}
}

// JudgeRead finds the items in the panes that count. If the time is not known,
// all panes count: an item in none of them is in no window.
func (s *windowShape) JudgeRead(q *engine.Request, answers []upstash.NullInt64) (err error) {
	w := commandOf(q)
	w.held, err = appendHeld(w.held[:0], q, s.geo.Hashes, len(s.areas), inNone, answers)
	if err == nil {
		s.find(q)
	}
	return err
}

func (s *windowShape) find(q *engine.Request) {
	w, counts := commandOf(q), uint8(1<<s.panes()-1)
	if w.clocked {
		counts = s.counting(w.epoch, format.EpochOf(q.KindWord))
	}
	q.Found = q.Found[:0]
	for _, held := range w.held {
		q.Found = append(q.Found, held&counts != 0)
	}
}

// FollowRead learns the time if an item was found without it: the window's own
// epoch is the time at which it was last turned, and not the present one. It
// turns a window that nobody writes to.
func (s *windowShape) FollowRead(ctx context.Context, q *engine.Request) {
	w := commandOf(q)
	if !w.clocked && slices.Contains(q.Found, true) {
		t, err := q.Clock.Time(ctx, q.Rec.Client)
		if fault.IsDenied(err) { // all panes count, for good
			return
		}
		if err != nil {
			q.Found, q.Err = q.Found[:0], err
			return
		}
		w.epoch, w.clocked = s.epochAt(t), true
		s.find(q)
	}
	if w.clocked && s.ahead(w.epoch, format.EpochOf(q.KindWord)) > 1 {
		s.turnOnce(ctx, q, w.epoch)
	}
}

func (s *windowShape) length() uint64 { return s.areas[len(s.areas)-1].End() / 8 }

func (s *windowShape) howToShorten() string {
	text := "lower the Capacity (a shorter Span has fewer items), raise the FPRate, "
	if s.span() > 1 {
		text += "use fewer Panes, "
	}
	return text + "or choose a larger plan"
}

func (s *windowShape) wordAt(epoch uint64) int64 {
	return format.WindowWord{Idle: s.idle, Panes: len(s.areas), Seconds: s.seconds, Epoch: epoch}.Word()
}

// KindWord returns the word of the request's epoch.
func (s *windowShape) KindWord(q *engine.Request) int64 {
	if q == nil {
		return s.wordAt(0)
	}
	return s.wordAt(commandOf(q).epoch)
}

func (s *windowShape) MutableBits() uint { return format.EpochBits }

func (s *windowShape) differingField(word int64) string {
	w := format.ParseWindow(word)
	if w.Panes != len(s.areas) {
		return "Panes"
	}
	if w.Seconds != s.seconds {
		return "Span"
	}
	return "ExpireIdle"
}

// idleTTL is how long a window stays after its last turn: everything in it is
// forgotten by then.
func (s *windowShape) idleTTL() time.Duration {
	return time.Duration((s.panes()+1)*s.seconds) * time.Second
}

// turnScript moves the window to another epoch, if its word is still the one
// the caller saw (ARGV[2]): a late turn finds another word, and would clear
// panes in use. It clears the panes whose first byte and length follow from
// ARGV[5] on, in pieces of 1 MiB, as far as the string goes. Then it stores the
// new word (ARGV[3]). It sets the TTL of ARGV[4] milliseconds first, unless that is
// 0: if the token may not, the next write tries all again, and the window does not
// expire while it is used.
var turnScript = upstash.NewScript(engine.LuaCheckHeader + `if w[4] ~= tonumber(ARGV[2]) then return w end
if ARGV[4] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
local length = redis.call('STRLEN', KEYS[1])
local piece = 1048576
for i = 5, #ARGV, 2 do
  local from = tonumber(ARGV[i])
  local to = math.min(from + tonumber(ARGV[i + 1]), length)
  while from < to do
    local n = math.min(piece, to - from)
    redis.call('SETRANGE', KEYS[1], string.format('%d', from), string.rep('\0', n))
    from = from + n
  end
end
redis.call('BITFIELD', KEYS[1], 'SET', 'u53', '128', ARGV[3])
w[4] = tonumber(ARGV[3])
return w`)

// turn runs the script for a window whose word the request saw, to move it to
// epoch to. Repeating it is harmless: after the first run the word is another one.
func (s *windowShape) turn(ctx context.Context, q *engine.Request, to uint64) error {
	a := q.Rec.RunScript(ctx, s.turnCommand(q.Rec, q.KindWord, to))
	q.Shown(ctx, a)
	return a.Err
}

func (s *windowShape) turnCommand(r *engine.Record, word int64, to uint64) upstash.Command {
	ttl := "0"
	if s.idle {
		ttl = engine.Milliseconds(s.idleTTL())
	}
	args := []string{strconv.FormatInt(word, 10), strconv.FormatInt(s.wordAt(to), 10), ttl}
	for i, cleared := 0, s.cleared(format.EpochOf(word), to); cleared != 0; i, cleared = i+1, cleared>>1 {
		if cleared&1 == 1 {
			pane := s.areas[i]
			args = append(args, strconv.FormatUint(pane.Offset/8, 10),
				strconv.FormatUint((pane.End()-pane.Offset)/8, 10))
		}
	}
	return r.Script(turnScript, nil, args...).Repeatable(true)
}

// turnOnce turns the window after an answer that counts, as settling a TTL does:
// one at a time for a handle, whatever becomes of the caller's context. If it is
// lost, the next writer turns. What a region says of the window's epoch may be old,
// but a client that asks one is read-only, and refuses the script.
func (s *windowShape) turnOnce(ctx context.Context, q *engine.Request, to uint64) {
	if s.turning.Swap(true) {
		return
	}
	defer s.turning.Store(false)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engine.SettleLimit())
	defer cancel()
	_ = s.turn(ctx, q, to)
}

const (
	maxPanes = format.MaxPanes - 2
	// All panes of a Span together are so much longer: two clocks may each be
	// wrong by two seconds, and an answer may come a second late (answerGrace).
	clockSlack  = 5 * time.Second
	minPaneSpan = format.MinSeconds * time.Second
)
