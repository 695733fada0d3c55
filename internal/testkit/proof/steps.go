package proof

import (
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/upbloom/upbloom/bloom"
)

// maxItems is how many items a call has at most.
const maxItems = 16

// splitter turns calls into steps of the model.
type splitter struct {
	rules
	geo bloom.Geometry
	// cells returns an item's cells. In types whose items share no cells, each
	// item has one.
	cells   func(v Verb, item string) bits
	weigh   func(bits) int
	own     special // of a type whose writes are sent once; or nil
	steps   []porcupine.Operation
	batches int
	part    int // of all steps
}

// Describe returns the cells of an item.
func (f *Filters) Describe(item string) string {
	return fmt.Sprintf("owns %v", f.geometry().Positions(nil, item))
}

// Steps makes the steps of all calls.
func (f *Filters) Steps(h *History) ([]porcupine.Operation, error) {
	own, err := h.apart(0, false)
	if err != nil {
		return nil, err
	}
	s := splitter{
		rules: newRules(&f.Common, f.Staleness, own), geo: f.geometry(), cells: f.cells, weigh: bits.count,
	}
	s.blind = true
	return s.split()
}

// cells returns the cells of an item, in the history's filter or in another
// one.
func (f *Filters) cells(v Verb, item string) bits {
	if f.Long {
		return longCellsOf(item)
	}
	mine := f.geometry()
	g := mine
	if v == Smudge {
		g = geometryOf(smudgeConfig)
	}
	return bitsOf(g.Positions(nil, item), mine.Bits)
}

// ownCell returns the cell of an item in a type whose items share none. An item
// added to another filter has no cell.
func ownCell(v Verb, item string) bits {
	if v == Smudge {
		return bits{}
	}
	return bitsOf([]uint64{uint64(slices.Index(ownItems, item))}, MaxBits)
}

// split makes the steps of all calls.
func (s *splitter) split() ([]porcupine.Operation, error) {
	for n, c := range s.h.calls {
		if err := s.call(n, c); err != nil {
			return nil, fmt.Errorf("call %d: %w", n, err)
		}
	}
	return s.steps, nil
}

// strays returns how many of n attempts of c can make a difference. An item
// stays in the filter until a removal, so only one attempt before each removal
// can. A TTL may change between any two of them.
func (s *splitter) strays(c *called, n int) int {
	if c.call.Verb == SetTTL || c.call.Verb == Persist {
		return n
	}
	useful := 1
	for _, r := range s.removals {
		if r.to > c.from || r.mayBeLate() {
			useful++
		}
	}
	return min(n, useful)
}

// call makes the steps of one call: one for each answer, and an open step for
// each further attempt that may take effect.
func (s *splitter) call(n int, c *called) error {
	if s.own == nil { // else the type has its own rules
		if err := s.consistent(c); err != nil {
			return err
		}
	}
	if c.call.Verb == AddSeq {
		s.addSeq(n, c)
		return nil
	}
	r := c.result
	ends := make([]bloom.ItemState, max(1, len(c.call.Items)))
	for i := range ends {
		ends[i] = stateOf(r, i)
	}
	switch v := c.call.Verb; {
	case v == Silence, v == Speak, v == Hold, v == MirrorStats, v == ClearParts, v == FlushScripts, v == ReplaceWrong,
		v == Refresh && r.End != Missing:
	case v == Load, v == Merge, v == Replace:
		s.oneStep(n, c, seq(len(c.call.Items)), ends[0], 0)
	case v == Snapshot && r.End == Answered && s.mayLose(c): // its parts are of several states
	case v == Snapshot && r.End == Answered:
		s.snapshot(n, c)
	case v == MirrorAll:
		s.mirrorAll(n, c, ends)
	case v == MirrorAddAll:
		s.mirrorAddAll(n, c, ends)
	case len(r.Ends) > 0:
		for i, end := range r.Ends {
			s.answer(n, c, i, end)
		}
	case (v == AddAll || v == ExistsAll || v == RemoveAll) && (c.call.Parts || c.call.More >= bigMore):
		s.parts(n, c, ends)
	default:
		s.oneRequest(n, c, ends)
	}
	return nil
}

// parts makes a step for each item.
func (s *splitter) parts(n int, c *called, ends []bloom.ItemState) {
	batch, refused := 0, 0
	if !c.call.Verb.is(reads) {
		batch = s.nextBatch()
	}
	for _, end := range ends {
		if end == bloom.ItemNotDone {
			refused++
		}
	}
	for i := range c.call.Items {
		// Of several not done, one found the filter full. Nobody knows which.
		if ends[i] != bloom.ItemNotDone || refused == 1 {
			s.oneStep(n, c, []int{i}, ends[i], batch)
		}
	}
}

