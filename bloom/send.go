package bloom

import (
	"context"

	"github.com/upbloom/upbloom/internal/synced"
	"github.com/upbloom/upbloom/upstash"
)

// How items are sent, for all types. All requests of a call share a client and
// travel in one HTTP request; each gets its own answer or error.

// send runs the requests' commands and sets each one's reply or error.
func send(ctx context.Context, reqs []*request) {
	if len(reqs) == 1 {
		q := reqs[0]
		q.reply, q.err = q.rec.client.Do(ctx, q.command())
		return
	}
	cmds := make([]upstash.Command, len(reqs))
	for i, q := range reqs {
		cmds[i] = q.command()
	}
	replies, err := reqs[0].rec.client.Pipeline(ctx, cmds...)
	for i, q := range reqs {
		if q.err = err; err == nil {
			q.reply, q.err = replies[i], replies[i].Err()
		}
	}
}

// command is a BITFIELD or a script.
func (q *request) command() upstash.Command {
	if q.script {
		if own := q.rec.ownScript(); own != nil {
			return own.script(q)
		}
		return q.mustExistCommand()
	}
	return q.cmd.Command()
}

// write sends writes and judges them. A request whose wrote.ok is true has its
// answers in added, and may have an error beside it: ErrUncertain or ErrNoTTL.
//
// A shape may have a command sent again, for another epoch or layer.
func write(ctx context.Context, reqs []*request) {
	for pending := ready(ctx, reqs, true); len(pending) > 0; {
		send(ctx, pending)
		var again []*request
		for _, q := range pending {
			if q.takeWrite(ctx) {
				again = append(again, q)
			}
		}
		pending = ready(ctx, again, true)
	}
	for _, q := range reqs {
		switch {
		case !q.wrote.uncertain():
		case q.err != nil: // and a command that was sent again has failed
			q.err = errorf("bloom: %w; %w", ErrUncertain, q.err)
		default:
			q.err = ErrUncertain
		}
	}
	settle(ctx, reqs)
}

// takeWrite judges the answer to a write, and reports whether it is to be sent
// again.
func (q *request) takeWrite(ctx context.Context) (again bool) {
	first, decided, repeated := q.wrote, q.valid, q.reply.MaybeRepeated()
	if q.err != nil {
		q.err = q.rec.failed(q.err)
	} else {
		q.err = q.judgeWrite()
	}
	if own := q.rec.ownScript(); own != nil && q.err != nil {
		q.err = own.failed(q, q.err)
	}
	q.observe(true)
	if decided { // the first answer that counts
		q.wrote = first
	}
	switch {
	case q.err != nil && (q.rounds > 0 || q.grew && !q.wrote.ok):
		q.err = &stepError{err: q.err, in: q.valid, grew: q.grew}
		return false
	case q.err != nil || q.rec.shape == nil || !q.rec.shape.follow(ctx, q, true):
		return false
	}
	if !q.valid { // nothing is decided yet
		q.wrote = written{}
	}
	q.earlier = q.earlier || repeated
	q.rounds++
	return true
}

// ready returns the requests to send. The shape of a record may have to choose
// again what its request is for.
func ready(ctx context.Context, reqs []*request, write bool) []*request {
	var out []*request
	for i, q := range reqs {
		if q.rec.shape == nil {
			continue
		}
		changed := q.err == nil && q.aim(ctx, write)
		if changed {
			q.encode()
		}
		if q.err != nil && out == nil {
			out = append(make([]*request, 0, len(reqs)), reqs[:i]...)
		}
	}
	if out == nil {
		return reqs
	}
	for _, q := range reqs[len(out):] {
		if q.err == nil {
			out = append(out, q)
		}
	}
	return out
}

// aim has the shape choose what the request is for, and reports whether that
// changed.
func (q *request) aim(ctx context.Context, write bool) (changed bool) {
	if q.rec.shape == nil {
		return false
	}
	changed, err := q.rec.shape.aim(ctx, q, write)
	switch {
	case err != nil && q.rounds > 0:
		q.err = &stepError{err: err, in: q.valid}
	case err != nil:
		q.err = err
	}
	return changed
}

