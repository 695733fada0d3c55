package bloom

import (
	"context"
	"strconv"

	"github.com/upbloom/upbloom/upstash"
)

// Some commands may run only if the header is ours: one script checks it and runs
// them, as one atomic step. Each script reads in one command and writes in as few
// as possible, because the service bills every command that a script calls. It
// reads with BITFIELD_RO, which works in a full database too.

// shebang lets the service lock the script's own keys alone, instead of the
// database. The client leaves it out for a server that refuses it.
const shebang = "#!lua flags=allow-key-locking\n"

// ours begins every script: KEYS[1] is the filter and ARGV[1] its header. If the
// key holds anything else, the script returns {header} and changes nothing.
const ours = shebang + `local w = redis.call('BITFIELD_RO', KEYS[1],
  'GET', 'u53', '0', 'GET', 'u1', '127', 'GET', 'u53', '64')
if w[1] ~= tonumber(ARGV[1]) then return {w[1]} end
`

// script returns the command of a script about the record and further keys.
func (r *record) script(s *upstash.Script, more []string, args ...string) upstash.Command {
	return s.Cmd(append([]string{r.key}, more...), r.argv(args)...)
}

// readOnlyScript is script for one that the nearest region may run.
func (r *record) readOnlyScript(s *upstash.Script, args ...string) upstash.Command {
	return s.ReadOnlyCmd([]string{r.key}, r.argv(args)...)
}

func (r *record) argv(args []string) []string {
	return append([]string{strconv.FormatInt(r.header, 10)}, args...)
}

// numbers sends a script whose answer is an array of integers.
func (r *record) numbers(ctx context.Context, script upstash.Command,
) (answers []upstash.NullInt64, repeated bool, err error) {
	reply, err := r.client.Do(ctx, script)
	if err == nil {
		answers, err = reply.Ints(nil)
	}
	return answers, reply.MaybeRepeated(), err
}

// order sends a script that can fail only before its first write, and whose
// answer begins with the header, which it learns. It returns the other answers.
func (r *record) order(ctx context.Context, script upstash.Command,
) (answers []upstash.NullInt64, repeated bool, err error) {
	answers, repeated, err = r.numbers(ctx, script.AllOrNothing())
	if err != nil {
		return nil, false, r.failed(err)
	}
	if answers, err = r.learnFrom(answers); err != nil {
		return nil, repeated, err
	}
	return answers, repeated, nil
}

// learnFrom learns the header, which is the first of a script's answers, and
// returns the others.
func (r *record) learnFrom(answers []upstash.NullInt64) ([]upstash.NullInt64, error) {
	if len(answers) == 0 {
		return nil, wrongCount(0, 1)
	}
	word, err := fieldWord(answers[0])
	if err == nil {
		err = r.learn(word)
	}
	return answers[1:], err
}

// mustExistScript sets the bits at the offsets ARGV[2] and on, if the filter is
// there, and returns the header, bit 127, the birth number and the old bits. Lua
// unpacks no more than some thousands of values at once, so the script writes
// scriptSets bits at a time. It may fail between two of these writes, if the
// string grows beyond a limit.
var mustExistScript = upstash.NewScript(ours + `local out = {w[1], w[2], w[3]}
local ops = {}
for i = 2, #ARGV do
  ops[#ops + 1] = 'SET'
  ops[#ops + 1] = 'u1'
  ops[#ops + 1] = ARGV[i]
  ops[#ops + 1] = '1'
  if #ops == 4000 or i == #ARGV then
    local old = redis.call('BITFIELD', KEYS[1], unpack(ops))
    for j = 1, #old do out[#out + 1] = old[j] end
    ops = {}
  end
end
return out`)

// scriptSets is how many bits mustExistScript sets at once. The 4000 in the
// script is four words a bit.
const scriptSets = 1000

func (q *request) mustExistCommand() upstash.Command {
	args := make([]string, len(q.offsets))
	for i, o := range q.offsets {
		args[i] = strconv.FormatUint(o, 10)
	}
	c := q.rec.script(mustExistScript, nil, args...).Repeatable(true)
	if len(args) <= scriptSets {
		return c.AllOrNothing()
	}
	return c
}
