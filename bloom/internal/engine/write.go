package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/lots"
	"github.com/upbloom/upbloom/upstash"
)

// A write, from the caller's item to the answer: Write is for one item, and
// BeginWrite, AppendWrite and WriteAll are for many. If an answer is lost, package
// upstash sends the command again: encodeHead says why it may. The next answer then
// says that an earlier attempt may have run, and JudgeItem what it proves.

// Write adds an item, or removes it if the options say so, and reports whether it
// was new, or there. After ErrNoTTL it is in, too, and after ErrUncertain, unless the
// record is a Cuckoo's.
func (r *Record) Write(ctx context.Context, item string, o Options) (added bool, err error) {
	if err := r.MayWrite(); err != nil {
		return false, err
	}
	q := r.BeginWrite(ctx, o)
	defer q.Free()
	q.Items = append(q.oneItem[:0], item)
	r.Items.AppendWrite(q, item)
	WriteAll(ctx, q.itself[:])
	return q.Wrote.Applied && q.Added[0], Both(q.Err, q.NoTTL)
}

// MayWrite returns an error if a write is known to fail or to do harm.
func (r *Record) MayWrite() error {
	if err := r.refused.Load(); err != nil {
		return fault.Untouched(fault.Errorf("bloom: %w; an earlier call saw this, and the handle writes nothing more"+
			" to the key: look an item up first, if the filter is back or the key is free", *err))
	}
	if r.Client.ReadOnly() {
		return upstash.ErrReadOnly
	}
	return nil
}

// BeginWrite starts a command that creates the filter if there is none, verifies
// it, and then sets the bits of the items to come.
func (r *Record) BeginWrite(ctx context.Context, o Options) *Request {
	q := newRequest(r, o)
	q.prepare(ctx, true)
	q.encodeHead()
	return q
}

// NewBirth draws the birth number of a command.
func (r *Record) NewBirth() int64 { return format.NewBirth(lots.Uint64(), r.Rate) }

// Numbered puts a birth number into a script, as door.Numbered does: each attempt
// carries its own. If one comes late, after the filter that another attempt made has
// gone, it makes another filter.
func Numbered(c upstash.Command, birth int64) upstash.Command {
	door.Numbered(&c, birth)
	return c
}

// AppendWrite appends an item to a write.
func (q *Request) AppendWrite(item string) {
	q.Items = append(q.Items, item)
	q.Rec.Items.AppendWrite(q, item)
}

// encodeHead writes the operations before those of the items, if the kind does not
// write by a script of its own:
//
//	INCRBY u53 0 header   the header if there was none, else null
//	GET u53 0             the header now
//	INCRBY u53 64 birth   this attempt's birth number, null if there was one
//
// Header and birth number have their top bit set: under OVERFLOW FAIL a second
// INCRBY overflows and changes nothing. So one BITFIELD both creates a filter
// and verifies it. The kind's word follows in the same way, and then bit 127 and
// the birth number, if they are asked for.
//
// Therefore the command may be repeated after an attempt of unknown outcome: all
// it does is to set what is zero, and bits. A second run leaves the string as the
// first did. Only its answers differ, and JudgeItem takes no "seen" from them.
func (q *Request) encodeHead() {
	r, b := q.Rec, &q.Cmd
	q.reset(r.MustExist || r.Scripted != nil)
	q.Birth = r.NewBirth() // another for each command of a call
	if !r.Headed() || q.isScript {
		return
	}
	q.readsSettled = r.TTL != 0
	q.readsBirth = q.CompareBirth || q.Observer != nil || q.readsSettled // which filter gets the TTL
	b.Overflow(upstash.Fail).IncrBy(U53, 0, r.Header).Get(U53, 0).
		IncrBy(U53, format.BirthOffset, q.Birth)
	if r.Shape != nil {
		b.IncrBy(U53, format.KindOffset, r.Shape.KindWord(q)).Get(U53, format.KindOffset)
	}
	if q.readsSettled {
		b.Get("u1", format.SettledOffset)
	}
	if q.readsBirth {
		b.Get(U53, format.BirthOffset)
	}
	b.Overflow(upstash.Wrap)
	door.Numbered(b, q.Birth)
}

