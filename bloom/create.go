package bloom

import (
	"context"
	"strconv"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// createScript makes the filter and everything that belongs to it, if the key
// is free: header, birth number (ARGV[2]), the last cell (ARGV[3]), bit 127,
// the kind's own word (ARGV[5]), and unless it is 0 the TTL ARGV[4]. A string
// whose first 53 bits are 0 is other data. The script returns the header, the
// birth number and the kind's word afterwards.
var createScript = upstash.NewScript(engine.LuaFlags + `local w = redis.call('BITFIELD_RO', KEYS[1],
  'GET', 'u53', '0', 'GET', 'u53', '64', 'GET', 'u53', '128')
if w[1] ~= 0 then return w end
if redis.call('EXISTS', KEYS[1]) == 1 then return {0, -1, 0} end
local settled = '1'
if ARGV[4] == '0' then settled = '0' end
redis.call('BITFIELD', KEYS[1], 'SET', 'u53', '0', ARGV[1], 'SET', 'u53', '64', ARGV[2],
  'SET', 'u1', '127', settled, 'SET', 'u53', '128', ARGV[5], 'SET', 'u1', ARGV[3], '0')
if settled == '1' then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
return {tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[5])}`)

// Create makes the filter with its whole string and its TTL. The string does
// not grow later: no later [Filter.Add] can make it too large for the database.
// Create reports whether it made the filter. If a filter of the same geometry
// was there, it returns false. If the key holds another filter, the error is a
// [*MismatchError], and [ErrNotFilter] if it holds other data. Create leaves
// both untouched.
//
// It is one request, a script: two billed commands if the filter is there, four
// if Create makes it, and one more if it has a TTL. If several clients create
// the same key at once, only one gets true: the birth number says which of them
// made the filter, also after a lost reply. Nobody gets true if that call ends
// in an error. A Bare filter has no birth number, and Create returns a
// [*ConfigError].
//
// If a later deployment gets true, the filter was gone: what had been added is
// "new" again.
//
// To fill a filter, do not rely on a true: the program may end before it acts on
// it, and until the end of the fill the filter says "no" about all that is not in
// yet. Make it by [Filter.Load] alone, of a handle without [Config.MustExist]. It
// is then there whole or not at all, and another Load after an error does no harm.
//
// Create is repeated after a lost reply. If others delete the filter between two
// attempts, the second makes it again, empty.
func (f *Filter) Create(ctx context.Context) (created bool, err error) {
	ctx = f.rec.Label(ctx, "bloom.Create")
	if !f.rec.Headed() {
		return false, fault.Untouched(configErrorf("Layout",
			"is bare: only a filter with a header can be created; just Add"))
	}
	return f.create(ctx, headerBits+f.rec.geo.Bits, 0)
}

// create makes a string of so many bits, with the kind's own word.
func (h *handle) create(ctx context.Context, bits uint64, word int64) (created bool, err error) {
	r := &h.rec
	if r.Client.ReadOnly() {
		return false, r.MayWrite()
	}
	birth := r.NewBirth()
	cmd := r.createCommand(bits, word, birth)
	answers, repeated, err := r.RunChecked(ctx, cmd)
	if large, ok := fault.As[*RecordTooLargeError](err); ok {
		large.Bytes = (bits + 7) / 8
	}
	return r.judgeCreate(checkedAnswer{answers, repeated, err}, birth)
}

// createCommand makes a string of so many bits, with the record's TTL.
func (r *record) createCommand(bits uint64, word, birth int64) upstash.Command {
	return r.Script(createScript, nil, strconv.FormatInt(birth, 10), strconv.FormatUint(bits-1, 10),
		engine.Milliseconds(r.TTL), strconv.FormatInt(word, 10)).Repeatable(true)
}

// judgeCreate judges the answers to createCommand.
func (r *record) judgeCreate(a checkedAnswer, birth int64) (created bool, _ error) {
	if fault.Is(a.err, ErrNotFound) { // yet the key is taken
		return false, engine.UntouchedUnlessRepeated(r.Refuse(engine.ErrNoHeader), a.repeated)
	}
	if a.err != nil {
		return false, a.err
	}
	if len(a.answers) != 2 {
		return false, engine.WrongCount(len(a.answers), 2)
	}
	stands, err := engine.FieldWord(a.answers[0])
	if err != nil {
		return false, err
	}
	word, err := engine.FieldWord(a.answers[1])
	if err == nil {
		err = engine.UntouchedUnlessRepeated(r.LearnKind(word), a.repeated)
	}
	return stands == birth, err
}
