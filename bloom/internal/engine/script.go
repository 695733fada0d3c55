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

// LuaWords reads the words of a string, for a BITFIELD_RO: the header, bit 127, the
// birth number and the kind's word.
const LuaWords = `'GET', 'u53', '0', 'GET', 'u1', '127', 'GET', 'u53', '64', 'GET', 'u53', '128'`

// LuaCheckHeader begins a script: KEYS[1] is the filter and ARGV[1] its header. If
// the key holds anything else, the script returns the header there and changes
// nothing. Otherwise it returns w, the four words, with its own answers behind
// them. A [ScriptAnswer] is the judged answer.
const LuaCheckHeader = LuaFlags + `local w = redis.call('BITFIELD_RO', KEYS[1], ` + LuaWords + `)
if w[1] ~= tonumber(ARGV[1]) then return {w[1]} end
`

// LuaSet defines set, which appends an operation to ops, for a BITFIELD of key: the
// field is a u53, or as wide as it says. It runs those that stand there before they
// are more than Lua unpacks: the script runs the rest.
const LuaSet = `local ops = {}
local function set(at, n, typ)
  ops[#ops + 1] = 'SET'
  ops[#ops + 1] = typ or 'u53'
  ops[#ops + 1] = at
  ops[#ops + 1] = string.format('%.0f', n)
  if #ops >= 6000 then
    redis.call('BITFIELD', key, unpack(ops))
    ops = {}
  end
end
`

// Script returns the command of a script about the record and further keys.
func (r *Record) Script(s *upstash.Script, more []string, args ...string) upstash.Command {
	return s.Cmd(append([]string{r.Key}, more...), r.argv(args)...)
}

func (r *Record) argv(args []string) []string {
	return append([]string{strconv.FormatInt(r.Header, 10)}, args...)
}

// kindScript is Script for one with luaCheckKind.
func (r *Record) kindScript(s *upstash.Script, more []string, args ...string) upstash.Command {
	return r.Script(s, more, append(r.kindArgs(), args...)...)
}

// A ScriptAnswer is the answer to a script that begins with LuaCheckHeader, after
// the header and the kind's word in it were compared with the record's. If they
// are others, or no answer came, Err says so.
type ScriptAnswer struct {
	Settled     bool // bit 127
	Birth, Kind int64
	More        []upstash.NullInt64 // behind the words
	Repeated    bool                // an earlier attempt may have run
	Reply       upstash.Reply       // of the primary
	Err         error
}

// RunScript sends a script that can fail only before its first write. The
// primary answers, and the record remembers what it shows.
func (r *Record) RunScript(ctx context.Context, script upstash.Command) ScriptAnswer {
	reply, err := r.Client.Do(ctx, script.AllOrNothing())
	return r.JudgeScript(reply, err)
}

// JudgeScript judges an answer of the primary.
func (r *Record) JudgeScript(reply upstash.Reply, err error) (a ScriptAnswer) {
	answers, err := integers(reply, err, nil)
	if err != nil {
		return ScriptAnswer{Repeated: reply.MaybeRepeated(), Err: r.Failed(err)}
	}
	a = r.judgeWords(answers, false, reply.MaybeRepeated())
	a.Reply = reply
	return a
}

// RunNear runs a script that the nearest region may run, about which the record
// remembers nothing.
func (r *Record) RunNear(ctx context.Context, s *upstash.Script, args ...string) ScriptAnswer {
	reply, err := r.Client.Do(ctx, s.ReadOnlyCmd([]string{r.Key}, r.argv(args)...))
	answers, err := integers(reply, err, nil)
	if err != nil {
		return ScriptAnswer{Err: Explain(err)}
	}
	return r.judgeWords(answers, true, false)
}

// judgeWords judges the words at the beginning of an answer, of a region if near
// is true.
func (r *Record) judgeWords(answers []upstash.NullInt64, near, repeated bool) (a ScriptAnswer) {
	const words = 4
	a.Repeated = repeated
	learn, learnKind := r.Learn, r.learnKind
	if near {
		learn, learnKind = r.compareNear, r.CompareKind
	}
	if len(answers) == 0 {
		a.Err = WrongCount(0, words)
		return a
	}
	header, err := FieldWord(answers[0])
	if err == nil {
		err = untouchedUnlessRepeated(learn(header), repeated)
	}
	if err == nil && len(answers) < words {
		err = WrongCount(len(answers), words)
	}
	if err != nil {
		a.Err = err
		return a
	}
	settled, err := CountOnes(answers[1:2])
	a.Settled, a.More = settled == 1, answers[words:]
	if err == nil {
		a.Birth, err = FieldWord(answers[2])
	}
	if err == nil {
		a.Kind, err = FieldWord(answers[3])
	}
	if err == nil {
		err = untouchedUnlessRepeated(learnKind(a.Kind), repeated)
	}
	a.Err = err
	return a
}

// Numbers returns the n numbers behind the words.
func (a *ScriptAnswer) Numbers(n int) ([]int64, error) {
	if a.Err != nil {
		return nil, a.Err
	}
	if len(a.More) != n {
		return nil, WrongCount(len(a.More), n)
	}
	return noNulls(a.More)
}

// luaCheckKind aborts the script unless the string's kind word matches, for
// example the same Panes and Span. It follows LuaCheckHeader.
// ARGV[2] is 2 to the power of the number of mutable bits, and ARGV[3] the fixed
// bits; 0 stands for a plain filter.
const luaCheckKind = `if ARGV[2] ~= '0' and math.floor(w[4] / tonumber(ARGV[2])) ~= tonumber(ARGV[3]) then return w end
`

// kindArgs is the arguments of luaCheckKind.
func (r *Record) kindArgs() []string {
	if r.Shape == nil {
		return []string{"0", "0"}
	}
	mutable := r.Shape.MutableBits()
	return []string{
		strconv.FormatInt(1<<mutable, 10), strconv.FormatInt(r.Shape.KindWord(nil)>>mutable, 10),
	}
}
