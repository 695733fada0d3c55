package engine

import (
	"context"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/synced"
	"github.com/upbloom/upbloom/upstash"
)

// How items are sent, for all types. All requests of a call share a client and
// travel in one HTTP request; each gets its own answer or error.

// send runs the requests' commands and sets each one's reply or error.
func Send(ctx context.Context, reqs []*Request) {
	if len(reqs) == 1 {
		q := reqs[0]
		q.Reply, q.Err = q.Rec.Client.Do(ctx, q.command())
		return
	}
	cmds := make([]upstash.Command, len(reqs))
	for i, q := range reqs {
		cmds[i] = q.command()
	}
	replies, err := reqs[0].Rec.Client.Pipeline(ctx, cmds...)
	for i, q := range reqs {
		if q.Err = err; err == nil {
			q.Reply, q.Err = replies[i], replies[i].Err()
		}
	}
}

// command is a BITFIELD or a script.
func (q *Request) command() upstash.Command {
	if q.script {
		if own := q.Rec.OwnScript(); own != nil {
			return own.Script(q)
		}
		return q.mustExistCommand()
	}
	return q.Cmd.Command()
}

// write sends writes and judges them. A request whose wrote.ok is true has its
// answers in added, and may have an error beside it: errUncertain or errNoTTL.
//
// A shape may have a command sent again, for another epoch or layer.
func Write(ctx context.Context, reqs []*Request) {
	for pending := ready(ctx, reqs, true); len(pending) > 0; {
		Send(ctx, pending)
		var again []*Request
		for _, q := range pending {
			if q.takeWrite(ctx) {
				again = append(again, q)
			}
		}
		pending = ready(ctx, again, true)
	}
	for _, q := range reqs {
		switch {
		case !q.Wrote.Uncertain():
		case q.Err != nil: // and a command that was sent again has failed
			q.Err = fault.Errorf("bloom: %w; %w", ErrUncertain, q.Err)
		default:
			q.Err = ErrUncertain
		}
	}
	settle(ctx, reqs)
}

// takeWrite judges the answer to a write, and reports whether it is to be sent
// again.
func (q *Request) takeWrite(ctx context.Context) (again bool) {
	first, decided, repeated := q.Wrote, q.Valid, q.Reply.MaybeRepeated()
	if q.Err != nil {
		q.Err = q.Rec.Failed(q.Err)
	} else {
		q.Err = q.JudgeWrite()
	}
	if own := q.Rec.OwnScript(); own != nil && q.Err != nil {
		q.Err = own.Failed(q, q.Err)
	}
	q.observe(true)
	if decided { // the first answer that counts
		q.Wrote = first
	}
	switch {
	case q.Err != nil && (q.Rounds > 0 || q.Grew && !q.Wrote.Ok):
		q.Err = &StepError{Err: q.Err, In: q.Valid, Grew: q.Grew}
		return false
	case q.Err != nil || q.Rec.Shape == nil || !q.Rec.Shape.Follow(ctx, q, true):
		return false
	}
	if !q.Valid { // nothing is decided yet
		q.Wrote = Written{}
	}
	q.earlier = q.earlier || repeated
	q.Rounds++
	return true
}

// ready returns the requests to send. The shape of a record may have to choose
// again what its request is for.
func ready(ctx context.Context, reqs []*Request, write bool) []*Request {
	var out []*Request
	for i, q := range reqs {
		if q.Rec.Shape == nil {
			continue
		}
		changed := q.Err == nil && q.Aim(ctx, write)
		if changed {
			q.encode()
		}
		if q.Err != nil && out == nil {
			out = append(make([]*Request, 0, len(reqs)), reqs[:i]...)
		}
	}
	if out == nil {
		return reqs
	}
	for _, q := range reqs[len(out):] {
		if q.Err == nil {
			out = append(out, q)
		}
	}
	return out
}

// aim has the shape choose what the request is for, and reports whether that
// changed.
func (q *Request) Aim(ctx context.Context, write bool) (changed bool) {
	if q.Rec.Shape == nil {
		return false
	}
	changed, err := q.Rec.Shape.Aim(ctx, q, write)
	switch {
	case err != nil && q.Rounds > 0:
		q.Err = &StepError{Err: err, In: q.Valid}
	case err != nil:
		q.Err = err
	}
	return changed
}

