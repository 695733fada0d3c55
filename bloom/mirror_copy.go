package bloom

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/upstash"
)

// mirrorCopy is a Mirror's knowledge of one filter: rule 1. Its bits are a subset
// of the filter's at any later time, as long as the database loses no acknowledged
// write. Of a Window that is true of each pane, until a turn clears it: 13.
type mirrorCopy struct {
	kind copyKind

	// To which age a "no" counts, a "yes", a refresh by equal counts, and all of
	// the copy: 4, 5, 6.
	no, yes, full, most time.Duration

	mu    sync.RWMutex
	bits  *copied // replaced if what was known is dropped: a refresh notices it by the pointer
	next  *copied // filled by a download, to take the place of bits; nil if there is none
	birth int64   // of which filter; 0 if nothing is known, noFilter if there was none
	word  int64   // the kind's own, the latest that was seen of this filter

	verifiedAt  time.Time // when the latest question was sent whose answer showed birth
	refreshedAt time.Time // bits has all that was there then; zero before the first refresh
	answeredAt  time.Time // when the last answer came of which birth is; of two that crossed the second
	answers     uint64    // how many such answers came
}

// noFilter is the birth number of no filter, and of one that is none of ours.
const noFilter = -1

// copied are bits of answers, for each area of the string. Of a download, the areas
// that it does not read are nil.
type copied struct{ areas []*area }

// An area is the bits of answers about one area. The oldest question among theirs
// was sent at oldest, zero if there is none.
type area struct {
	*Local
	oldest time.Time
}

func newCopied(areas int, g Geometry) *copied {
	b := &copied{make([]*area, areas)}
	for i := range b.areas {
		b.areas[i] = &area{Local: newLocal(g)}
	}
	return b
}

// in returns the areas that have an item.
func (b *copied) in(item string) (areas uint8) {
	for i, a := range b.areas {
		if a.Exists(item) {
			areas |= 1 << i
		}
	}
	return areas
}

// plus is the sum of two durations, or the longest there is.
func plus(a, b time.Duration) time.Duration { return a + min(b, math.MaxInt64-a) }

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

// A view is how a call that began then looks at the copy.
type view struct {
	began time.Time
	late  time.Duration // 11
	adds  bool          // 12
	now   func() time.Time
}

func (m *Mirror) viewAt(began time.Time) view { return view{began: began, now: m.now} }

// allows reports whether an answer is new enough if its question was sent at a time:
// 2, or by a limit.
func (v view) allows(sent time.Time, limit time.Duration) bool {
	if !sent.After(v.began) { // at one instant of a clock that stands still, it may be long ago
		return within(v.began, sent, plus(limit, v.late))
	}
	return age(v.now(), sent) >= 0
}

// answer returns what the copy says of an item. known is false if the server
// must be asked.
func (c *mirrorCopy) answer(v view, item string) (found, known bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	in := c.bits.in(item)
	sure := in
	if in != 0 {
		n := c.kind.counting(c.word)
		sure, in = in&n.sure, in&n.maybe
		if v.adds {
			sure, in = in&n.newest, in&n.newest
		}
	}
	found = in != 0
	switch {
	case !c.isYoung(v):
		return found, false
	case found:
		return true, (sure != 0 || v.late > 0) && v.allows(c.verifiedAt, c.yes) // 5, 14
	}
	return false, c.no > 0 && v.allows(c.refreshedAt, c.no) // 4
}

// isYoung reports whether all answers in the copy are new enough. Older ones may
// be of writes that the database has lost.
func (c *mirrorCopy) isYoung(v view) bool {
	return !slices.ContainsFunc(c.bits.areas, func(a *area) bool {
		return !a.oldest.IsZero() && !v.allows(a.oldest, c.most)
	})
}

// hasAny reports whether the copy has one of the items, believed or not.
func (c *mirrorCopy) hasAny(v view, items []string) bool {
	return slices.ContainsFunc(items, func(item string) bool {
		found, _ := c.answer(v, item)
		return found
	})
}

// drop forgets what is known, and ends a download.
func (c *mirrorCopy) drop() {
	b := &copied{slices.Clone(c.bits.areas)}
	for i, a := range b.areas {
		b.areas[i] = a.emptied()
	}
	c.bits, c.next, c.birth, c.word = b, nil, 0, 0
	c.verifiedAt, c.refreshedAt = time.Time{}, time.Time{}
}

