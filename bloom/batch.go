package bloom

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/upstash"
)

// AddAll adds items and reports for each whether it was new, as if they had
// been added one after another: of equal ones only the first can be new. A
// request carries 1 MiB, about 10,000 items at 1 in 100, or what
// [upstash.WithMaxRequest] allows; four are under way at once.
//
// If a request fails, the error is a [*BatchError], beside the answers of the
// items that are done. If the filter vanishes between two requests, it wraps
// [ErrRecreated], [ErrNotFound] or the error of the other data, and all items
// that were sent are [ItemUnknown].
func (f *Filter) AddAll(ctx context.Context, items []string) ([]bool, error) {
	ctx = f.rec.Label(ctx, "bloom.AddAll")
	return f.writeAll(ctx, items, engine.Options{})
}

// writeAll adds items, or removes them if the options say so.
func (h *handle) writeAll(ctx context.Context, items []string, o engine.Options) ([]bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if err := h.rec.MayWrite(); err != nil {
		return nil, err
	}
	return h.run(ctx, h.newBatch(items, true, o))
}

// ExistsAll is Exists for many items, each at some moment of the call, in requests
// like those of AddAll.
func (h *handle) ExistsAll(ctx context.Context, items []string) ([]bool, error) {
	return h.existsAll(h.label(ctx, "ExistsAll"), items, engine.Options{})
}

func (h *handle) existsAll(ctx context.Context, items []string, o engine.Options) ([]bool, error) {
	if len(items) == 0 {
		return nil, nil
	}
	return h.run(ctx, h.newBatch(items, false, o))
}

// newBatch makes the batch of items that all go to the handle's record.
func (h *handle) newBatch(items []string, adding bool, o engine.Options) *engine.Batch {
	b := &engine.Batch{
		Lanes: make([]engine.Lane, 1), Items: items, Options: o, Adding: adding,
		Bytes: h.bytes, Parallel: h.parallel, Missing: h.allowMissing,
	}
	b.Lanes[0].Rec = &h.rec.Record
	return b
}

func (h *handle) run(ctx context.Context, b *engine.Batch) ([]bool, error) {
	b.Run(ctx)
	if b.Err == nil {
		return b.Answers, nil
	}
	return b.Answers, &BatchError{Items: statesOf(b), Err: b.Err, reads: !b.Adding}
}

// statesOf returns what is known of the items of a batch.
func statesOf(b *engine.Batch) []ItemState {
	states := make([]ItemState, len(b.States))
	for i, s := range b.States {
		states[i] = ItemState(s)
	}
	return states
}

// ItemState is what is known of one item after a batch that failed.
type ItemState uint8

const (
	// ItemNotDone: the item was certainly not added, or its look-up brought no
	// answer.
	ItemNotDone ItemState = iota
	// ItemDone: the item's answer holds.
	ItemDone
	// ItemUncertain: the item is in, but whether it was new is not known.
	ItemUncertain
	// ItemUnknown: the item may have been added or removed, and has no answer.
	ItemUnknown
)

// String returns the state in words.
func (s ItemState) String() string {
	return nameOf("ItemState", s, "not done", "done", "uncertain", "unknown")
}

