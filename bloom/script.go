package bloom

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// Some commands may run only if the header is ours: one script checks it and runs
// them, as one atomic step. Each script reads in one command and writes in as few
// as possible, because the service bills every command that a script calls. It
// reads with BITFIELD_RO, which works in a full database too.

// shebang lets the service lock the script's own keys alone, instead of the
// database. Other servers refuse it, and get the script without.
const shebang = "#!lua flags=allow-key-locking\n"

// ours begins every script: KEYS[1] is the filter and ARGV[1] its header. If the
// key holds anything else, the script returns {header} and changes nothing.
const ours = `local w = redis.call('BITFIELD_RO', KEYS[1],
  'GET', 'u53', '0', 'GET', 'u1', '127', 'GET', 'u53', '64')
if w[1] ~= tonumber(ARGV[1]) then return {w[1]} end
`

// script returns the EVAL of a script about the record and further keys.
func (r *record) script(text string, more []string, args ...string) upstash.Command {
	return r.scriptAs("EVAL", text, more, args...)
}

// scriptAs is script for another command than EVAL.
func (r *record) scriptAs(name, text string, more []string, args ...string) upstash.Command {
	if !r.noShebang.Load() {
		text = shebang + text
	}
	argv := make([]string, 0, 4+len(more)+len(args))
	argv = append(argv, text, strconv.Itoa(1+len(more)), r.key)
	argv = append(argv, more...)
	argv = append(argv, strconv.FormatInt(r.header, 10))
	return upstash.Cmd(name, append(argv, args...)...)
}

// eval runs a script of the record that can fail only before its first write.
func (r *record) eval(ctx context.Context, repeatable bool, text string, more []string, args ...string,
) (upstash.Reply, error) {
	return r.run(ctx, func() upstash.Command {
		return r.script(text, more, args...).Repeatable(repeatable).AllOrNothing()
	})
}

// run sends a script, and once more if the server refuses its first line.
func (r *record) run(ctx context.Context, script func() upstash.Command) (upstash.Reply, error) {
	reply, err := r.client.Do(ctx, script())
	if err != nil && r.refusesShebang(err) {
		reply, err = r.client.Do(ctx, script())
	}
	return reply, err
}

// evalFor runs a repeatable script that may take as long as limit.
func (r *record) evalFor(ctx context.Context, limit time.Duration, text string, more []string, args ...string,
) (upstash.Reply, error) {
	return r.run(ctx, func() upstash.Command {
		return r.script(text, more, args...).Repeatable(true).Timeout(limit)
	})
}

// refusesShebang reports whether the server refused the script's first line, and
// has it left out from then on. Redis has no code for this error, only a text.
func (r *record) refusesShebang(err error) bool {
	var server *upstash.Error
	if r.noShebang.Load() || !errors.As(err, &server) || server.StatusCode != 400 && server.StatusCode != 200 {
		return false
	}
	text := strings.ToLower(server.Message)
	if !strings.Contains(text, "shebang") && !strings.Contains(text, "'#'") {
		return false
	}
	r.noShebang.Store(true)
	return true
}

// evalInts runs a script whose answer begins with the header, and learns it.
func (r *record) evalInts(ctx context.Context, repeatable bool, text string, more []string, args ...string,
) (answers []upstash.NullInt64, repeated bool, err error) {
	reply, err := r.eval(ctx, repeatable, text, more, args...)
	if err != nil {
		return nil, false, r.failed(err)
	}
	answers, err = reply.Ints(nil)
	if err != nil {
		return nil, false, r.failed(err)
	}
	if len(answers) == 0 {
		return nil, false, wrongCount(0, 1)
	}
	word, err := fieldWord(answers[0])
	if err == nil {
		err = r.learn(word)
	}
	return answers[1:], reply.MaybeRepeated(), err
}

// mustExistScript sets the bits at the offsets ARGV[2] and on, if the filter is
// there, and returns the header, bit 127, the birth number and the old bits. Lua
// unpacks no more than some thousands of values at once, so the script writes
// scriptSets bits at a time. It may fail between two of these writes, if the
// string grows beyond a limit.
const mustExistScript = ours + `local out = {w[1], w[2], w[3]}
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
return out`

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