// WriteAll sends writes together, as InParts does, and judges each by itself. A
// request whose Wrote.Applied is true has its answers in Added, and may have an
// error beside it: ErrUncertain, for the items in Uncertain, and NoTTL.
//
// A Window is asked in this order about each command. Prepare chooses its epoch,
// before the command is written and once more before it is sent. JudgeWrite notes
// which panes held the items, as the answer says. Judge decides about the items,
// if the answer came in time. Follow turns the window if its time has come, and
// may have the command sent again, for another epoch: all of those go together
// once more, which begins with Prepare. No answer is followed before all
// are judged: what follows one takes time, and would make the next one late.
func WriteAll(ctx context.Context, reqs []*Request) {
	for pending := prepareAll(ctx, reqs, true); len(pending) > 0; {
		ask(ctx, pending, (*Request).command, func(q *Request, reply upstash.Reply, err error) {
			q.takeWrite(ctx, reply, err)
		})
		var again []*Request
		for _, q := range pending {
			if q.follow(ctx) {
				again = append(again, q)
			}
		}
		pending = prepareAll(ctx, again, true)
	}
	for _, q := range reqs { // if its last command brought no answer, FailAfter has marked it as uncertain
		if q.Wrote.Applied && q.Wrote.Uncertain {
			q.Err = Both(ErrUncertain, q.Err)
		}
	}
	settle(ctx, reqs)
}

// follow does what an answer to a Window calls for, and reports whether the
// command is sent again.
func (q *Request) follow(ctx context.Context) (again bool) {
	if q.Rec.Timed == nil || q.Err != nil {
		return false
	}
	again, q.inFilter = q.Rec.Timed.Follow(ctx, q)
	if again {
		q.Wrote = q.Wrote.undecided(false)
		q.Resends++
	}
	return again
}

// prepareAll prepares the requests of Windows again, and returns those to send.
// A write whose epoch has changed is encoded again, and one that is sent again,
// which needs a birth number of its own.
func prepareAll(ctx context.Context, reqs []*Request, write bool) []*Request {
	failed := false
	for _, q := range reqs {
		if q.Err == nil && (q.prepare(ctx, write) || q.Resends > 0) {
			q.encodeHead()
			for _, item := range q.Items {
				q.Rec.Items.AppendWrite(q, item)
			}
		}
		failed = failed || q.Err != nil
	}
	if !failed {
		return reqs
	}
	return slices.DeleteFunc(slices.Clone(reqs), func(q *Request) bool { return q.Err != nil })
}

// prepare has a Window choose the epoch of the request, and reports whether that
// changed.
func (q *Request) prepare(ctx context.Context, write bool) (changed bool) {
	if q.Rec.Timed == nil {
		return false
	}
	changed, err := q.Rec.Timed.Prepare(ctx, q, write)
	if err != nil && q.Resends > 0 {
		q.FailAfter(err, q.inFilter)
	} else if err != nil {
		q.Err = err
	}
	return changed
}

// ask sends a command for each request together, as InParts does, and has take the
// answers.
func ask(ctx context.Context, reqs []*Request, command func(*Request) upstash.Command,
	take func(*Request, upstash.Reply, error),
) {
	c := reqs[0].Rec.Client
	if len(reqs) == 1 {
		reply, err := c.Do(ctx, command(reqs[0]))
		take(reqs[0], reply, err)
		return
	}
	cmds := make([]upstash.Command, len(reqs))
	for i, q := range reqs {
		cmds[i] = command(q)
	}
	InParts(ctx, c, cmds, func(i int, reply upstash.Reply, err error) {
		if err == nil {
			err = reply.Err()
		}
		take(reqs[i], reply, err)
	})
}

func (q *Request) command() upstash.Command {
	r := q.Rec
	if !q.isScript {
		return q.Cmd.Command()
	}
	if r.Scripted != nil {
		return r.Scripted.Script(q)
	}
	c := r.kindScript(mustExistScript, nil, q.ScriptOps...).Repeatable(true)
	if len(q.ScriptOps) <= scriptOps {
		return c.AllOrNothing()
	}
	return c
}

