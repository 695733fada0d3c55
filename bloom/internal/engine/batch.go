package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// A Batch is one AddAll or ExistsAll on one client. Its items go to one record,
// or each to the record that LaneOf chooses.
type Batch struct {
	Lanes  []Lane
	LaneOf func(item string) int           // nil if there is one lane
	Name   func(lane int, err error) error // says which record failed; or nil
	Items  []string
	Options
	Adding   bool              // or removing; else it looks items up
	Bytes    int               // of a request, at most
	Parallel int               // requests at once
	Missing  func(error) error // what the error of a look-up means to the handle

	// Split is set if one request does not carry all items: then the parts
	// compare their birth numbers.
	Split       bool
	alone       bool // the first part goes before the others
	repeats     bool // equal items are sent each time
	itemBytes   int  // at most, of one item
	maxItems    int  // of a part
	scriptBytes int  // of the script of each command, if there is one

	// Each part writes to the places of its own items, without a lock.
	Answers []bool
	States  []ItemState

	mu     sync.Mutex // guards what follows, and the lanes
	flying []*part    // of an AddAll: an item that is in one of them is not sent again
	Err    error      // the gravest failure, the first of them; the States say the rest
	Fatal  bool       // it is more than uncertain items
}

// ItemState is what is known of one item after a batch that failed.
type ItemState uint8

// Package bloom documents these, as constants of its own: TestItemStates.
const (
	NotDone ItemState = iota
	Done
	Uncertain
	Unknown
)

// A Lane is a batch's knowledge of one record.
type Lane struct {
	Rec     *Record
	Birth   Birth       // found by the parts of an AddAll; not known before the first
	Gone    error       // of an AddAll: the filter went away meanwhile
	Missing bool        // a part found no filter
	NoTTL   error       // of an AddAll: the last part could not set the TTL
	stopped atomic.Bool // nothing more is sent
}

// A part is one request of a batch, with a piece for each record. While it is
// under way, items equal to one of its items are not sent: they wait for its
// answer.
type part struct {
	pieces []piece
	first  map[string]int // of its items, the first of equal ones
	same   []sameAs
}

type piece struct {
	q     *Request
	lane  int
	index []int // of its items
}

type sameAs struct{ item, first int }

// prepare works out what the limits are for the batch's records.
func (b *Batch) prepare() {
	r := b.Lanes[0].Rec // the others are alike
	b.Answers, b.States = make([]bool, len(b.Items)), make([]ItemState, len(b.Items))
	b.itemBytes, b.maxItems = r.Items.ItemBytes(b.Adding), MaxPartItems
	if b.Adding {
		if r.MustExist || r.Scripted != nil {
			probe := Request{Rec: r}
			probe.encodeHead()
			b.scriptBytes = probe.command().Size()
		}
		if own := r.Scripted; own != nil {
			b.repeats, b.maxItems = own.StoresCopies(), min(own.MaxItems(), MaxPartItems)
		}
		// Until the header was seen, one request goes ahead alone: if the key holds
		// something else, no other touches it.
		b.alone = b.LaneOf == nil && r.Headed() && !r.Verified.Load()
	}
	// One request certainly carries all items if the longest heads and the
	// longest items fit.
	heads := min(len(b.Lanes), len(b.Items)) * b.headBytes(r)
	b.Split = b.Split || len(b.Items) > 1 &&
		(len(b.Items) > b.maxItems || len(b.Items) > (b.Bytes-heads)/b.itemBytes)
}

// headBytes is an upper bound of a command's length without its items.
func (b *Batch) headBytes(r *Record) int {
	const most = 512                           // of the operations before the first item
	return b.scriptBytes + most + 6*len(r.Key) // a byte of a key takes up to six in JSON
}

// Run cuts the items into parts and sends them. It sets Answers, and Err and
// States if something failed.
func (b *Batch) Run(ctx context.Context) {
	b.prepare()
	parts := NewPool(b.Parallel)
	for next := 0; next < len(b.Items); {
		var p *part
		p, next = b.fill(ctx, next)
		if p == nil {
			break
		}
		if b.alone || !b.Split {
			b.alone = false
			b.sendPart(ctx, p) // another goroutine would wake a processor for nothing
			continue
		}
		if !parts.Run(b.stopped, func() { b.sendPart(ctx, p) }) {
			b.finish(p)
			break
		}
	}
	parts.Wait()
	if b.Err != nil {
		b.conclude()
	}
	for i := range b.Lanes {
		if !b.Fatal {
			b.Err = Both(b.Err, b.Lanes[i].NoTTL)
		}
	}
}

// conclude notes what the parts together say of each item, after one of them
// failed.
func (b *Batch) conclude() {
	// If a filter went away, nobody knows which parts ran before that and which
	// after. A shard that was made anew was made with the others.
	all := fault.Is(b.Err, ErrRecreated)
	for i, item := range b.Items {
		if (all || b.Lanes[b.lane(item)].Gone != nil) && b.States[i] != NotDone {
			b.States[i], b.Answers[i] = Unknown, false
		}
	}
	if gone := b.Lanes[0].Gone; gone != nil && b.LaneOf == nil {
		b.Err = gone // also if a part has failed otherwise
	}
	if b.Adding && !b.repeats {
		b.followEqual()
	}
	if slices.Contains(b.States, Unknown) {
		b.Err = fault.MayHaveRun(b.Err)
	}
}

