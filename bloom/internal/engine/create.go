package engine

import (
	"context"
	"strconv"

	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// createScript makes the filter and everything that belongs to it, if the key
// is free: header, birth number (ARGV[2]), the last cell (ARGV[3]), bit 127,
// the kind's own word (ARGV[5]), and unless it is 0 the TTL ARGV[4]. A string
// whose first 53 bits are 0 is other data. The script returns the words as they
// are afterwards, and of other data a 0.
var createScript = upstash.NewScript(LuaFlags + `local w = redis.call('BITFIELD_RO', KEYS[1], ` + LuaWords + `)
if w[1] ~= 0 then return w end
if redis.call('EXISTS', KEYS[1]) == 1 then return {0} end
local settled = '1'
if ARGV[4] == '0' then settled = '0' end
redis.call('BITFIELD', KEYS[1], 'SET', 'u53', '0', ARGV[1], 'SET', 'u53', '64', ARGV[2],
  'SET', 'u1', '127', settled, 'SET', 'u53', '128', ARGV[5], 'SET', 'u1', ARGV[3], '0')
if settled == '1' then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
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
	return r.Script(createScript, nil, strconv.FormatInt(birth, 10), strconv.FormatUint(bits-1, 10),
		Milliseconds(r.TTL), strconv.FormatInt(word, 10)).Repeatable(true)
}

// JudgeCreate judges the answer to CreateCommand.
func (r *Record) JudgeCreate(a ScriptAnswer, birth int64) (created bool, err error) {
	if fault.Is(a.Err, ErrNotFound) { // yet the key is taken
		return false, UntouchedUnlessRepeated(r.Refuse(ErrNoHeader), a.Repeated)
	}
	_, err = a.Numbers(0)
	return err == nil && a.Birth == birth, err
}
