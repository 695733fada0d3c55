package bloom

import (
	"context"
	"slices"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// An AnyFilter is what [AddIn] and [ExistsIn] take: a [*Filter], a [*Window] or a
// [*Scalable]. A slice of one type is passed as it is, and several types as
// AddIn[bloom.AnyFilter].
type AnyFilter interface {
	// inOne returns the handle, or nil if the filter is nil.
	inOne() *handle
}

func (f *Filter) inOne() *handle {
	if f == nil {
		return nil
	}
	return &f.handle
}

func (w *Window) inOne() *handle {
	if w == nil {
		return nil
	}
	return &w.handle
}

func (s *Scalable) inOne() *handle {
	if s == nil {
		return nil
	}
	return &s.handle
}

// An Answer is what one filter of an [AddIn] or [ExistsIn] said of the item.
type Answer struct {
	// Yes is what Exists or Add of the one filter would have returned.
	Yes bool
	// Err is the error of this filter alone.
	Err error
}

// ExistsIn looks one item up in many filters together: which of these users saw
// this post? One filter of items such as "user-7 post-9" answers that for one
// command, by [Filter.ExistsAll].
//
// It sends, answers and fails as [AddIn] does. It costs an Exists of each filter.
func ExistsIn[F AnyFilter](ctx context.Context, item string, filters ...F) ([]Answer, error) {
	handles, err := handlesOf(filters)
	if err != nil || len(handles) == 0 {
		return refused(len(filters), err), err
	}
	ctx = handles[0].rec.Label(ctx, "bloom.ExistsIn")
	o := engine.Options{Clock: new(engine.Clock)}
	reqs := make([]*engine.Request, len(handles))
	defer freeAll(reqs)
	for i, h := range handles {
		reqs[i] = h.rec.BeginRead(ctx, o)
		reqs[i].AppendRead(item)
	}
	engine.ReadAll(ctx, reqs)
	answers := make([]Answer, len(reqs))
	for i, q := range reqs {
		if len(q.Found) > 0 && q.Found[0] {
			answers[i].Yes = true
			continue
		}
		answers[i].Err = handles[i].allowMissing(q.Err)
	}
	return answers, firstError(answers)
}

// AddIn adds one item to many filters; [Filter.AddAll] adds many items to one. It
// returns an answer for each filter, in order, and the first of their errors.
//
// It sends one request, or several, one after the other, if one would be longer
// than [upstash.WithMaxRequest]. The commands run in order, but not as a
// transaction: some filters may have the item although others failed. If a request
// as a whole fails, the rest is not sent, and each of its answers has an error that
// says so. [upstash.SafeToRetry] of the error speaks of all filters, and that of an
// answer's error of one.
//
// In a [Window] the item's Span begins with the answer to its own command, also if
// that of another Window was late and is sent again.
//
// The filters must share a client, otherwise each answer has
// [upstash.ErrArgument]. It costs an Add of each filter. Name a [Scalable], or
// a filter with MustExist, last: see COSTS.md.
func AddIn[F AnyFilter](ctx context.Context, item string, filters ...F) ([]Answer, error) {
	handles, err := handlesOf(filters)
	if err != nil || len(handles) == 0 {
		return refused(len(filters), err), err
	}
	ctx = handles[0].rec.Label(ctx, "bloom.AddIn")
	o := engine.Options{Clock: new(engine.Clock)}
	answers := make([]Answer, len(handles))
	var reqs []*engine.Request // of the filters that may be written to
	var of []int
	for i, h := range handles {
		answers[i].Err = h.rec.MayWrite()
		if answers[i].Err != nil {
			continue
		}
		q := h.rec.BeginWrite(ctx, o)
		q.AppendWrite(item)
		reqs, of = append(reqs, q), append(of, i)
	}
	defer freeAll(reqs)
	engine.WriteAll(ctx, reqs)
	for n, i := range of {
		q := reqs[n]
		answers[i].Err = engine.Both(q.Err, q.NoTTL)
		if q.Wrote.Applied {
			answers[i].Yes = q.Added[0]
		}
	}
	err = firstError(answers)
	changed := func(a Answer) bool { return !upstash.SafeToRetry(a.Err) } // also without an error
	if err != nil && slices.ContainsFunc(answers, changed) {
		err = fault.MayHaveRun(err)
	}
	return answers, err
}

// handlesOf returns the filters' handles, or an error if they do not share a
// client.
func handlesOf[F AnyFilter](filters []F) ([]*handle, error) {
	handles := make([]*handle, len(filters))
	for i, f := range filters {
		if any(f) != nil { // F may be an interface
			handles[i] = f.inOne()
		}
		if handles[i] == nil {
			return nil, fault.Errorf("bloom: %w: filters[%d] is nil", upstash.ErrArgument, i)
		}
		if handles[i].rec.Client != handles[0].rec.Client {
			return nil, fault.Errorf("bloom: %w: filters[%d] has another client than filters[0], and one"+
				" request reaches one database; call once for each client", upstash.ErrArgument, i)
		}
	}
	return handles, nil
}

// refused returns n answers if nothing was sent. Each has the error: without it
// an answer would be a "no".
func refused(n int, err error) []Answer {
	return slices.Repeat([]Answer{{Err: err}}, n)
}

func freeAll(reqs []*engine.Request) {
	for _, q := range reqs {
		q.Free()
	}
}

func firstError(answers []Answer) error {
	isOut := func(a Answer) bool { return !InFilter(a.Err) }
	for i, a := range answers {
		if a.Err != nil {
			err := fault.Errorf("bloom: filters[%d] of %d: %w", i, len(answers), a.Err)
			return &answersError{err, !slices.ContainsFunc(answers, isOut)}
		}
	}
	return nil
}