// mustExistScript runs the operations ARGV[4] and on, if the string is there
// and of the record's kind. An operation is the offset of a bit to set, or "g"
// and the offset of a word to read. The script returns the old values behind the
// words. Lua unpacks no more than
// some thousands of values at once, so it runs scriptOps operations at a time.
// It may fail between two of these writes, if the string grows beyond a limit.
var mustExistScript = upstash.NewScript(LuaCheckHeader + luaCheckKind + `local out, ops = w, {}
for i = 4, #ARGV do
  local o = ARGV[i]
  if string.byte(o) == 103 then
    ops[#ops + 1] = 'GET'
    ops[#ops + 1] = 'u53'
    ops[#ops + 1] = string.sub(o, 2)
  else
    ops[#ops + 1] = 'SET'
    ops[#ops + 1] = 'u1'
    ops[#ops + 1] = o
    ops[#ops + 1] = '1'
  end
  if #ops >= 3997 or i == #ARGV then
    local old = redis.call('BITFIELD', KEYS[1], unpack(ops))
    for j = 1, #old do out[#out + 1] = old[j] end
    ops = {}
  end
end
return out`)

// scriptOps is how many operations mustExistScript certainly runs at once: each
// has four words at most, and the script runs them as soon as it has 3,997.
const scriptOps = 999

// takeWrite judges the answer to a write.
func (q *Request) takeWrite(ctx context.Context, reply upstash.Reply, err error) {
	r := q.Rec
	q.Reply = reply
	if err != nil {
		q.Err = r.Failed(err)
	} else {
		q.Err = q.JudgeWrite()
	}
	if q.Err != nil && r.Scripted != nil {
		q.Err = r.Scripted.Failed(q, q.Err)
	}
	if q.Observer != nil {
		q.Observer.Learn(ctx, q, true)
	}
	if q.Err != nil && q.Resends > 0 {
		q.FailAfter(q.Err, q.inFilter)
	} else if q.Err == nil && r.Timed != nil {
		r.Timed.Judge(ctx, q)
	}
}

// FailAfter ends a write with the error of a step after one of its commands,
// and without an answer. in is true if that command's items are in the filter:
// then they may have been new.
func (q *Request) FailAfter(err error, in bool) {
	q.inFilter = in && !NoFilterHere(err)
	if q.inFilter {
		err = Both(ErrUncertain, err)
	}
	q.Wrote = q.Wrote.undecided(true)
	q.Err = fault.MayHaveRun(err)
}

// undecided returns what the last answer said of the filter, and nothing of the items.
func (w Written) undecided(maybeRepeated bool) Written {
	return Written{MaybeRepeated: maybeRepeated, lacksTTL: w.lacksTTL, Birth: w.Birth}
}

// JudgeWrite splits the answers into those of the head, of the kind's word and of
// the rest, in the order of encodeHead, and the items'.
func (q *Request) JudgeWrite() error {
	q.Wrote = q.Wrote.undecided(q.Reply.MaybeRepeated() || q.Resends > 0)
	if q.isScript {
		return q.judgeScript()
	}
	if err := q.decode(q.Cmd.Len()); err != nil {
		return q.Rec.Failed(err)
	}
	old, err := q.takeHead(q.Answers)
	if err == nil {
		old, err = q.takeKind(old)
	}
	if err == nil {
		old, err = q.takeSettledAndBirth(old)
	}
	if err != nil {
		return err
	}
	return q.judgeItems(old)
}

