package proof

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// others are data of other programs: a text, and a filter of a later version.
// The second word of each begins with a 1, so no birth number can be added to
// it. The answer to a write then does not depend on a random number.
var others = []string{
	"a text, évident for another program, which it must be able to read again",
	"\x88\x40\x00\x00\x1f\x40\x00\x00" + "\x88\x00\x00\x00\x00\x00\x00\x00" + string(make([]byte, 125)),
}

// copyScript copies KEYS[1] over KEYS[2], with its TTL. If KEYS[1] is missing, and
// ARGV[1] is 1, so is KEYS[2] afterwards.
const copyScript = `if redis.call('COPY', KEYS[1], KEYS[2], 'REPLACE') == 0 and ARGV[1] == '1' then
  redis.call('DEL', KEYS[2])
end
return 1`

// Outside makes a call on the database itself. The answer to a Smudge says
// whether it changed a cell.
func (b *Common) Outside(dbs []*upstashtest.Server, key string, seed uint64, c Call) Result {
	otherKey := secondKey(key)
	if c.Key == 1 {
		key, otherKey = otherKey, key
	}
	var cmd []string
	switch c.Verb {
	case Expire:
		cmd = eval("if redis.call('PTTL', KEYS[1]) > 0 then return redis.call('DEL', KEYS[1]) end return 0", key)
	case HasTTL:
		cmd = eval("return redis.call('PTTL', KEYS[1]) > 0 and 1 or 0", key)
	case ProbeTTL:
		cmd = eval("return redis.call('PTTL', KEYS[1]) == -1 and 0 or 1", key)
	case Clear:
		cmd = []string{"DEL", key}
	case ClearParts:
		return clearParts(dbs[0], key, otherKey)
	case Overwrite:
		cmd = []string{"SET", key, others[seed%2]}
	case Smudge:
		cmd = smudge(key, c.Items[0])
	case FlushScripts:
		cmd = []string{"SCRIPT", "FLUSH"}
	case Keep:
		cmd = []string{"EVAL", copyScript, "2", key, key + ":kept", "1"}
	case Revert:
		cmd = []string{"EVAL", copyScript, "2", key + ":kept", key, "1"}
	case CopyOver:
		cmd = []string{"EVAL", copyScript, "2", key, otherKey, "0"}
	default:
		panic("proof: nothing outside does " + string(c.Verb))
	}
	reply, err := dbs[0].Exec(cmd...)
	if before, ok := reply.([]any); ok { // of a Smudge, after its heads
		return outsideResult(err, slices.Contains(before[2:], any(int64(0))), 0)
	}
	return outsideResult(err, reply == int64(1), 0)
}

// eval is the command of a script of one key.
func eval(script, key string, args ...string) []string {
	return append([]string{"EVAL", script, "1", key}, args...)
}

func outsideResult(err error, yes bool, count int) Result {
	if err != nil {
		return Result{End: Unknown, Err: err.Error()}
	}
	return Result{End: Answered, Yes: []bool{yes}, Count: count}
}

// clearParts removes the parts of all uploads to some keys, but the first of
// those that have several.
func clearParts(s *upstashtest.Server, keys ...string) Result {
	for _, key := range keys {
		reply, err := s.Exec("KEYS", key+":load:*:*")
		if err != nil {
			return outsideResult(err, false, 0)
		}
		parts, _ := reply.([]any)
		for _, part := range parts {
			first, isFirst := strings.CutSuffix(part.(string), ":0")
			if isFirst && slices.Contains(parts, any(first+":1")) {
				continue
			}
			if _, err := s.Exec("DEL", part.(string)); err != nil {
				return outsideResult(err, false, 0)
			}
		}
	}
	return outsideResult(nil, false, 0)
}

// smudge is the command of an Add by a handle of another geometry.
func smudge(key, item string) []string {
	g := geometryOf(smudgeConfig)
	text := stringOf(bloom.NewLocal(g))
	header := binary.BigEndian.Uint64(text) >> 11
	body := uint64(len(text))*8 - (g.Bits+7)/8*8
	cmd := []string{
		"BITFIELD", key, "OVERFLOW", "FAIL", "INCRBY", "u53", "0", strconv.FormatUint(header, 10),
		"INCRBY", "u53", "64", strconv.FormatUint(1<<52+7, 10), "OVERFLOW", "WRAP",
	}
	for _, p := range g.Positions(nil, item) {
		cmd = append(cmd, "SET", "u1", strconv.FormatUint(body+p, 10), "1")
	}
	return cmd
}

// drawLoss draws a change of a database that comes back with an older state.
func (b *Common) drawLoss(rng *rand.Rand) Call {
	c := Call{Verb: pick(rng, []Verb{Keep, Revert})}
	if b.Second {
		c.Key = rng.IntN(6) / 5
	}
	return c
}
