package engine

import (
	"context"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// Expire, Persist, Rename and Delete each run as a script that first checks the
// header and the kind's word, and leave anything else alone. A Bare record has
// no header to check and gets the plain command.

var (
	expireScript = upstash.NewScript(LuaCheckHeader + LuaCheckKind + `redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('SETBIT', KEYS[1], '127', '1')
w[5] = 1
return w`)
	persistScript = upstash.NewScript(LuaCheckHeader + LuaCheckKind + `w[5] = redis.call('PERSIST', KEYS[1])
redis.call('SETBIT', KEYS[1], '127', '1')
return w`)
	renameScript = upstash.NewScript(LuaCheckHeader + LuaCheckKind + `w[5] = redis.call('RENAMENX', KEYS[1], KEYS[2])
return w`)
	deleteScript = upstash.NewScript(LuaCheckHeader + LuaCheckKind + `w[5] = redis.call('DEL', KEYS[1])
return w`)
)

// Expire makes the string expire after ttl, and reports whether there was one.
func (r *Record) Expire(ctx context.Context, ttl time.Duration) (bool, error) {
	if !r.Headed() {
		return r.Client.Expire(ctx, r.Key, ttl)
	}
	if ttl < time.Millisecond {
		return false, fault.Errorf("bloom: %w: ttl is %v: use at least 1ms, or Delete",
			upstash.ErrArgument, ttl)
	}
	_, _, err := r.runForNumber(ctx, r.kindScript(expireScript, nil, Milliseconds(ttl)).Repeatable(true))
	if fault.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Persist removes the TTL and reports whether there was one.
func (r *Record) Persist(ctx context.Context) (bool, error) {
	if !r.Headed() {
		return r.Client.Persist(ctx, r.Key)
	}
	had, repeated, err := r.runForNumber(ctx, r.kindScript(persistScript, nil).Repeatable(true))
	if fault.Is(err, ErrNotFound) {
		return false, nil
	}
	if err == nil && had == 0 && repeated {
		return false, fault.Errorf("bloom: %w", upstash.ErrMaybeRepeated)
	}
	return had == 1, err
}

// Rename moves the string to another key, if that is free.
func (r *Record) Rename(ctx context.Context, to string) error {
	if to == "" {
		return fault.Untouched(ErrEmptyKey)
	}
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

func (r *Record) renameBare(ctx context.Context, to string) (renamed int64, err error) {
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

// Delete removes the string and reports whether there was one.
func (r *Record) Delete(ctx context.Context) (bool, error) {
	var n int64
	var err error
	if r.Headed() {
		n, _, err = r.runForNumber(ctx, r.DeleteCommand())
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

// DeleteCommand is the command of Delete for a string with a header.
func (r *Record) DeleteCommand() upstash.Command { return r.kindScript(deleteScript, nil) }

// kindScript is Script for one with LuaCheckKind.
func (r *Record) kindScript(s *upstash.Script, more []string, args ...string) upstash.Command {
	return r.Script(s, more, append(r.KindArgs(), args...)...)
}

// runForNumber is RunScript for one with one number behind the words.
func (r *Record) runForNumber(ctx context.Context, script upstash.Command) (n int64, repeated bool, err error) {
	a := r.RunScript(ctx, script)
	numbers, err := a.Numbers(1)
	if err != nil {
		return 0, a.Repeated, err
	}
	return numbers[0], a.Repeated, nil
}