// takeHead reads the header, and returns the remaining answers.
func (q *Request) takeHead(answers []upstash.NullInt64) ([]upstash.NullInt64, error) {
	r := q.Rec
	if !r.Headed() {
		return answers, nil
	}
	word, err := FieldWord(answers[1])
	if err != nil {
		return nil, err
	}
	q.Wrote.Created = answers[0].Valid // the sum did not overflow: no header stood there
	if q.Wrote.Created && word != r.Header {
		// But other bits did.
		return nil, r.Refuse(fmt.Errorf("%w: its first 53 bits were not zero, and the Add that"+
			" found this has changed the data; use a key that holds nothing else", format.ErrNotFilter))
	}
	if err := r.Learn(word); err != nil {
		if fault.Is(err, format.ErrNotFilter) {
			err = r.Refuse(fmt.Errorf("%w; the Add that found this has run, and may have changed the data", err))
		}
		return nil, err
	}
	return answers[3:], nil
}

// takeKind reads the kind's word, if the kind has one, and returns the remaining
// answers.
func (q *Request) takeKind(answers []upstash.NullInt64) (_ []upstash.NullInt64, err error) {
	r := q.Rec
	if r.Shape == nil {
		return answers, nil
	}
	if q.KindWord, err = FieldWord(answers[1]); err != nil {
		return nil, err
	}
	if q.Wrote.Created && !answers[0].Valid {
		return nil, r.Refuse(format.ErrHeaderBits) // a word stood there without a header
	}
	return answers[2:], r.learnKind(q.KindWord)
}

// decode reads the answers of a request, and checks that each operation has
// one. A want below 0 takes any number.
func (q *Request) decode(want int) (err error) {
	q.Answers, err = integers(q.Reply, nil, q.Answers[:0])
	if err != nil {
		return err
	}
	if want >= 0 && len(q.Answers) != want {
		return WrongCount(len(q.Answers), want)
	}
	return nil
}

// takeSettledAndBirth reads the TTL bit and the birth number, if they were asked
// for, and returns the remaining answers.
func (q *Request) takeSettledAndBirth(answers []upstash.NullInt64) ([]upstash.NullInt64, error) {
	if q.readsSettled {
		settled, err := CountOnes(answers[:1])
		if err != nil {
			return nil, err
		}
		q.Wrote.lacksTTL = settled == 0
		answers = answers[1:]
	}
	if q.readsBirth {
		birth, err := FieldWord(answers[0])
		if err != nil {
			return nil, err
		}
		q.Wrote.Birth = Birth{birth, true}
		answers = answers[1:]
	}
	return answers, nil
}

// judgeScript judges the answer of a script that writes, with an answer to each
// operation behind the words.
func (q *Request) judgeScript() error {
	if err := q.decode(-1); err != nil {
		return q.Rec.Failed(err)
	}
	a := q.Rec.judgeWords(q.Answers, false, q.Wrote.MaybeRepeated)
	if a.Err != nil {
		return a.Err
	}
	if len(a.More) != len(q.ScriptOps) && q.Rec.Scripted == nil {
		return WrongCount(len(a.More), len(q.ScriptOps))
	}
	q.Wrote.Birth, q.KindWord = Birth{a.Birth, true}, a.Kind
	q.Wrote.lacksTTL = !a.Settled && !q.Rec.MustExist // Create has settled it
	return q.judgeItems(a.More)
}

// judgeItems notes for each item whether it was new.
func (q *Request) judgeItems(old []upstash.NullInt64) error {
	q.Added, q.Uncertain = q.Added[:0], q.Uncertain[:0]
	if err := q.Rec.Items.JudgeWrite(q, old); err != nil {
		return err
	}
	q.Wrote.Applied = true
	if !q.Wrote.Uncertain {
		return nil
	}
	// The second of equal items in a command follows the first, and is certainly
	// seen.
	first := make(map[string]bool, len(q.Items))
	q.Wrote.Uncertain = false
	for i, item := range q.Items {
		q.Uncertain[i] = q.Uncertain[i] && !first[item]
		q.Wrote.Uncertain = q.Wrote.Uncertain || q.Uncertain[i]
		first[item] = true
	}
	return nil
}

// JudgeItem notes whether the next item was new. If it was not, and an earlier
// attempt of the command may have added it, it is uncertain.
func (q *Request) JudgeItem(isNew, mayBeOwn bool) {
	uncertain := mayBeOwn && !isNew
	q.Added = append(q.Added, isNew)
	q.Uncertain = append(q.Uncertain, uncertain)
	q.Wrote.Uncertain = q.Wrote.Uncertain || uncertain
}

