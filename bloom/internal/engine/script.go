package engine

import (
	"context"
	"strconv"

	"github.com/upbloom/upbloom/upstash"
)

// Some commands may run only if the header is the record's: one script checks it
// and runs them, as one atomic step. The service bills each command of a script, so
// a script reads in one command and writes in as few as possible. It reads with
// BITFIELD_RO, which works in a full database too.

// LuaFlags lets the service lock the script's own keys alone, instead of the
// database. If a server refuses it, the client leaves it out.
const LuaFlags = "#!lua flags=allow-key-locking\n"

// LuaCheckHeader begins every script: KEYS[1] is the filter and ARGV[1] its
// header. If the key holds anything else, the script returns the header there and
// changes nothing. w is the header, bit 127, the birth number and the kind's word.
const LuaCheckHeader = LuaFlags + `local w = redis.call('BITFIELD_RO', KEYS[1],
  'GET', 'u53', '0', 'GET', 'u1', '127', 'GET', 'u53', '64', 'GET', 'u53', '128')
if w[1] ~= tonumber(ARGV[1]) then return {w[1]} end
`

// Script returns the command of a script about the record and further keys.
func (r *Record) Script(s *upstash.Script, more []string, args ...string) upstash.Command {
	return s.Cmd(append([]string{r.Key}, more...), r.argv(args)...)
}

// ReadOnlyScript is Script for one that the nearest region may run.
func (r *Record) ReadOnlyScript(s *upstash.Script, args ...string) upstash.Command {
	return s.ReadOnlyCmd([]string{r.Key}, r.argv(args)...)
}

func (r *Record) argv(args []string) []string {
	return append([]string{strconv.FormatInt(r.Header, 10)}, args...)
}

// RunForIntegers sends a script whose answer is an array of integers.
func (r *Record) RunForIntegers(ctx context.Context, script upstash.Command,
) (answers []upstash.NullInt64, repeated bool, err error) {
	reply, err := r.Client.Do(ctx, script)
	if err == nil {
		answers, err = reply.Ints(nil)
	}
	return answers, reply.MaybeRepeated(), err
}

// RunChecked sends a script that begins with LuaCheckHeader, and can fail only
// before its first write. It learns the header, which comes first, and returns
// the other answers.
func (r *Record) RunChecked(ctx context.Context, script upstash.Command,
) (answers []upstash.NullInt64, repeated bool, err error) {
	reply, err := r.Client.Do(ctx, script.AllOrNothing())
	answers, err = r.JudgeChecked(reply, err)
	return answers, reply.MaybeRepeated(), err
}

// JudgeChecked judges the answer to a script of RunChecked.
func (r *Record) JudgeChecked(reply upstash.Reply, err error) (answers []upstash.NullInt64, _ error) {
	if err == nil {
		answers, err = reply.Ints(nil)
	}
	if err != nil {
		return nil, r.Failed(err)
	}
	if len(answers) == 0 {
		return nil, WrongCount(0, 1)
	}
	word, err := FieldWord(answers[0])
	if err == nil {
		err = UntouchedUnlessRepeated(r.Learn(word), reply.MaybeRepeated())
	}
	return answers[1:], err
}

// LuaCheckKind aborts the script unless the string's kind word matches, for
// example the same Panes and Span. It follows LuaCheckHeader, and returns w then.
// ARGV[2] is 2 to the power of the number of mutable bits, and ARGV[3] the fixed
// bits; 0 stands for a plain filter.
const LuaCheckKind = `if ARGV[2] ~= '0' and math.floor(w[4] / tonumber(ARGV[2])) ~= tonumber(ARGV[3]) then return w end
`

// KindArgs is the arguments of LuaCheckKind.
func (r *Record) KindArgs() []string {
	if r.Shape == nil {
		return []string{"0", "0"}
	}
	mutable := r.Shape.MutableBits()
	return []string{
		strconv.FormatInt(1<<mutable, 10), strconv.FormatInt(r.Shape.KindWord(nil)>>mutable, 10),
	}
}