// nextBatch returns a new number each time, as long as there are any, and then
// 0.
func (s *splitter) nextBatch() int {
	if s.batches == maxBatches {
		return 0
	}
	s.batches++
	return s.batches
}

// snapshot makes the two steps of a Snapshot.
func (s *splitter) snapshot(n int, c *called) {
	p := s.begin(n, c, nil, s.nextBatch())
	p.cells = c.result.Cells
	for _, p.atLeast = range []bool{false, true} {
		s.add(n, p, s.earliest(c, p), c.to)
	}
}

// answer makes the step of one of several answers that have their own ends.
func (s *splitter) answer(n int, c *called, i int, end End) {
	one := *c
	one.result.End = end
	s.oneStep(n, &one, []int{i}, stateOf(one.result, i), 0)
}

// oneRequest makes one step of all items. Of a write, all items are in or none. A
// look-up may have answers for only some of them.
func (s *splitter) oneRequest(n int, c *called, ends []bloom.ItemState) {
	at := seq(len(c.call.Items))
	if c.call.Verb == ExistsAll {
		at = slices.DeleteFunc(at, func(i int) bool { return ends[i] != bloom.ItemDone })
		if len(at) == 0 {
			return
		}
		s.oneStep(n, c, at, bloom.ItemDone, 0)
		return
	}
	end := ends[0]
	if slices.Contains(ends, bloom.ItemDone) && slices.Contains(ends, bloom.ItemUncertain) {
		end = bloom.ItemDone
	}
	s.oneStep(n, c, at, end, 0)
}

// oneStep adds the steps of the items at the given indexes of one call.
func (s *splitter) oneStep(n int, c *called, at []int, end bloom.ItemState, batch int) {
	r := c.result
	p := s.begin(n, c, at, batch)
	strays := r.Maybe
	switch {
	case p.verb.is(reads):
		strays = 0
		if end != bloom.ItemDone {
			return
		}
	case p.verb.is(once), s.own != nil && p.verb != Create: // a second attempt must find nothing to do
		strays = 0
		if end == bloom.ItemUncertain {
			end = bloom.ItemUnknown
		}
		// Other data may have come after an attempt took effect.
		if end == bloom.ItemUnknown || (r.End == Mismatch || r.End == Taken && !r.Safe) && r.Maybe > 0 {
			strays = 1
		}
	case end == bloom.ItemUnknown:
		// The last attempt may have had an unreadable answer.
		strays = max(1, min(strays+1, r.Tried))
	}
	switch {
	case end == bloom.ItemNotDone && r.Full:
		p.end = full
		s.add(n, p, c.from, c.to)
		return
	case end == bloom.ItemNotDone:
		return // the error says that the step had no effect
	}
	p.end = open
	if end == bloom.ItemDone || end == bloom.ItemUncertain {
		if p.end = endingOf(r, end); p.end == answered {
			p.yes, p.count = answersOf(r, at), r.Count
			if r.States != nil {
				for _, i := range at {
					p.unsure = append(p.unsure, r.States[i] == bloom.ItemUncertain)
				}
			}
			if c.fromCopy() {
				p.yes = []bool{true}
			}
		}
	}
	p.sized, p.over = r.Sized && r.Maybe == 0, r.Over
	if strays > 0 && p.end == answered && anySeen(p.yes) && n < 64 {
		p.call = 1 << n
	}
	if p.end != open && !(r.End == Mismatch && p.verb.is(refusable)) {
		s.add(n, p, s.earliest(c, p), c.to)
	}
	p.end, p.batch = open, 0
	for range s.strays(c, strays) {
		p.birth += 1 << 12 // each attempt has its own
		s.add(n, p, c.from, math.MaxInt64)
	}
}

// begin returns the step of some items of a call, without its answers.
func (s *splitter) begin(n int, c *called, at []int, batch int) step {
	p := step{
		of: s.of, geo: &s.geo, part: s.part, weigh: s.weigh, special: s.own, verb: c.call.Verb, key: c.call.Key,
		batch: batch, birth: uint16(n*maxItems + 1),
	}
	if c.must {
		of := *s.of
		of.MustExist = true
		p.of = &of
	}
	switch p.verb {
	case Merge:
		p.verb = Load
	case MirrorAdd:
		if c.fromCopy() {
			p.verb = MirrorExists
		}
	case Refresh:
		p.verb = Exists
	case Inspect: // only handles with another Config set those
		if slices.ContainsFunc(s.h.calls, func(o *called) bool { return o.call.Verb == Smudge && o.from < c.to }) {
			p.filling = int(-s.geo.Bits & 7)
		}
	}
	for _, i := range at {
		p.birth = uint16(n*maxItems + i + 1)
		p.items = append(p.items, s.cells(p.verb, c.call.Items[i]))
	}
	switch p.verb {
	case Load, Replace, Plant: // all items at once
		all := bits{}
		for _, b := range p.items {
			all = all.with(b)
		}
		p.items = []bits{all}
	}
	return p
}