// JudgeSetBits notes for each item of a plain filter whether one of its bits was
// 0: then it was new, because an earlier attempt would have set it. Each item is
// judged by itself. An earlier attempt may have written to a filter that has
// been replaced since: what is new in this one says nothing about the others.
func (q *Request) JudgeSetBits(old []upstash.NullInt64) error {
	k := len(old) / max(1, len(q.Items))
	for range q.Items {
		ones, err := CountOnes(old[:k])
		if err != nil {
			return err
		}
		// A command that made the filter met no bits of an earlier attempt.
		q.JudgeItem(ones < k, q.Wrote.MaybeRepeated && !q.Wrote.Created)
		old = old[k:]
	}
	return nil
}

// A filter's TTL starts when the first writer settles it, and is never prolonged.
// Bit 127 says that it is settled: EXPIRE was run, or the user decided. Every
// write of a handle with a TTL also reads this bit, so the next writer does what
// a crash left undone.

// settleScript sets the TTL of ARGV[2] milliseconds if none is set, and the
// bit. If Redis is out of memory, the bit cannot be set, but the TTL already
// is; a later write sets the bit.
//
// ARGV[3] is the birth number of the filter that the write made or saw: a late
// script may find another filter, and leaves that to its own writers.
var settleScript = upstash.NewScript(LuaCheckHeader + `if w[2] == 1 or w[3] ~= tonumber(ARGV[3]) then return w end
redis.call('PEXPIRE', KEYS[1], ARGV[2], 'NX')
redis.pcall('SETBIT', KEYS[1], '127', '1')
return w`)

// SettleLimit bounds what settling adds to a write whose answer is at hand.
func SettleLimit() time.Duration { return max(time.Second, door.Patience) }

// A settlement is the setting of a record's TTL. Its result holds once it is over.
type settlement struct {
	over  chan struct{}
	err   error
	found Birth // of the filter that was there; not known if none was
	has   bool  // it has its TTL
}

// settle sets the TTL after writes that found it not settled, or after the
// first write of a Bare record, in one request for all of them. The caller's
// context does not cut it: the writes have run. A write without its TTL says so:
// if no later one came, the filter would stay for ever.
func settle(ctx context.Context, reqs []*Request) {
	var due []*Request
	for _, q := range reqs {
		r := q.Rec
		if (q.Wrote.Applied || q.inFilter) && r.TTL != 0 && (q.Wrote.lacksTTL || !r.Headed()) && !r.bareSettled.Load() {
			due = append(due, q)
		}
	}
	if len(due) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SettleLimit())
	defer cancel()
	for waited := false; len(due) > 0; waited = true {
		due = settleOnce(ctx, due, waited)
	}
}

// settleOnce settles, or waits for another's settlement and takes its result. It
// returns the writes that have waited while their own filter may have got no TTL:
// it was left alone, or came after another that was found. If they have waited
// before, the settlement began after they were answered: their filter has gone then.
func settleOnce(ctx context.Context, reqs []*Request, waited bool) (again []*Request) {
	var due, waiting []*Request
	var own, others []*settlement
	for _, q := range reqs {
		mine, other := q.Rec.settlement()
		if mine != nil {
			due, own = append(due, q), append(own, mine)
		} else {
			waiting, others = append(waiting, q), append(others, other)
		}
	}
	settleOwn(ctx, due, own)
	for i, q := range waiting {
		select {
		case <-others[i].over:
			q.NoTTL = others[i].err
		case <-ctx.Done():
			q.NoTTL = &TTLError{ctx.Err()}
		}
		settled := waited
		if q.Wrote.Birth == others[i].found {
			settled = others[i].has
		}
		if q.NoTTL == nil && q.Rec.Headed() && !settled {
			again = append(again, q)
		}
	}
	return again
}

// settlement returns a new settlement, or that which is under way.
func (r *Record) settlement() (mine, other *settlement) {
	mine = &settlement{over: make(chan struct{}), err: &TTLError{errInterrupted}}
	for !r.settling.CompareAndSwap(nil, mine) {
		if other = r.settling.Load(); other != nil {
			return nil, other
		}
	}
	return mine, nil
}

