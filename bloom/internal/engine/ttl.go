package engine

import (
	"context"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// A filter's TTL starts when the first writer settles it, and is never prolonged.
// Bit 127 says that it is settled: EXPIRE was run, or the user decided. Every
// write of a handle with a TTL also reads this bit, so the next writer does what
// a crash left undone.

// settleScript sets the TTL of ARGV[2] milliseconds if none is set, and the
// bit. If Redis is out of memory, the bit cannot be set, but the TTL already
// is; a later write sets the bit.
//
// ARGV[3] is the birth number of the filter that the write made or saw, 0 if
// it is not known: a late script may find another filter, and leaves that to
// its own writers.
var settleScript = upstash.NewScript(LuaCheckHeader + `if w[2] == 1 then return {w[1], 1} end
if ARGV[3] ~= '0' and w[3] ~= tonumber(ARGV[3]) then return {w[1], 1} end
redis.call('PEXPIRE', KEYS[1], ARGV[2], 'NX')
redis.pcall('SETBIT', KEYS[1], '127', '1')
return {w[1], 1}`)

// SettleTimeout bounds what settling adds to a write whose answer is at hand.
// Only tests change it.
var SettleTimeout = time.Second

// settle sets the TTL after writes that found it not settled, or after the
// first write of a Bare record, in one request for all of them. The caller's
// context does not cut it: the writes have run. A lost answer is no error,
// because the next write tries again. If the server refuses, it will refuse the
// next time too: this is the error of the write.
func settle(ctx context.Context, reqs []*Request) {
	var due []*Request
	for _, q := range reqs {
		r := q.Rec
		stands := q.Wrote.Applied && (q.Err == nil || q.Err == ErrUncertain)
		if stands && r.TTL != 0 && (q.Wrote.unsettled || !r.Headed()) && !r.bareSettled.Load() && !r.settling.Swap(true) {
			due = append(due, q)
		}
	}
	if len(due) == 0 {
		return
	}
	defer func() { // also if the client's observer panics
		for _, q := range due {
			q.Rec.settling.Store(false)
		}
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SettleTimeout)
	defer cancel()
	if len(due) == 1 {
		due[0].judgeSettle(due[0].Rec.Client.Do(ctx, due[0].settleCommand()))
		return
	}
	cmds := make([]upstash.Command, len(due))
	for i, q := range due {
		cmds[i] = q.settleCommand()
	}
	replies, err := due[0].Rec.Client.Pipeline(ctx, cmds...)
	for i, q := range due {
		if err != nil {
			q.judgeSettle(upstash.Reply{}, err)
		} else {
			q.judgeSettle(replies[i], replies[i].Err())
		}
	}
}

func (q *Request) settleCommand() upstash.Command {
	r := q.Rec
	if !r.Headed() {
		return upstash.ExpireCmd(r.Key, r.TTL, "NX")
	}
	birth := strconv.FormatInt(q.Wrote.Birth, 10)
	return r.Script(settleScript, nil, Milliseconds(r.TTL), birth).Repeatable(true).AllOrNothing()
}

// tookSettle takes the answer to settleCommand.
func (q *Request) judgeSettle(reply upstash.Reply, err error) {
	r := q.Rec
	if r.Headed() {
		_, err = r.JudgeChecked(reply, err)
	} else if err == nil {
		_, err = reply.Int64()
	}
	if !r.Headed() && err == nil {
		r.bareSettled.Store(true)
	}
	server, ok := fault.As[*upstash.Error](err)
	if !ok || !fault.IsFinal(server) || IsForeign(err) {
		return
	}
	err = &TTLError{err}
	if q.Err != nil {
		err = fault.Errorf("bloom: %w; %w", q.Err, err)
	}
	q.Err = err
}

// Milliseconds writes a TTL as a script's argument.
func Milliseconds(ttl time.Duration) string { return strconv.FormatInt(ttl.Milliseconds(), 10) }

// TTLError is the error of a write that is in place, in a filter without a TTL
// yet. The EXPIRE alone was refused: a repeated write would find its items
// seen.
type TTLError struct{ Err error }

func (e *TTLError) Error() string        { return ErrNoTTL.Error() + ": " + fault.WordsOf(e.Err) }
func (e *TTLError) Is(target error) bool { return target == ErrNoTTL }
func (e *TTLError) Unwrap() error        { return e.Err }
func (e *TTLError) SafeToRetry() bool    { return false }