// emptied returns an area without bits: the same, if it has none.
func (a *area) emptied() *area {
	if a.oldest.IsZero() {
		return a
	}
	return &area{Local: newLocal(a.geo)}
}

// turn follows the string to a later word, and forgets what a Window has cleared.
// A download goes on without it.
func (c *mirrorCopy) turn(word int64) {
	for i, cleared := 0, c.kind.cleared(c.word, word); cleared != 0; i, cleared = i+1, cleared>>1 {
		if cleared&1 == 0 {
			continue
		}
		c.bits.areas[i] = c.bits.areas[i].emptied()
		if c.next != nil {
			c.next.areas[i] = nil
		}
	}
	c.word = word
}

// saw records what an answer of the primary shows: 3. Number 0, of a filter by
// another program, proves nothing.
func (c *mirrorCopy) saw(n news, now time.Time) {
	// On a coarse clock two instants may be equal: then what was asked after the
	// last answer is known by its number alone. If the
	// clock went back, it tells no order, and the answer counts as later.
	later := n.after == c.answers || n.sent.After(c.answeredAt) || age(now, c.answeredAt) < 0
	same := n.birth == c.birth
	earlier := c.kind.cleared(n.word, c.word) != 0 // 13: the epoch is an earlier one
	switch {
	case !same && (later || n.made), earlier && later:
		c.adopt(n)
	case !same:
		c.crossed(now)
		return
	case !earlier:
		c.turn(n.word)
	}
	c.answeredAt, c.answers = now, c.answers+1
	setBack := age(now, c.verifiedAt) < 0
	if n.birth > 0 && (setBack || n.sent.After(c.verifiedAt)) {
		c.verifiedAt = n.sent
	}
}

// adopt has the copy be of another filter, or of a window that went back.
func (c *mirrorCopy) adopt(n news) {
	if c.birth != 0 { // else it has nothing to forget, and a first refresh goes on
		c.drop()
	}
	c.birth, c.word = n.birth, n.word
}

// crossed forgets what two answers say that crossed, and waits for an answer to a
// question that follows both.
func (c *mirrorCopy) crossed(now time.Time) {
	if c.birth != 0 {
		c.answeredAt, c.answers = now, c.answers+1
	}
	c.drop() // each time: a refresh under way must not take the copy for whole
}

// take sets the bits of an answer to a question that was sent then, if the copy is
// of its filter. What was cleared since is nil.
func (c *mirrorCopy) take(birth, word int64, sent time.Time, set func(areas []*area)) {
	if birth <= 0 || birth != c.birth {
		return
	}
	cleared := c.kind.cleared(word, c.word)
	for _, to := range []*copied{c.bits, c.next} {
		if to == nil {
			continue
		}
		areas := slices.Clone(to.areas)
		for i, a := range areas {
			switch {
			case cleared>>i&1 == 1:
				areas[i] = nil
			case a != nil && (a.oldest.IsZero() || sent.Before(a.oldest)):
				a.oldest = sent
			}
		}
		set(areas)
	}
}

// A question is what a Mirror asks the server. Its requests have it as their
// observer: the copy learns from their answers.
type question struct {
	m       *Mirror
	asked   time.Time
	after   uint64 // mirrorCopy.answers, before it was asked
	primary bool   // no region may answer
}

// question asks the primary if the last proof is too old, or if a "no" has to be
// as new as MaxStale says.
func (m *Mirror) question() *question {
	q, c := &question{m: m, asked: m.now()}, &m.copy
	c.mu.RLock()
	defer c.mu.RUnlock()
	q.after = c.answers
	q.primary = c.no > 0 || !within(q.asked, c.verifiedAt, c.yes)
	return q
}

// asking is what a call of the Mirror wants beside the answers.
func (m *Mirror) asking() engine.Options { return engine.Options{Observer: m.question()} }

// WantsPrimary reports whether no region may answer.
func (q *question) WantsPrimary() bool { return q.primary }

// sent returns when the attempt was sent that brought a reply. An error has no
// reply, and counts from the question.
func (q *question) sent(reply upstash.Reply) time.Time {
	if sent := q.m.sent(reply); !sent.IsZero() {
		return sent
	}
	return q.asked
}

// news is how a request to the primary ended, the last attempt of which was sent
// then.
type news struct {
	sent  time.Time
	after uint64 // of the question
	birth int64  // 0 if there is an error
	word  int64  // the kind's own
	made  bool   // it made the filter
	err   error
}

