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
// whose first 53 bits are 0 is other data. The script returns the header, the
// birth number and the kind's word afterwards.
var createScript = upstash.NewScript(LuaFlags + `local w = redis.call('BITFIELD_RO', KEYS[1],
  'GET', 'u53', '0', 'GET', 'u53', '64', 'GET', 'u53', '128')
if w[1] ~= 0 then return w end
if redis.call('EXISTS', KEYS[1]) == 1 then return {0, -1, 0} end
local settled = '1'
if ARGV[4] == '0' then settled = '0' end
redis.call('BITFIELD', KEYS[1], 'SET', 'u53', '0', ARGV[1], 'SET', 'u53', '64', ARGV[2],
  'SET', 'u1', '127', settled, 'SET', 'u53', '128', ARGV[5], 'SET', 'u1', ARGV[3], '0')
if settled == '1' then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
return {tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[5])}`)

// Create makes a string of so many bits, with the record's TTL and the kind's
// own word, and reports whether it made it. The birth number says so, also after
// a lost answer.
func (r *Record) Create(ctx context.Context, bits uint64, word int64) (created bool, err error) {
	if r.Client.ReadOnly() {
		return false, r.MayWrite()
	}
	birth := r.NewBirth()
	answers, repeated, err := r.RunChecked(ctx, r.CreateCommand(bits, word, birth))
	return r.JudgeCreate(CheckedAnswer{answers, repeated, err}, birth)
}

// CreateCommand is the command of Create.
func (r *Record) CreateCommand(bits uint64, word, birth int64) upstash.Command {
	return r.Script(createScript, nil, strconv.FormatInt(birth, 10), strconv.FormatUint(bits-1, 10),
		Milliseconds(r.TTL), strconv.FormatInt(word, 10)).Repeatable(true)
}

// A CheckedAnswer is what RunChecked returns.
type CheckedAnswer struct {
	Answers  []upstash.NullInt64
	Repeated bool
	Err      error
}

// JudgeCreate judges the answers to CreateCommand.
func (r *Record) JudgeCreate(a CheckedAnswer, birth int64) (created bool, _ error) {
	if fault.Is(a.Err, ErrNotFound) { // yet the key is taken
		return false, UntouchedUnlessRepeated(r.Refuse(ErrNoHeader), a.Repeated)
	}
	if a.Err != nil {
		return false, a.Err
	}
	if len(a.Answers) != 2 {
		return false, WrongCount(len(a.Answers), 2)
	}
	stands, err := FieldWord(a.Answers[0])
	if err != nil {
		return false, err
	}
	word, err := FieldWord(a.Answers[1])
	if err == nil {
		err = UntouchedUnlessRepeated(r.LearnKind(word), a.Repeated)
	}
	return stands == birth, err
}