var errInterrupted = errors.New("bloom: the call that was to set it was interrupted")

func settleOwn(ctx context.Context, due []*Request, own []*settlement) {
	if len(due) == 0 {
		return
	}
	defer func() { // also if the client's observer panics
		for i, q := range due {
			q.Rec.settling.Store(nil)
			close(own[i].over)
		}
	}()
	ask(ctx, due, (*Request).settleCommand, func(q *Request, reply upstash.Reply, err error) {
		q.judgeSettle(ctx, reply, err)
	})
	for i, q := range due {
		own[i].err, own[i].found, own[i].has = q.NoTTL, q.Wrote.found, q.Wrote.hasTTL
	}
}

// Both returns an error that says one thing and another, or that of the two which
// is not nil.
func Both(err, more error) error {
	switch {
	case more == nil:
		return err
	case err == nil:
		return more
	}
	return fault.Errorf("bloom: %w; %w", err, more)
}

func (q *Request) settleCommand() upstash.Command {
	r := q.Rec
	if !r.Headed() {
		return upstash.ExpireCmd(r.Key, r.TTL, "NX")
	}
	birth := strconv.FormatInt(q.Wrote.Birth.Number, 10)
	return r.Script(settleScript, nil, Milliseconds(r.TTL), birth).Repeatable(true).AllOrNothing()
}

// judgeSettle takes the answer to settleCommand.
func (q *Request) judgeSettle(ctx context.Context, reply upstash.Reply, err error) {
	r := q.Rec
	if r.Headed() {
		a := r.JudgeScript(reply, err)
		q.Shown(ctx, a)
		err = a.Err
		q.Wrote.found = Birth{a.Birth, a.Err == nil}
		q.Wrote.hasTTL = a.Settled || q.Wrote.Birth == q.Wrote.found
	} else if err == nil {
		_, err = reply.Int64()
	}
	if !r.Headed() && err == nil {
		r.bareSettled.Store(true)
	}
	if err != nil && !NoFilterHere(err) { // else there is nothing to expire
		q.NoTTL = &TTLError{err}
	}
}

// Shown tells the observer what was seen after the request's own answer.
func (q *Request) Shown(ctx context.Context, a ScriptAnswer) {
	if q.Observer != nil {
		q.Observer.Shown(ctx, a)
	}
}

// Milliseconds writes a TTL as a script's argument.
func Milliseconds(ttl time.Duration) string { return strconv.FormatInt(ttl.Milliseconds(), 10) }

// TTLError is the error of a write that is in place, in a filter that may have no
// TTL yet. The EXPIRE alone failed: a repeated write would find its items seen.
type TTLError struct{ Err error }

func (e *TTLError) Error() string        { return ErrNoTTL.Error() + ": " + fault.TextOf(e.Err) }
func (e *TTLError) Is(target error) bool { return target == ErrNoTTL }
func (e *TTLError) Unwrap() error        { return e.Err }
func (e *TTLError) SafeToRetry() bool    { return false }

// Requests come from a pool, which keeps large and small ones: a part of a batch
// needs about a megabyte, a single Add a few hundred bytes.
var requestPool = sync.Pool{New: func() any { return new(Request) }}

// newRequest takes a request from the pool; its user puts it back with Free.
func newRequest(r *Record, o Options) *Request {
	q := requestPool.Get().(*Request)
	q.Rec, q.Options, q.itself[0] = r, o, q
	return q
}

// Free puts the request back. Nothing of it may be used any more.
func (q *Request) Free() {
	clear(q.Items) // the caller's strings
	q.Rec, q.Options, q.Items, q.oneItem[0] = nil, Options{}, q.Items[:0], ""
	q.Reply, q.Err, q.NoTTL, q.Wrote, q.KindWord = upstash.Reply{}, nil, nil, Written{}, 0
	q.Resends, q.inFilter = 0, false
	requestPool.Put(q)
}
