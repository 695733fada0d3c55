package engine

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/lots"
	"github.com/upbloom/upbloom/upstash"
)

// createScript makes the filter and everything that belongs to it, if the key
// is free: header, birth number (ARGV[2]), the last cell (ARGV[3]), bit 127,
// the kind's own word (ARGV[5]), and unless it is 0 the TTL ARGV[4]. A string
// whose first 53 bits are 0 is other data. The script returns the words as they
// are afterwards, and of other data a 0. If the token may not run PEXPIRE, bit 127
// stays 0: else no later write would set the TTL.
var createScript = upstash.NewScript(LuaFlags + `local w = redis.call('BITFIELD_RO', KEYS[1], ` + LuaWords + `)
if w[1] ~= 0 then return w end
if redis.call('EXISTS', KEYS[1]) == 1 then return {0} end
local settled = '1'
if ARGV[4] == '0' then settled = '0' end
redis.call('BITFIELD', KEYS[1], 'SET', 'u53', '0', ARGV[1], 'SET', 'u53', '64', ARGV[2],
  'SET', 'u1', '127', settled, 'SET', 'u53', '128', ARGV[5], 'SET', 'u1', ARGV[3], '0')
if settled == '1' and type(redis.pcall('PEXPIRE', KEYS[1], ARGV[4])) == 'table' then
  redis.call('BITFIELD', KEYS[1], 'SET', 'u1', '127', '0')
  settled = '0'
end
return {tonumber(ARGV[1]), tonumber(settled), tonumber(ARGV[2]), tonumber(ARGV[5])}`)

// Create makes a string of so many bits, with the record's TTL and the kind's
// own word, and reports whether it made it. The birth number says so, also after
// a lost answer.
func (r *Record) Create(ctx context.Context, bits uint64, word int64) (created bool, err error) {
	if r.Client.ReadOnly() {
		return false, r.MayWrite()
	}
	birth := r.NewBirth()
	return r.JudgeCreate(r.RunScript(ctx, r.CreateCommand(bits, word, birth)), birth)
}

// CreateCommand is the command of Create.
func (r *Record) CreateCommand(bits uint64, word, birth int64) upstash.Command {
	return Numbered(r.Script(createScript, nil, strconv.FormatInt(birth, 10), strconv.FormatUint(bits-1, 10),
		Milliseconds(r.TTL), strconv.FormatInt(word, 10)).Repeatable(true), birth)
}

// JudgeCreate judges the answer to CreateCommand.
func (r *Record) JudgeCreate(a ScriptAnswer, birth int64) (created bool, err error) {
	if fault.Is(a.Err, ErrNotFound) { // yet the key is taken
		return false, untouchedUnlessRepeated(r.Refuse(ErrNoHeader), a.Repeated)
	}
	_, err = a.Numbers(0)
	created = err == nil && lots.OfCall(a.Birth) == birth
	if created && r.TTL > 0 && !a.Settled {
		err = &TTLError{errNoExpire}
	}
	return created, err
}

var errNoExpire = errors.New("bloom: the token may not run PEXPIRE: use a token that may")

// Expire, Persist, Rename and Delete each run as a script that first checks the
// header and the kind's word, and leave anything else alone. A Bare record has
// no header to check and gets the plain command.
//
// The token may lack SETBIT. After Expire that does no harm: a write that finds bit
// 127 unset sets a TTL only if there is none. After Persist it would set one again,
// so persistScript adds 2 to its number.

var (
	expireScript = upstash.NewScript(LuaCheckHeader + luaCheckKind + `redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.pcall('SETBIT', KEYS[1], '127', '1')
w[5] = 1
return w`)
	persistScript = upstash.NewScript(LuaCheckHeader + luaCheckKind + `w[5] = redis.call('PERSIST', KEYS[1])
if type(redis.pcall('SETBIT', KEYS[1], '127', '1')) == 'table' and w[2] == 0 then w[5] = w[5] + 2 end
return w`)
	renameScript = upstash.NewScript(LuaCheckHeader + luaCheckKind + `w[5] = redis.call('RENAMENX', KEYS[1], KEYS[2])
return w`)
	deleteScript = upstash.NewScript(LuaCheckHeader + luaCheckKind + `w[5] = redis.call('DEL', KEYS[1])
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
	_, repeated, err := r.runForNumber(ctx, r.kindScript(expireScript, nil, Milliseconds(ttl)).Repeatable(true))
	if fault.Is(err, ErrNotFound) {
		return false, didNothing(repeated)
	}
	return err == nil, err
}

// Persist removes the TTL and reports whether there was one.
func (r *Record) Persist(ctx context.Context) (bool, error) {
	if !r.Headed() {
		return r.Client.Persist(ctx, r.Key)
	}
	had, repeated, err := r.runForNumber(ctx, r.kindScript(persistScript, nil).Repeatable(true))
	if fault.Is(err, ErrNotFound) || err == nil && had == 0 {
		return false, didNothing(repeated)
	}
	if had >= 2 {
		return had == 3, errNoSetBit
	}
	return err == nil, err
}

// didNothing returns the error of an Expire or a Persist whose last attempt found
// nothing to do. An earlier one may have done it, and others moved the filter since.
func didNothing(repeated bool) error {
	if repeated {
		return fault.Errorf("bloom: %w", upstash.ErrMaybeRepeated)
	}
	return nil
}

var errNoSetBit = fault.MayHaveRun(errors.New("bloom: there is no TTL now, but a write with a TTL will set one again:" +
	" the token may not run SETBIT: use a token that may"))

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

// runForNumber is RunScript for one with one number behind the words.
func (r *Record) runForNumber(ctx context.Context, script upstash.Command) (n int64, repeated bool, err error) {
	a := r.RunScript(ctx, script)
	numbers, err := a.Numbers(1)
	if err != nil {
		return 0, a.Repeated, err
	}
	return numbers[0], a.Repeated, nil
}