// A stepError is the error of one of several commands of a write: it was sent
// again after an answer, or with a script ahead of it. The items may be in.
type stepError struct {
	err  error
	in   bool // they are in, and the answer beside the error holds
	out  bool // they were not sent
	grew bool // err is that of the items, and a script ahead of them may have grown the filter
	safe bool // no command has changed anything
}

func (e *stepError) Error() string     { return e.err.Error() }
func (e *stepError) Unwrap() error     { return e.err }
func (e *stepError) SafeToRetry() bool { return e.safe }

// lookUp sends reads and judges them: found is set for each item of a request
// without an error. If there is an error, a true in found still holds.
//
// The primary's answer counts. A region's answer counts if the handle or the
// client was made for that. Else only its "yes" counts, and the primary is asked
// about the rest.
func lookUp(ctx context.Context, reqs []*request) {
	ask(ctx, reqs)
	for _, q := range reqs {
		onlyReads(&q.err)
	}
}

func ask(ctx context.Context, reqs []*request) {
	for _, q := range reqs {
		if q.near() {
			q.cmd.ReadOnly()
		}
	}
	sent := ready(ctx, reqs, false)
	if len(sent) > 0 {
		send(ctx, sent)
	}
	var first, second []*request
	for _, q := range reqs {
		denied := isDenied(q.err)
		if q.err == nil {
			q.judgeReadAndFollow(ctx, !q.near())
		} else if q.err = explainRead(q.err); !q.near() && is(q.err, ErrNotFilter) {
			q.rec.refuse(q.err)
		}
		q.observe(!q.near())
		if more := q.askElsewhere(denied); more != nil {
			first, second = append(first, q), append(second, more)
		}
	}
	if len(second) == 0 {
		return
	}
	send(synced.Looking(ctx), ready(ctx, second, false))
	for i, more := range second {
		first[i].merge(ctx, more)
		more.free()
	}
}

// judgeReadAndFollow judges the answer to a look-up, and lets the shape do what
// has to follow.
func (q *request) judgeReadAndFollow(ctx context.Context, primary bool) {
	if q.err = q.judgeRead(primary); q.err == nil && q.rec.shape != nil {
		q.rec.shape.follow(ctx, q, false)
	}
}

// askElsewhere returns the request to follow, or nil.
func (q *request) askElsewhere(denied bool) *request {
	switch {
	case !q.near() && denied:
		// The token may not run BITFIELD, at least not on this key. A region may
		// still answer.
		more := q.repeat(q.items)
		more.cmd.ReadOnly()
		more.region = true
		return more
	case !q.near() || q.rec.reads != ReadsNearestFirst || noAnswer(q.err):
		return nil
	case q.err != nil:
		return q.repeat(q.items)
	}
	var open []string
	for i, item := range q.items {
		if !q.found[i] {
			open = append(open, item)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return q.repeat(open)
}

// repeat makes another request for some of the items.
func (q *request) repeat(items []string) *request {
	more := newRequest(q.rec)
	more.observer = q.observer
	more.beginRead()
	for _, item := range items {
		more.items = append(more.items, item)
		more.getItem(item)
	}
	return more
}

// merge takes the answers of the request that followed.
func (q *request) merge(ctx context.Context, more *request) {
	primary := q.near() // the first answer was a region's
	denied := isDenied(more.err)
	if more.err == nil {
		more.judgeReadAndFollow(ctx, primary)
	} else {
		more.err = explainRead(more.err)
	}
	more.observe(primary)
	if len(q.found) < len(q.items) {
		q.found = append(q.found[:0], make([]bool, len(q.items))...)
	}
	refusal := q.err // if the primary was asked first
	q.err, q.word = more.err, more.word
	next, no := 0, more.err == nil && len(q.items) == 0 // a number is no more certain than a "no"
	for i := range q.items {
		if q.found[i] || next >= len(more.found) {
			continue
		}
		q.found[i] = more.found[next]
		no = no || !q.found[i]
		next++
	}
	switch {
	case primary && denied:
		q.err = &regionError{"the token may not run BITFIELD, which asks the primary for what the" +
			" nearest region does not find: use a full token, or ReadsNearest", q.err}
	case !primary && (no || is(q.err, ErrNotFound)):
		q.err = &regionError{q.rec.behindText(), refusal}
	}
}