func (s *splitter) add(n int, p step, from, to int64) {
	s.steps = append(s.steps, porcupine.Operation{ClientId: n, Input: &p, Call: from, Return: to})
}

func endingOf(r Result, end bloom.ItemState) ending {
	switch {
	case end == bloom.ItemUncertain:
		return uncertain
	case r.End == Missing:
		return missing
	case r.End == Mismatch:
		return mismatch
	case r.End == Taken:
		return taken
	case r.End == NoNumber:
		return noNumber
	case r.End == Full:
		return full
	}
	return answered
}

// answersOf returns the answers for some items. If a call moves all its items
// at once, it has one answer.
func answersOf(r Result, at []int) []bool {
	if len(at) == 0 || len(r.Yes) < len(at) {
		return r.Yes
	}
	yes := make([]bool, 0, len(at))
	for _, i := range at {
		yes = append(yes, r.Yes[i])
	}
	return yes
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// A Mirror answers each item of a batch from its copy, or asks the server. The
// history does not say which.

// mirrorAll makes a step for each item that has an answer: one may be the copy's,
// and the other the server's.
func (s *splitter) mirrorAll(n int, c *called, ends []bloom.ItemState) {
	for i := range c.call.Items {
		if ends[i] == bloom.ItemDone && i < len(c.result.Yes) {
			s.fromMirror(n, c, i, c.result.Yes[i])
		}
	}
}

// fromMirror makes the step of an item that a Mirror found, or did not find.
func (s *splitter) fromMirror(n int, c *called, i int, found bool) {
	one := *c
	one.call = Call{Verb: MirrorExists, Items: c.call.Items[i : i+1]}
	one.result = Result{End: Answered, Yes: []bool{found}}
	s.oneStep(n, &one, []int{0}, bloom.ItemDone, 0)
}

// mirrorAddAll makes the steps of each item. One that was seen may be the copy's:
// then it was in the filter within MaxTrust, and was not sent.
func (s *splitter) mirrorAddAll(n int, c *called, ends []bloom.ItemState) {
	for i, item := range c.call.Items {
		one := *c
		one.call.Items = []string{item}
		if i < len(c.result.Yes) {
			one.result.Yes = c.result.Yes[i : i+1]
		}
		one.result.States = nil // ends has the item's
		if ends[i] == bloom.ItemDone && c.result.End == Partly {
			one.result.End = Answered
		}
		seen := one.result.End == Answered && !one.result.Yes[0]
		switch {
		case !seen || !s.mayHaveCopy(c):
			s.oneStep(n, &one, []int{0}, ends[i], 0)
		default:
			s.fromMirror(n, c, i, true)
			one.result.End = Unknown
			if c.result.Maybe > 0 {
				s.oneStep(n, &one, []int{0}, bloom.ItemUnknown, 0)
			}
		}
	}
}

// mayHaveCopy reports whether the Mirror of a call may know an item.
func (s *splitter) mayHaveCopy(c *called) bool {
	return slices.ContainsFunc(s.h.calls, func(o *called) bool {
		return o != c && o.session == c.session && o.from < c.to && o.call.Verb.is(mirrored) && o.call.Verb != Crowd
	})
}

// addSeq makes the steps of an AddSeq: one if it made one request, and else one
// for each item. Only the number of new items is known, of all of them together.
func (s *splitter) addSeq(n int, c *called) {
	r := c.result
	if r.End == Answered && !c.call.Parts {
		s.oneStep(n, c, seq(len(c.call.Items)), bloom.ItemDone, 0)
		return
	}
	batch := 0
	if !c.lostFilter() { // else they are not in one filter
		batch = s.nextBatch()
	}
	round := max(c.request(), len(r.States))
	for i := range c.call.Items {
		end := bloom.ItemNotDone
		switch {
		case r.End == Missing && s.of.MustExist && r.Safe:
		case c.lostFilter():
			end = bloom.ItemUnknown
		case i < r.Done:
			end = bloom.ItemDone
		case i >= r.Done+round:
		case r.End == Partly:
			end = r.States[i-r.Done]
		case r.End == Unknown:
			end = bloom.ItemUnknown
		}
		one := *c
		one.result.States = nil // of the last round alone; end has the item's
		one.result.Count = -1
		if end == bloom.ItemDone {
			one.result.End = Answered
		}
		s.oneStep(n, &one, []int{i}, end, batch)
	}
}