// followEqual notes what items are that follow equal ones, whatever became of their own
// parts: they are seen if those are in the filter, and may be in it if those may
// be. If all are certain then, no error is left: of a filter that went away, none is.
func (b *Batch) followEqual() {
	before := make(map[string]ItemState)
	certain := true
	for i, item := range b.Items {
		switch before[item] {
		case Done, Uncertain:
			b.States[i], b.Answers[i] = Done, false
		case Unknown:
			if b.States[i] == NotDone {
				b.States[i] = Unknown
			}
		}
		before[item] = b.States[i] // with what the earlier ones prove
		certain = certain && b.States[i] == Done
	}
	if certain {
		b.Err, b.Fatal = nil, false
	}
}

// fill builds one request from the items at next and after, as many as fit. It
// returns nil if there is nothing to send.
func (b *Batch) fill(ctx context.Context, next int) (p *part, rest int) {
	f := b.newFilling()
	for ; next < len(b.Items); next++ {
		item := b.Items[next]
		if f.first != nil && b.joinFlying(item, next) { // it is not sent
			continue
		}
		lane := b.lane(item)
		if b.Lanes[lane].stopped.Load() { // perhaps by the part that it could have joined
			continue
		}
		if !f.fits(lane) {
			break
		}
		f.take(ctx, lane, next)
	}
	if len(f.pieces) == 0 {
		return nil, next
	}
	if f.first != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.flying = append(b.flying, f.part)
	}
	return f.part, next
}

// A filling is a part that is being built.
type filling struct {
	*part
	b     *Batch
	at    []int // the lane's place in pieces, from 1; 0 before its first item
	size  int   // about the bytes of the body
	items int
}

func (b *Batch) newFilling() filling {
	p := &part{pieces: make([]piece, 0, len(b.Lanes))}
	if b.Adding && b.Split && !b.repeats {
		p.first = map[string]int{}
	}
	return filling{part: p, b: b, at: make([]int, len(b.Lanes))}
}

// fits reports whether one more item of a record has room. The first always has.
func (f *filling) fits(lane int) bool {
	need := f.b.itemBytes
	if f.at[lane] == 0 {
		need += f.b.headBytes(f.b.Lanes[lane].Rec)
	}
	return f.items == 0 || f.size+need <= f.b.Bytes && f.items < f.b.maxItems
}

// take appends an item, unless nothing may be sent to its record.
func (f *filling) take(ctx context.Context, lane, index int) {
	c := f.piece(ctx, lane)
	if c == nil {
		return
	}
	item, before := f.b.Items[index], c.q.Size()
	if f.b.Adding {
		c.q.AppendWrite(item)
	} else {
		c.q.AppendRead(item)
	}
	f.size += c.q.Size() - before
	if f.first != nil {
		if _, ok := f.first[item]; !ok {
			f.first[item] = index
		}
	}
	c.index = append(c.index, index)
	f.items++
}

// piece returns the record's piece of the part, which it begins if it is missing.
// It returns nil if nothing may be sent to the record.
func (f *filling) piece(ctx context.Context, lane int) *piece {
	if f.at[lane] == 0 {
		q := f.b.begin(ctx, lane)
		if q == nil {
			return nil
		}
		f.size += q.Size() + f.b.scriptBytes + len("[],") // of a pipeline
		f.pieces = append(f.pieces, piece{q: q, lane: lane})
		f.at[lane] = len(f.pieces)
	}
	return &f.pieces[f.at[lane]-1]
}

// begin starts the command of one record. It returns nil if that may not be sent.
func (b *Batch) begin(ctx context.Context, lane int) *Request {
	o := b.Options
	o.CompareBirth = b.Split
	r := b.Lanes[lane].Rec
	if !b.Adding {
		return r.BeginRead(ctx, o)
	}
	if err := r.MayWrite(); err != nil {
		b.lose(lane, err)
		b.fail(lane, err, true)
		return nil
	}
	return r.BeginWrite(ctx, o)
}

// lane returns the place of the item's record in b.Lanes.
func (b *Batch) lane(item string) int {
	if b.LaneOf == nil {
		return 0
	}
	return b.LaneOf(item)
}

// MaxPartItems keeps the arrays of a part small. Only a test changes it.
var MaxPartItems = 1 << 20

// joinFlying has an item wait for the answer to an equal one that is under way in
// another request, and reports whether there is one. The server might run two
// requests in either order, so the item must not be sent.
func (b *Batch) joinFlying(item string, index int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.flying {
		if i, ok := p.first[item]; ok {
			p.same = append(p.same, sameAs{index, i})
			return true
		}
	}
	return false
}

