package bloom

import (
	"context"
	"slices"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// An Answer is what one of many filters said of an item. It is plain data.
type Answer struct {
	// Yes is what Exists or Add of the one filter would have returned.
	Yes bool
	// Err is the error of this filter alone. Beside [ErrNoTTL], Yes holds.
	Err error
}

// ExistsIn looks one item up in many filters in one request: which of these
// users saw this post? It returns an answer for each filter, in order, and the
// first of their errors. Each filter is one billed command; the commands are
// not one transaction.
//
// Each filter has its own geometry and key. They must share a client, otherwise
// each answer has [upstash.ErrArgument]. If some of them ask the nearest region
// first, their second questions go together in one second request.
func ExistsIn(ctx context.Context, item string, filters ...*Filter) ([]Answer, error) {
	if err := shareClient(filters); err != nil || len(filters) == 0 {
		return refused(len(filters), err), err
	}
	ctx = filters[0].rec.Label(ctx, "bloom.ExistsIn")
	reqs := make([]*engine.Request, len(filters))
	defer freeAll(reqs)
	for i, f := range filters {
		reqs[i] = f.rec.BeginRead(ctx, engine.Call{})
		reqs[i].AppendRead(item)
	}
	engine.ReadAll(ctx, reqs)
	answers := make([]Answer, len(reqs))
	for i, q := range reqs {
		if len(q.Found) > 0 && q.Found[0] {
			answers[i].Yes = true
			continue
		}
		answers[i].Err = filters[i].allowMissing(q.Err)
	}
	return answers, firstError(answers)
}

// AddIn adds one item to many filters in one request. It returns an answer for
// each filter, in order, and the first of their errors. Each filter is one
// billed command (with [Config.MustExist] three). The commands run in the order
// of the filters, but are not one transaction: others may run between them, and
// some may have run although others failed. If a filter is named twice, the item
// is added to it twice. The filters must share a client, otherwise each answer
// has [upstash.ErrArgument]. [upstash.SafeToRetry] of the error reports whether no
// filter was changed, and that of an answer's error whether its filter was not.
func AddIn(ctx context.Context, item string, filters ...*Filter) ([]Answer, error) {
	if err := shareClient(filters); err != nil || len(filters) == 0 {
		return refused(len(filters), err), err
	}
	ctx = filters[0].rec.Label(ctx, "bloom.AddIn")
	answers := make([]Answer, len(filters))
	var reqs []*engine.Request // of the filters that may be written to
	var of []int
	for i, f := range filters {
		if answers[i].Err = f.rec.MayWrite(); answers[i].Err != nil {
			continue
		}
		q := f.rec.BeginWrite(ctx, engine.Call{})
		q.AppendWrite(item)
		reqs, of = append(reqs, q), append(of, i)
	}
	defer freeAll(reqs)
	engine.WriteAll(ctx, reqs)
	for n, i := range of {
		q := reqs[n]
		answers[i].Err = q.Err
		if q.Wrote.Applied && !q.Wrote.Uncertain {
			answers[i].Yes = q.Added[0]
			filters[i].notify(ctx, q.Wrote)
		}
	}
	err := firstError(answers)
	changed := func(a Answer) bool { return !upstash.SafeToRetry(a.Err) } // also without an error
	if err != nil && slices.ContainsFunc(answers, changed) {
		err = fault.MayHaveRun(err)
	}
	return answers, err
}

// shareClient returns an error if the filters do not share a client.
func shareClient(filters []*Filter) error {
	for i, f := range filters {
		switch {
		case f == nil:
			return fault.Errorf("bloom: %w: filters[%d] is nil", upstash.ErrArgument, i)
		case f.rec.Client != filters[0].rec.Client:
			return fault.Errorf("bloom: %w: filters[%d] has another client than filters[0], and one"+
				" request reaches one database; call once for each client", upstash.ErrArgument, i)
		}
	}
	return nil
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
	for i, a := range answers {
		if a.Err != nil {
			return fault.Errorf("bloom: filters[%d] of %d: %w", i, len(answers), a.Err)
		}
	}
	return nil
}