// A stepError is the error of one of several commands of a write: it was sent
// again after an answer, or with a script ahead of it. The items may be in.
type StepError struct {
	Err  error
	In   bool // they are in, and the answer beside the error holds
	Out  bool // they were not sent
	Grew bool // err is that of the items, and a script ahead of them may have grown the filter
	Safe bool // no command has changed anything
}

func (e *StepError) Error() string     { return e.Err.Error() }
func (e *StepError) Unwrap() error     { return e.Err }
func (e *StepError) SafeToRetry() bool { return e.Safe }

// lookUp sends reads and judges them: found is set for each item of a request
// without an error. If there is an error, a true in found still holds.
//
// The primary's answer counts. A region's answer counts if the handle or the
// client was made for that. Else only its "yes" counts, and the primary is asked
// about the rest.
func LookUp(ctx context.Context, reqs []*Request) {
	ask(ctx, reqs)
	for _, q := range reqs {
		fault.OnlyReads(&q.Err)
	}
}

func ask(ctx context.Context, reqs []*Request) {
	for _, q := range reqs {
		if q.Near() {
			q.Cmd.ReadOnly()
		}
	}
	sent := ready(ctx, reqs, false)
	if len(sent) > 0 {
		Send(ctx, sent)
	}
	var first, second []*Request
	for _, q := range reqs {
		denied := fault.IsDenied(q.Err)
		if q.Err == nil {
			q.judgeReadAndFollow(ctx, !q.Near())
		} else if q.Err = ExplainRead(q.Err); !q.Near() && fault.Is(q.Err, ErrNotFilter) {
			q.Rec.Refuse(q.Err)
		}
		q.observe(!q.Near())
		if more := q.askElsewhere(denied); more != nil {
			first, second = append(first, q), append(second, more)
		}
	}
	if len(second) == 0 {
		return
	}
	Send(synced.Looking(ctx), ready(ctx, second, false))
	for i, more := range second {
		first[i].merge(ctx, more)
		more.Free()
	}
}

// judgeReadAndFollow judges the answer to a look-up, and lets the shape do what
// has to follow.
func (q *Request) judgeReadAndFollow(ctx context.Context, primary bool) {
	if q.Err = q.JudgeRead(primary); q.Err == nil && q.Rec.Shape != nil {
		q.Rec.Shape.Follow(ctx, q, false)
	}
}

// askElsewhere returns the request to follow, or nil.
func (q *Request) askElsewhere(denied bool) *Request {
	switch {
	case !q.Near() && denied:
		// The token may not run BITFIELD, at least not on this key. A region may
		// still answer.
		more := q.repeat(q.Items)
		more.Cmd.ReadOnly()
		more.Region = true
		return more
	case !q.Near() || !q.Rec.NearestFirst || fault.NoAnswer(q.Err):
		return nil
	case q.Err != nil:
		return q.repeat(q.Items)
	}
	var open []string
	for i, item := range q.Items {
		if !q.Found[i] {
			open = append(open, item)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return q.repeat(open)
}

// repeat makes another request for some of the items.
func (q *Request) repeat(items []string) *Request {
	more := NewRequest(q.Rec)
	more.Observer = q.Observer
	more.BeginRead()
	for _, item := range items {
		more.Items = append(more.Items, item)
		more.GetItem(item)
	}
	return more
}

// merge takes the answers of the request that followed.
func (q *Request) merge(ctx context.Context, more *Request) {
	primary := q.Near() // the first answer was a region's
	denied := fault.IsDenied(more.Err)
	if more.Err == nil {
		more.judgeReadAndFollow(ctx, primary)
	} else {
		more.Err = ExplainRead(more.Err)
	}
	more.observe(primary)
	if len(q.Found) < len(q.Items) {
		q.Found = append(q.Found[:0], make([]bool, len(q.Items))...)
	}
	refusal := q.Err // if the primary was asked first
	q.Err, q.Word = more.Err, more.Word
	next, no := 0, more.Err == nil && len(q.Items) == 0 // a number is no more certain than a "no"
	for i := range q.Items {
		if q.Found[i] || next >= len(more.Found) {
			continue
		}
		q.Found[i] = more.Found[next]
		no = no || !q.Found[i]
		next++
	}
	switch {
	case primary && denied:
		q.Err = &regionError{"the token may not run BITFIELD, which asks the primary for what the" +
			" nearest region does not find: use a full token, or ReadsNearest", q.Err}
	case !primary && (no || fault.Is(q.Err, ErrNotFound)):
		q.Err = &regionError{q.Rec.behindText(), refusal}
	}
}
