package engine

import (
	"context"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

// A look-up, from the caller's item to the answer: Read is for one item,
// BeginRead, AppendRead and ReadAll are for many.

// Read looks an item up. If found is true, there is no error that matters.
func (r *Record) Read(ctx context.Context, item string, o Options) (found bool, err error) {
	q := r.BeginRead(ctx, o)
	defer q.Free()
	q.Items = append(q.oneItem[:0], item)
	r.Items.AppendRead(q, item)
	ReadAll(ctx, q.itself[:])
	return len(q.Found) > 0 && q.Found[0], q.Err
}

// ReadKindWord verifies the filter and returns the kind's own word.
func (r *Record) ReadKindWord(ctx context.Context) (word int64, err error) {
	q := r.BeginRead(ctx, Options{})
	defer q.Free()
	ReadAll(ctx, q.itself[:])
	return q.KindWord, q.Err
}

// BeginRead starts a command that verifies the filter, and then reads the cells
// of the items to come.
func (r *Record) BeginRead(ctx context.Context, o Options) *Request {
	q := newRequest(r, o)
	q.prepare(ctx, false)
	q.reset(false)
	q.Found = q.Found[:0]
	if r.Headed() {
		q.Cmd.Get(U53, 0)
		if r.Shape != nil {
			q.Cmd.Get(U53, format.KindOffset)
		}
		if q.Observer != nil {
			q.Cmd.Get(U53, format.BirthOffset)
		}
	}
	return q
}

// AppendRead appends an item to a look-up.
func (q *Request) AppendRead(item string) {
	q.Items = append(q.Items, item)
	q.Rec.Items.AppendRead(q, item)
}

// ReadAll sends look-ups together, as InParts does, and judges each by itself:
// Found is set for each item of a request without an error. The primary answers,
// or the nearest region if the handle or the client was made for that.
func ReadAll(ctx context.Context, reqs []*Request) {
	for _, q := range reqs {
		if q.Near() {
			q.Cmd.ReadOnly()
		}
	}
	if sent := prepareAll(ctx, reqs, false); len(sent) > 0 {
		ask(ctx, sent, (*Request).command, func(q *Request, reply upstash.Reply, err error) {
			q.Reply, q.Err = reply, err
		})
	}
	for _, q := range reqs {
		primary := !q.Near()
		if q.Err != nil {
			q.Err = explainRead(q.Err)
			if primary && fault.Is(q.Err, format.ErrNotFilter) {
				q.Rec.Refuse(q.Err)
			}
		} else {
			q.Err = q.JudgeRead(primary)
		}
		if q.Observer != nil { // of the answer, whatever becomes of what follows it
			q.Observer.Learn(ctx, q, primary)
		}
		if q.Err == nil && q.Rec.Timed != nil {
			q.Rec.Timed.FollowRead(ctx, q)
		}
		fault.OnlyReads(&q.Err)
	}
}

// Near reports whether the nearest region is asked.
func (q *Request) Near() bool {
	near := q.Rec.Nearest || q.Rec.Client.ReadOnly()
	return near && (q.Observer == nil || !q.Observer.WantsPrimary())
}

// JudgeRead judges the header and sets Found. Only an answer of the primary is
// remembered.
func (q *Request) JudgeRead(primary bool) error {
	err := q.readFound(primary)
	if err != nil {
		q.Found = q.Found[:0] // what a broken answer began with is no answer
	}
	return err
}

func (q *Request) readFound(primary bool) error {
	r := q.Rec
	if err := q.decode(q.Cmd.Len()); err != nil {
		return r.failedAt(!primary, err)
	}
	cells := q.Answers
	if r.Headed() {
		word, err := FieldWord(cells[0])
		if err != nil {
			return err
		}
		learn, learnKind := r.Learn, r.learnKind
		if !primary {
			learn, learnKind = r.compareNear, r.CompareKind
		}
		if err := learn(word); err != nil {
			return err
		}
		cells = cells[1:]
		if r.Shape != nil {
			if q.KindWord, err = FieldWord(cells[0]); err != nil {
				return err
			}
			if err := learnKind(q.KindWord); err != nil {
				return err
			}
			cells = cells[1:]
		}
		if q.Observer != nil {
			if q.BirthSeen, err = FieldWord(cells[0]); err != nil {
				return err
			}
			cells = cells[1:]
		}
	}
	return r.Items.JudgeRead(q, cells)
}

// JudgeReadBits finds the items all of whose bits are set.
func (q *Request) JudgeReadBits(answers []upstash.NullInt64) error {
	from := 0
	for _, end := range q.WordEnds {
		ones, err := CountOnes(answers[from:end])
		if err != nil {
			return err
		}
		q.Found = append(q.Found, ones == end-from)
		from = end
	}
	return nil
}

// JudgeReadWords finds the items all of whose words have the item's bits.
func (q *Request) JudgeReadWords(answers []upstash.NullInt64) error {
	from := 0
	for _, end := range q.WordEnds {
		all := true
		for i := from; i < end; i++ {
			word, err := FieldWord(answers[i])
			if err != nil {
				return err
			}
			all = all && word&q.Words[i].Mask == q.Words[i].Mask
		}
		q.Found = append(q.Found, all)
		from = end
	}
	return nil
}