func (s ItemState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// BatchError is returned by [Filter.AddAll], [Filter.AddSeq],
// [Cuckoo.RemoveAll] and [Filter.ExistsAll], of any type, if a request failed.
// If you call again, an item of unknown state may answer "seen", and a [Cuckoo]
// may store or remove a second copy of it.
type BatchError struct {
	// Items has the state of each item of the batch, by its index.
	Items []ItemState
	// Err is the first failure, of those that may have run if there are any,
	// and of a Cuckoo [ErrUncertain] then. That of a filter that vanished comes before.
	Err error

	reads bool // it is an ExistsAll's
	more  bool // it is an AddSeq's, whose sequence was not read to its end
	later bool // and earlier rounds have added items
}

// Count is the number of items in a state.
func (e *BatchError) Count(s ItemState) int {
	n := 0
	for _, state := range e.Items {
		if state == s {
			n++
		}
	}
	return n
}

func (e *BatchError) Error() string {
	text := fmt.Sprintf("bloom: %d of %d items done", e.Count(ItemDone), len(e.Items))
	for _, s := range []ItemState{ItemUncertain, ItemUnknown, ItemNotDone} {
		if n := e.Count(s); n > 0 {
			text += fmt.Sprintf(", %d %v", n, s)
		}
	}
	return text + ": " + ofMany(e.Err)
}

// ofMany is TextOf, but speaks of several items if the error is ErrUncertain, which
// speaks of one.
func ofMany(err error) string {
	return strings.Replace(fault.TextOf(err), fault.TextOf(ErrUncertain), "the uncertain ones are in the filter, and it"+
		" is not known which of them were new: earlier attempts may have added them; treat them as new if doing the"+
		" work twice is better than never", 1)
}

// SafeToRetry reports whether certainly nothing of the batch was done, nor of
// earlier rounds of a [Filter.AddSeq]. It is true after [Filter.ExistsAll].
func (e *BatchError) SafeToRetry() bool {
	return e.reads || !e.later && e.Count(ItemNotDone) == len(e.Items) && upstash.SafeToRetry(e.Err)
}

func (e *BatchError) Unwrap() error { return e.Err }

// answersError is the first error of an [AddIn] or an [ExistsIn].
type answersError struct {
	err   error
	inAll bool // after AddIn: the item is in all filters
}

func (e *answersError) Error() string { return e.err.Error() }
func (e *answersError) Unwrap() error { return e.err }

// InFilter reports whether all items are in the filter after a [Filter.Add],
// [Filter.AddAll] or [Filter.AddSeq] that returned err: err is nil, or says
// only that items may not have been new, or that the TTL is not set. Of an
// [AddIn] it means all filters, of an [Answer].Err that one.
func InFilter(err error) bool {
	if in, ok := fault.As[*answersError](err); ok {
		return in.inAll
	}
	if batch, ok := fault.As[*BatchError](err); ok {
		return !batch.more && batch.Count(ItemDone)+batch.Count(ItemUncertain) == len(batch.Items)
	}
	if _, copies := fault.As[*copiesError](err); copies || fault.Is(err, engine.ErrTaken) {
		return false
	}
	return err == nil || fault.Is(err, ErrUncertain) || fault.Is(err, ErrNoTTL)
}

// AddResult is what [Filter.AddSeq] or [Local.AddSeq] did.
type AddResult struct {
	// Items is how many items of the sequence are in, from its start; equal
	// ones count each time. To go on after an error, skip so many.
	Items uint64
	// New is how many items were certainly new, those of a failed round too.
	New uint64
	// Uncertain is how many of Items may have been new as well, because an
	// attempt to add them was lost.
	Uncertain uint64
}

// AddSeq adds the items of a sequence of any length, in rounds of four
// requests. After a lost answer it goes on, and returns [ErrUncertain] at the
// end: see [AddResult.Uncertain].
//
// If a round fails, the error is a [*BatchError] about this round alone, which
// begins at [AddResult.Items] in the sequence. Add [BatchError.Remaining] of
// its items again, and go on behind them. If the filter vanishes between two
// requests, AddResult is zero: begin again.
func (f *Filter) AddSeq(ctx context.Context, items iter.Seq[string], opts ...MoveOption) (AddResult, error) {
	ctx = f.rec.Label(ctx, "bloom.AddSeq")
	part := min(max(1, f.bytes/f.rec.Items.ItemBytes(true)), engine.MaxPartItems)
	most := uint64(part) * uint64(min(f.parallel, engine.MaxPartItems))
	a := seqAdder{f: f, progress: f.moves(opts).Progress}
	for item := range items {
		a.round = append(a.round, item)
		if uint64(len(a.round)) < most {
			continue
		}
		if err := a.add(ctx); err != nil {
			return a.result, err
		}
	}
	err := a.add(ctx)
	if err != nil {
		return a.result, err
	}
	if a.unsure != nil {
		err = &uncertainError{a.result, a.unsure}
	}
	return a.result, engine.Both(err, a.noTTL)
}

// A seqAdder is an AddSeq under way.
type seqAdder struct {
	f        *Filter
	progress func(done, total int64)
	round    []string     // the items to add next
	birth    engine.Birth // of the filter of the earlier rounds
	result   AddResult
	unsure   error // of a round, some items of which may have been new
	noTTL    error // of the last round: the TTL may not be set
}

// add adds the items of a round. After an error AddSeq ends.
func (a *seqAdder) add(ctx context.Context) error {
	if len(a.round) == 0 {
		return nil
	}
	if err := a.f.rec.MayWrite(); err != nil {
		return a.gone(err, a.result.Items == 0) // the handle has met other data
	}
	b := a.f.newBatch(a.round, true, engine.Options{})
	// Every round compares its birth number with that of the rounds before.
	filter := &b.Lanes[0]
	b.Split, filter.Birth = true, a.birth
	added, err := a.f.run(ctx, b)
	if filter.Gone != nil {
		return a.gone(b.Err, a.result.Items == 0 && upstash.SafeToRetry(err))
	}
	for _, isNew := range added {
		if isNew {
			a.result.New++
		}
	}
	if failed, ok := fault.As[*BatchError](err); ok {
		if b.Fatal {
			failed.more, failed.later = true, a.result.Items > 0
			return err
		}
		if n := failed.Count(ItemUncertain); n > 0 {
			a.result.Uncertain += uint64(n)
			a.unsure = ErrUncertain
		}
	}
	a.noTTL = filter.NoTTL
	a.birth = filter.Birth
	a.result.Items += uint64(len(a.round))
	a.round = a.round[:0]
	if a.progress != nil {
		a.progress(int64(a.result.Items), -1)
	}
	return nil
}

// gone returns the error of a filter that is not there any more, nor what was
// added to it.
func (a *seqAdder) gone(err error, unchanged bool) error {
	a.result = AddResult{}
	if unchanged {
		return err
	}
	return fault.MayHaveRun(err)
}

// uncertainError is the error of an AddSeq that has added the whole sequence.
type uncertainError struct {
	result AddResult
	err    error
}

func (e *uncertainError) Error() string {
	return fmt.Sprintf("bloom: %d of %d items done, %d %v: %s", e.result.Items-e.result.Uncertain,
		e.result.Items, e.result.Uncertain, ItemUncertain, ofMany(e.err))
}

func (e *uncertainError) Unwrap() error     { return e.err }
func (e *uncertainError) SafeToRetry() bool { return false }

// Remaining returns those of the failed batch's items that are not certainly
// in: add them again. If the number of items is another, it returns all.
func (e *BatchError) Remaining(items []string) []string {
	if len(items) != len(e.Items) {
		return items
	}
	var out []string
	for i, s := range e.Items {
		if s == ItemNotDone || s == ItemUnknown {
			out = append(out, items[i])
		}
	}
	return out
}

const (
	minPartBytes = 1 << 10
	maxPartBytes = 8 << 20
)

// A MoveOption sets how a whole filter is uploaded or downloaded, as by
// [Filter.Load] and [Filter.Snapshot]. Of a [Filter.AddSeq] only [WithProgress]
// counts.
type MoveOption func(*moveConfig)

type moveConfig struct{ engine.Moves }

// WithPartBytes sets how many bytes of the string one request carries, from 1
// KiB to 8 MiB, and at most [upstash.WithMaxRequest]; the default is 1 MiB. An
// upload of more than 1,000 parts takes larger ones.
func WithPartBytes(n int) MoveOption {
	return func(c *moveConfig) { c.PartBytes = min(max(n, minPartBytes), maxPartBytes) }
}

// WithProgress sets a function to call with the bytes moved so far and the
// bytes in all, one call at a time: at the start, and after each part. An
// AddSeq calls it after each round, with the items added so far, and -1.
func WithProgress(f func(done, total int64)) MoveOption {
	return func(c *moveConfig) { c.Progress = f }
}

func (h *handle) moves(opts []MoveOption) engine.Moves {
	return movesOf(h.rec.Client, h.parallel, opts)
}

func movesOf(c *upstash.Client, parallel int, opts []MoveOption) engine.Moves {
	moves := moveConfig{engine.Moves{PartBytes: batchBytes, Parallel: parallel}}
	for _, o := range opts {
		if o != nil {
			o(&moves)
		}
	}
	moves.PartBytes = min(moves.PartBytes, door.MaxRequest(c))
	return moves.Moves
}

func init() {
	door.SetBatch = func(f any, bytes, parallel int) {
		f.(interface{ setBatch(bytes, parallel int) }).setBatch(bytes, parallel)
	}
	door.InParts = func(bytes, parallel int) any {
		return MoveOption(func(c *moveConfig) { c.PartBytes, c.Parallel = bytes, parallel })
	}
}

func (h *handle) setBatch(bytes, parallel int) {
	h.bytes, h.parallel = cmp.Or(bytes, h.bytes), cmp.Or(parallel, h.parallel)
}