// ended is the one place that the end of each request to the primary passes: a
// look-up, an Add, a count, a part of a download, and the answer to a script that
// sets a TTL or turns a Window. After an answer it calls take with what was copied
// before it. Other ends change nothing: 7.
func (q *question) ended(ctx context.Context, n news, take func(before *copied)) {
	c, now := &q.m.copy, q.m.now()
	if !isAnswer(n.err) {
		q.m.out.unanswered(ctx, n.err, q.asked, now)
		return
	}
	q.m.out.answered(n.sent, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.bits
	renewed := c.next != nil || c.no > 0 && !c.refreshedAt.IsZero()
	if !renewed && !c.isYoung(q.m.viewAt(now)) { // 6
		c.drop()
	}
	if n.err != nil {
		n.birth = noFilter
	}
	n.after = q.after
	c.saw(n, now)
	take(before)
}

// Learn takes the bits of an answer into the copy. A region lags: it proves
// nothing, but its bits are of the filter whose birth number it shows.
func (q *question) Learn(ctx context.Context, r *engine.Request, primary bool) {
	c, n := &q.m.copy, news{sent: q.sent(r.Reply), birth: r.BirthSeen, word: r.KindWord, err: r.Err}
	set := func(areas []*area) { learnCells(areas, r) }
	if r.Wrote.Applied {
		n.birth, n.err = r.Wrote.Birth.Number, nil
		n.made = r.Wrote.Created
		set = func(areas []*area) {
			if a := areas[c.kind.target(r)]; a != nil {
				a.AddAll(r.Items)
			}
		}
	}
	take := func(*copied) {
		if n.err == nil {
			c.take(n.birth, n.word, n.sent, set)
		}
	}
	if primary {
		q.ended(ctx, n, take)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	take(c.bits)
}

// Shown takes what an answer without items shows: the filter may have gone, or have
// been turned, since the answer about these. Without an answer no outage begins: there
// was one just before.
func (q *question) Shown(ctx context.Context, a engine.ScriptAnswer) {
	if isAnswer(a.Err) {
		n := news{sent: q.sent(a.Reply), birth: a.Birth, word: a.Kind, err: a.Err}
		q.ended(ctx, n, func(*copied) {})
	}
}

// learnCells sets the cells that are set in the answers to a look-up, which end
// with those of the items: of one area after the other.
func learnCells(areas []*area, q *engine.Request) {
	if len(q.Words) > 0 {
		cells := q.Answers[len(q.Answers)-len(q.Words):]
		from := 0
		for group, end := range q.WordEnds {
			if a := areas[group%len(areas)]; a != nil {
				for i := from; i < end; i++ {
					a.learnWord(q.Words[i].Index, cells[i].Int64)
				}
			}
			from = end
		}
		return
	}
	local := areas[0]
	if local == nil {
		return
	}
	cells := q.Answers[2:] // a plain filter's, after the header and the birth number
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

// An outage is a time in which the primary gives no answer about the filter.
type outage struct {
	mu    sync.Mutex
	since time.Time // when the first question ended without an answer; zero if there is no outage
	heard time.Time // when the latest question was sent that was answered
	tried time.Time // when a question last ended
	probe bool      // a call asks whether the outage is over
}

// answered notes that an answer came to a question that was sent then: 8.
func (o *outage) answered(sent, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since, o.tried = time.Time{}, now
	if sent.After(o.heard) || age(now, o.heard) < 0 {
		o.heard = sent
	}
}

// unanswered notes the error of a request that brought no answer: 8.
func (o *outage) unanswered(ctx context.Context, err error, asked, now time.Time) {
	if !noAnswer(ctx, err) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tried = now
	if o.since.IsZero() && !asked.Before(o.heard) {
		o.since = now
	}
}

// isAnswer reports whether a request brought an answer about the filter: 9.
func isAnswer(err error) bool {
	return err == nil || engine.IsAnswer(err)
}

// wasSent reports whether the request was sent whose error this is.
func wasSent(err error) bool {
	if call, ok := fault.As[*upstash.CallError](err); ok {
		return call.Attempts > 0
	}
	_, refused := fault.As[*upstash.Error](err)
	return refused || fault.Is(err, upstash.ErrBadResponse) || fault.Is(err, upstash.ErrNil)
}

// noAnswer reports whether a question got no answer, and its caller waited for it: 9.
func noAnswer(ctx context.Context, err error) bool {
	return !isAnswer(err) && wasSent(err) && !errors.Is(ctx.Err(), context.Canceled)
}

// began returns when the outage began, zero if there is none.
func (o *outage) began() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since
}

func (o *outage) isOn() bool { return !o.began().IsZero() }

// claimProbe has the call ask whether an outage is over, if no other call does, nor
// did within a second: 10b. spared reports that another did.
func (o *outage) claimProbe(k *mirrorCall) (spared bool) {
	now := k.m.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() || k.probe {
		return false
	}
	if o.probe || within(now, o.tried, refreshPause) {
		return true
	}
	o.probe, k.probe = true, true
	return false
}

// end ends the call, which may be the probe.
func (o *outage) end(k *mirrorCall) {
	if k.probe {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.probe = false
	}
}

// A Mirrorable is a [*Filter] or a [*Window]: what [NewMirror] makes a copy of.
type Mirrorable interface {
	AnyFilter
	copyKind() copyKind
}

// A copyKind is what a copy needs to know of the kind of its string. The string
// has one area, or several, of one geometry. A set of areas is one of bits.
type copyKind interface {
	// starts returns the first byte of each area.
	starts() []int
	// span returns for how long an item is found, 0 if for good.
	span() time.Duration
	// cleared returns the areas that were cleared after the string had one word,
	// and until it had another; none, if that is no later one: 13.
	cleared(from, to int64) (areas uint8)
	// counting returns which areas count in a string with a word: 14.
	counting(word int64) counting
	// target returns the area of a write.
	target(q *engine.Request) int
	// learnTime learns the time that counting needs, if it is not known.
	learnTime(ctx context.Context)
}

// A counting is the areas that certainly count, those that may, and those that an
// item must be in for an Add to change nothing.
type counting struct{ sure, maybe, newest uint8 }

// oneArea is the copyKind of a filter, which forgets nothing.
type oneArea struct{}

func (f *Filter) copyKind() copyKind { return oneArea{} }

func (oneArea) starts() []int              { return []int{format.HeaderBytes} }
func (oneArea) span() time.Duration        { return 0 }
func (oneArea) cleared(int64, int64) uint8 { return 0 }
func (oneArea) counting(int64) counting    { return counting{1, 1, 1} }
func (oneArea) target(*engine.Request) int { return 0 }
func (oneArea) learnTime(context.Context)  {}

// paneAreas is the copyKind of a Window.
type paneAreas struct {
	*windowShape
	client *upstash.Client
	denied atomic.Bool // the token may not run TIME
}

func (w *Window) copyKind() copyKind {
	return &paneAreas{windowShape: w.shape, client: w.rec.Client}
}

func (p *paneAreas) span() time.Duration { return p.lasts() }

func (p *paneAreas) starts() []int {
	starts := make([]int, len(p.areas))
	for i, a := range p.areas {
		starts[i] = int(a.Offset / 8)
	}
	return starts
}

func (p *paneAreas) cleared(from, to int64) uint8 {
	return p.windowShape.cleared(format.EpochOf(from), format.EpochOf(to))
}

// counting counts the panes by the latest time that it may be, and by the
// earliest. An Add renews an item, unless that is in the pane of the latest epoch.
func (p *paneAreas) counting(word int64) (n counting) {
	c := format.EpochOf(word)
	earliest, latest, ok := door.ServerTimeBounds(p.client)
	if !ok {
		n.maybe = p.windowShape.counting(c, c)
		if p.denied.Load() {
			n.sure = n.maybe
		}
		return n
	}
	e := p.epochAt(latest)
	n.sure, n.maybe = p.windowShape.counting(e, c), p.windowShape.counting(p.epochAt(earliest), c)
	for i := p.ahead(e, c); i <= 1; i++ { // e to C+1
		n.newest |= 1 << p.pane(c+i)
	}
	return n
}

func (p *paneAreas) target(q *engine.Request) int { return p.pane(commandOf(q).epoch) }

// learnTime asks for the time if it is not known. A lost answer says nothing.
func (p *paneAreas) learnTime(ctx context.Context) {
	_, err := p.client.ServerTime(ctx)
	if denied := fault.IsDenied(err); err == nil || denied {
		p.denied.Store(denied)
	}
}
