package bloom

import (
	"context"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// Expire, Persist, Rename and Delete each run as a script that first checks the
// header and the kind's word, and leave anything else alone. A Bare filter has
// no header to check and gets the plain command.

var (
	expireScript = upstash.NewScript(engine.LuaCheckHeader + engine.LuaCheckKind + `redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('SETBIT', KEYS[1], '127', '1')
return {w[1], 1}`)
	persistScript = upstash.NewScript(engine.LuaCheckHeader + engine.LuaCheckKind + `local had = redis.call('PERSIST', KEYS[1])
redis.call('SETBIT', KEYS[1], '127', '1')
return {w[1], had}`)
	renameScript = upstash.NewScript(engine.LuaCheckHeader + engine.LuaCheckKind + `return {w[1], redis.call('RENAMENX', KEYS[1], KEYS[2])}`)
	deleteScript = upstash.NewScript(engine.LuaCheckHeader + engine.LuaCheckKind + `return {w[1], redis.call('DEL', KEYS[1])}`)
)

// runOursForNumber is runOurs for a script with one number after the header, or
// with the words of ofKind.
func (r *record) runForNumber(ctx context.Context, script upstash.Command) (n int64, repeated bool, err error) {
	answers, repeated, err := r.RunChecked(ctx, script)
	if err != nil {
		return 0, repeated, err
	}
	const wordsOfOurs = 4 // ofKind returns them: the header, and three more
	if len(answers) == wordsOfOurs-1 {
		word, err := engine.FieldWord(answers[2])
		if err == nil {
			err = engine.UntouchedUnlessRepeated(r.LearnKind(word), repeated)
		}
		if err != nil {
			return 0, repeated, err
		}
	}
	if len(answers) != 1 || !answers[0].Valid {
		return 0, repeated, engine.WrongCount(len(answers), 1)
	}
	return answers[0].Int64, repeated, nil
}

// kindScript is script for one with ofKind.
func (r *record) kindScript(s *upstash.Script, more []string, args ...string) upstash.Command {
	return r.Script(s, more, append(r.KindArgs(), args...)...)
}

// Expire makes the filter expire after ttl, at least 1 ms, in place of any TTL
// it has, and reports whether there was a filter. It settles the TTL: no
// handle's [Config.TTL] changes it afterwards. It is one request and four
// billed commands, or one for a Bare filter. If the key holds something else,
// Expire leaves that alone and returns a [*MismatchError] or [ErrNotFilter]. It
// is repeated after a lost reply, and then undoes a Persist of others between
// the attempts. If it then found no filter, Expire returns false, and of a Bare
// one [upstash.ErrUncertain]: the filter may have expired in between.
func (f *Filter) Expire(ctx context.Context, ttl time.Duration) (bool, error) {
	return f.expire(f.rec.Label(ctx, "bloom.Expire"), ttl)
}

func (h *handle) expire(ctx context.Context, ttl time.Duration) (bool, error) {
	r := &h.rec
	if !r.Headed() {
		return r.Client.Expire(ctx, r.Key, ttl)
	}
	if ttl < time.Millisecond {
		return false, fault.Errorf("bloom: %w: ttl is %v: use at least 1ms, or Delete",
			upstash.ErrArgument, ttl)
	}
	_, _, err := r.runForNumber(ctx, r.kindScript(expireScript, nil, engine.Milliseconds(ttl)).Repeatable(true))
	if fault.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Persist removes the TTL and reports whether there was one. It settles the
// TTL: the filter stays, whatever a handle's [Config.TTL] says. A Bare filter
// cannot note it: the first Add of another handle with a TTL sets one again.
// Cost and checks are those of Expire. It is repeated after a lost reply too, and then undoes
// an Expire of others between the attempts. If it then found a filter without a
// TTL, the error wraps [upstash.ErrUncertain]: perhaps the first attempt removed
// the TTL. If it then found no filter, Persist returns false.
func (f *Filter) Persist(ctx context.Context) (bool, error) {
	return f.persist(f.rec.Label(ctx, "bloom.Persist"))
}

func (h *handle) persist(ctx context.Context) (bool, error) {
	r := &h.rec
	if !r.Headed() {
		return r.Client.Persist(ctx, r.Key)
	}
	had, repeated, err := r.runForNumber(ctx, r.kindScript(persistScript, nil).Repeatable(true))
	switch {
	case fault.Is(err, ErrNotFound):
		return false, nil
	case err == nil && had == 0 && repeated:
		return false, fault.Errorf("bloom: %w", upstash.ErrUncertain)
	}
	return had == 1, err
}

// Rename moves the filter to another key, with its TTL. The error is
// [ErrNotFound] if there is no filter, and [ErrKeyExists] if the other key
// holds something. That is never overwritten. It is one request and three
// billed commands, or two for a Bare filter. The handle keeps its key: use a
// new one for the moved filter. Stop those who add at the old key first: without
// [Config.MustExist] their Adds make an empty filter there.
//
// It is not repeated after an attempt of unknown outcome: [upstash.SafeToRetry]
// reports whether the filter certainly was not moved.
func (f *Filter) Rename(ctx context.Context, to string) error {
	return f.rename(f.rec.Label(ctx, "bloom.Rename"), to)
}

func (h *handle) rename(ctx context.Context, to string) error {
	if to == "" {
		return fault.Untouched(errEmptyKey)
	}
	r := &h.rec
	if to == r.Key {
		return fault.Untouched(ErrKeyExists)
	}
	var renamed int64
	var err error
	if r.Headed() {
		renamed, _, err = r.runForNumber(ctx, r.kindScript(renameScript, []string{to}))
	} else {
		renamed, err = r.renameBare(ctx, to)
	}
	if err != nil {
		return err
	}
	if renamed == 0 {
		return fault.Untouched(ErrKeyExists)
	}
	r.Forget()
	return nil
}

func (r *record) renameBare(ctx context.Context, to string) (renamed int64, err error) {
	// RENAMENX of a missing key fails with a bare ERR; EXISTS finds it missing.
	replies, err := r.Client.MultiExec(ctx,
		upstash.Cmd("EXISTS", r.Key), upstash.Cmd("RENAMENX", r.Key, to))
	if err != nil {
		return 0, err
	}
	found, err := replies[0].Int64()
	if err != nil {
		return 0, err
	}
	if found == 0 {
		return 0, fault.Untouched(ErrNotFound)
	}
	return replies[1].Int64()
}

// Delete removes the filter and reports whether there was one. It is one
// request and three billed commands, or one for a Bare filter. If the key holds
// something else, Delete leaves that alone and returns a [*MismatchError] or
// [ErrNotFilter]. It is not repeated after an attempt of unknown outcome,
// because another client may have made the filter again.
func (f *Filter) Delete(ctx context.Context) (bool, error) {
	return f.delete(f.rec.Label(ctx, "bloom.Delete"))
}

func (h *handle) delete(ctx context.Context) (bool, error) {
	r := &h.rec
	var n int64
	var err error
	if r.Headed() {
		n, _, err = r.runForNumber(ctx, r.kindScript(deleteScript, nil))
	} else {
		n, err = r.Client.Del(ctx, r.Key)
	}
	if fault.Is(err, ErrNotFound) {
		return false, nil
	}
	if err == nil {
		r.Forget()
	}
	return n == 1, err
}
