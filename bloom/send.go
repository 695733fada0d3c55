package bloom

import (
	"context"
	"errors"
	"fmt"

	"github.com/upbloom/upbloom/upstash"
)

// The one place that sends items. All requests of a call share a client and
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

// command is a BITFIELD, or the script of a write to a filter that must exist.
func (q *request) command() upstash.Command {
	if q.script {
		return q.mustExistCommand()
	}
	return q.cmd.Command()
}

// write sends writes and judges them. A request whose wrote.ok is true has its
// answers in added, and may have an error beside it: ErrUncertain or ErrNoTTL.
func write(ctx context.Context, reqs []*request) {
	send(ctx, reqs)
	for _, q := range reqs {
		if q.err != nil {
			q.err = q.rec.failed(q.err)
		} else {
			q.err = q.judgeWrite()
		}
		if q.tell(true); q.err != nil {
			continue
		}
		if q.wrote.uncertain() && !q.isOwnCreation(ctx) {
			q.err = ErrUncertain
		}
		if err := q.rec.settle(ctx, q.wrote); err != nil {
			if q.err = err; q.wrote.uncertain() {
				q.err = fmt.Errorf("%w; %w", ErrUncertain, err)
			}
		}
	}
}

// isOwnCreation resolves a write that finds all of its bits set after an
// attempt whose reply was lost. If the filter has the birth number of this
// write, that attempt made the filter, and its items were added to an empty one.
func (q *request) isOwnCreation(ctx context.Context) bool {
	r := q.rec
	if !r.headed() || r.must || !r.hasBirth(ctx, q.birth) {
		return false
	}
	q.wrote.created = true
	set := make(map[uint64]bool, len(q.items)*r.geo.Hashes)
	for i, item := range q.items {
		q.added[i] = false
		q.pos = r.geo.Positions(q.pos[:0], item)
		for _, p := range q.pos {
			q.added[i] = q.added[i] || !set[p]
			set[p] = true
		}
	}
	return true
}

// lookUp sends reads and judges them: found is set for each item of a request
// without an error. If there is an error, a true in found still holds.
//
// The primary's answer counts. A region's answer counts if the handle or the
// client was made for that. Else only its "yes" counts, and the primary is asked
// about the rest.
func lookUp(ctx context.Context, reqs []*request) {
	for _, q := range reqs {
		if q.near() {
			q.cmd.ReadOnly()
		}
	}
	send(ctx, reqs)
	var first, second []*request
	for _, q := range reqs {
		denied := isDenied(q.err)
		if q.err == nil {
			q.err = q.judgeRead(!q.near())
		} else if q.err = explainRead(q.err); !q.near() && errors.Is(q.err, ErrNotFilter) {
			q.rec.refuse(q.err)
		}
		q.tell(!q.near())
		if more := q.askElsewhere(denied); more != nil {
			first, second = append(first, q), append(second, more)
		}
	}
	if len(second) == 0 {
		return
	}
	send(ctx, second)
	for i, more := range second {
		first[i].merge(more)
		more.free()
	}
}

// askElsewhere returns the request that has to follow, or nil.
func (q *request) askElsewhere(denied bool) *request {
	switch {
	case !q.near() && denied:
		// The token may not run BITFIELD, at least not on this key. A region may
		// still answer.
		more := q.repeat(q.items)
		more.cmd.ReadOnly()
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

// repeat makes a request for some of the items anew.
func (q *request) repeat(items []string) *request {
	more := newRequest(q.rec)
	more.learner = q.learner
	more.beginRead()
	for _, item := range items {
		more.items = append(more.items, item)
		more.getItem(item)
	}
	return more
}

// merge takes the answers of the request that followed.
func (q *request) merge(more *request) {
	primary := q.near() // the first answer was a region's
	denied := isDenied(more.err)
	if more.err == nil {
		more.err = more.judgeRead(primary)
	} else {
		more.err = explainRead(more.err)
	}
	more.tell(primary)
	if len(q.found) < len(q.items) {
		q.found = append(q.found[:0], make([]bool, len(q.items))...)
	}
	q.err = more.err
	next, no := 0, false
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
	case !primary && (no || errors.Is(q.err, ErrNotFound)):
		q.err = &regionError{"the token may not run BITFIELD, and the \"no\" of a BITFIELD_RO may be" +
			" that of a replica that lags: use a full token, or accept it with upstash.WithReadOnly" +
			" or Config.Reads", nil}
	}
}

// isDenied reports whether the token may not run the command.
func isDenied(err error) bool {
	var server *upstash.Error
	return errors.As(err, &server) && server.Code() == "NOPERM"
}

// noAnswer reports whether a call ended without an answer. A second request would
// end in the same way.
func noAnswer(err error) bool {
	var call *upstash.CallError
	return errors.As(err, &call) && !errors.Is(err, upstash.ErrBadResponse)
}