// sendPart sends one request of a batch and notes what came of it.
func (b *Batch) sendPart(ctx context.Context, p *part) {
	reqs := make([]*Request, len(p.pieces))
	for i := range p.pieces {
		reqs[i] = p.pieces[i].q
	}
	if b.Adding {
		WriteAll(ctx, reqs)
	} else {
		ReadAll(ctx, reqs)
	}
	for i := range p.pieces {
		if b.Adding {
			b.tookAdds(&p.pieces[i])
		} else {
			b.tookReads(&p.pieces[i])
		}
	}
	b.finish(p)
}

// finish answers the items waiting for those of p, and frees p.
func (b *Batch) finish(p *part) {
	b.mu.Lock()
	b.flying = slices.DeleteFunc(b.flying, func(other *part) bool { return other == p })
	b.mu.Unlock()
	// Nothing is appended to p.same any more. See also followEqual.
	for _, s := range p.same {
		b.States[s.item] = b.States[s.first]
	}
	for _, c := range p.pieces {
		c.q.Free()
	}
}

// tookAdds notes the answers of one record to a part of an AddAll.
func (b *Batch) tookAdds(c *piece) {
	q := c.q
	if !q.Wrote.Applied {
		missing := fault.Is(q.Err, ErrNotFound)
		if missing {
			b.miss(c.lane)
		}
		if missing || IsForeign(q.Err) {
			b.lose(c.lane, q.Err)
		}
		for _, i := range c.index {
			b.States[i] = stateAfterAdd(q)
		}
		b.fail(c.lane, q.Err, true)
		return
	}
	if b.noteBirth(c.lane, q) {
		b.lose(c.lane, ErrRecreated)
		b.fail(c.lane, ErrRecreated, true)
	}
	for n, i := range c.index {
		b.Answers[i], b.States[i] = q.Added[n], Done
		if q.Uncertain[n] {
			b.States[i] = Uncertain
		}
	}
	if q.Err != nil {
		b.fail(c.lane, q.Err, !q.Wrote.Uncertain)
	}
}

// noteBirth notes the birth number and the TTL error of a part. It reports whether
// the number is another one than that of the parts before.
func (b *Batch) noteBirth(lane int, q *Request) (recreated bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &b.Lanes[lane]
	l.NoTTL = q.NoTTL
	if !l.Birth.IsKnown {
		l.Birth = q.Wrote.Birth
	}
	return l.Birth != q.Wrote.Birth
}

// lose notes that the filter went away, if it ever was there, and with it the items of
// all parts that met it, whichever is answered first.
func (b *Batch) lose(lane int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := &b.Lanes[lane]; Graver(err, true, l.Gone, true) {
		l.Gone = err
	}
}

// stateAfterAdd is the state of the items of a failed part. If the last attempt
// met another filter, its items are not in ours; but an earlier attempt may
// have put them into ours.
func stateAfterAdd(q *Request) ItemState {
	_, answered := fault.As[*upstash.Error](q.Err)
	switch {
	case upstash.SafeToRetry(q.Err):
		return NotDone
	case q.Wrote.MaybeRepeated, answered:
		return Unknown
	case IsForeign(q.Err), fault.Is(q.Err, ErrNotFound):
		return NotDone
	}
	return Unknown
}

// tookReads notes the answers of one record to a part of an ExistsAll. The items
// of a failed look-up are not done.
func (b *Batch) tookReads(c *piece) {
	q := c.q
	err := q.Err
	if err != nil {
		err = b.Missing(err)
	}
	for n, i := range c.index {
		b.Answers[i] = n < len(q.Found) && q.Found[n]
		if err == nil {
			b.States[i] = Done
		}
	}
	if err != nil {
		if fault.Is(err, ErrNotFound) {
			b.miss(c.lane)
		}
		b.fail(c.lane, err, true)
	}
}

// miss notes that a part found no filter.
func (b *Batch) miss(lane int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Lanes[lane].Missing = true
}

// fail keeps the first error of the gravest kind. After a fatal one no more is
// sent to the record; what is under way ends by itself.
func (b *Batch) fail(lane int, err error, fatal bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if Graver(err, fatal, b.Err, b.Fatal) {
		b.Err = err
		if b.Name != nil {
			b.Err = b.Name(lane, err)
		}
	}
	b.Fatal = b.Fatal || fatal
	if fatal {
		b.Lanes[lane].stopped.Store(true)
	}
}

// Graver reports whether one error of a batch says more than another, which may be
// nil: a filter that was made again; then what may have run; then what certainly did
// not. Uncertain items, which are in, come last.
func Graver(err error, fatal bool, than error, thanFatal bool) bool {
	return gravity(err, fatal) > gravity(than, thanFatal)
}

func gravity(err error, fatal bool) int {
	switch {
	case err == nil:
		return 0
	case fault.Is(err, ErrRecreated):
		return 4
	case fatal && !upstash.SafeToRetry(err):
		return 3
	case fatal:
		return 2
	}
	return 1
}

// stopped reports whether nothing more is sent to any record.
func (b *Batch) stopped() bool {
	for i := range b.Lanes {
		if !b.Lanes[i].stopped.Load() {
			return false
		}
	}
	return true
}
