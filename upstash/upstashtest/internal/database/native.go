package database

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

func init() { // a plain literal would be an initialization cycle through do
	native = map[string]func(*Memory, []string) Reply{
		"BITFIELD":    (*Memory).bitfield,
		"BITFIELD_RO": (*Memory).bitfieldRO,
		"BITCOUNT":    (*Memory).bitCount,
		"BITPOS":      (*Memory).bitPos,
		"COPY":        (*Memory).copyKey,
		"BITOP":       (*Memory).bitOp,
		"SET":         (*Memory).store,
		"SETEX":       storeFor("EX"),
		"PSETEX":      storeFor("PX"),
		"GETEX":       (*Memory).getAndExpire,
		"SETBIT":      (*Memory).setBit,
		"GETBIT":      (*Memory).getBit,
		"LPOS":        (*Memory).lpos,
		"SCAN":        (*Memory).scan,
		"SETRANGE":    (*Memory).setRange,
		"GETRANGE":    (*Memory).getRange,
		"SUBSTR":      (*Memory).getRange,
		"ZRANDMEMBER": (*Memory).zrandMember,
		"ZPOPMIN":     (*Memory).zpop,
		"ZPOPMAX":     (*Memory).zpop,
		"ZADD":        (*Memory).zadd,
		"ZINCRBY":     (*Memory).zincrBy,
		"HINCRBY":     (*Memory).hincrBy,
		"HEXPIRE":     (*Memory).hexpire,
		"LPOP":        (*Memory).pop,
		"RPOP":        (*Memory).pop,
		"SPOP":        (*Memory).pop,
		"PFADD":       (*Memory).pfAdd,
		"XRANGE":      (*Memory).xrange,
		"XREVRANGE":   (*Memory).xrange,

		"GEORADIUS":            near(6),
		"GEORADIUS_RO":         near(6),
		"GEORADIUSBYMEMBER":    near(5),
		"GEORADIUSBYMEMBER_RO": near(5),
		"GEOSEARCH":            near(4),

		"TTL":         (*Memory).ttl,
		"PTTL":        (*Memory).pttl,
		"INCR":        (*Memory).incr,
		"DECR":        (*Memory).decr,
		"INCRBY":      (*Memory).incrBy,
		"DECRBY":      (*Memory).decrBy,
		"EVAL":        eval(false, false),
		"EVAL_RO":     eval(false, true),
		"EVALSHA":     eval(true, false),
		"EVALSHA_RO":  eval(true, true),
		"SCRIPT":      (*Memory).scriptCommand,
		"EXPIRE":      expiry(time.Second, false),
		"PEXPIRE":     expiry(time.Millisecond, false),
		"EXPIREAT":    expiry(time.Second, true),
		"PEXPIREAT":   expiry(time.Millisecond, true),
		"EXPIRETIME":  expireTime(time.Second),
		"PEXPIRETIME": expireTime(time.Millisecond),
	}
}

// The commands below are those of miniredis, but for a few arguments.

const (
	errPositive   = Failure("ERR value is out of range, must be positive")
	errHashNotInt = Failure("ERR hash value is not an integer")
	errNaN        = Failure("ERR resulting score is not a number (NaN)")
	errHLL        = Failure("WRONGTYPE Key is not a valid HyperLogLog string value.")
	errHashExpire = Failure("ERR invalid expire time, must be >= 0")
)

// pop is LPOP, RPOP or SPOP, whose count is checked first.
func (d *Memory) pop(args []string) Reply {
	if n, ok := at(args, 2); len(args) == 3 && (!ok || n < 0) {
		return errPositive
	}
	return d.dispatch(args)
}

// zpop is ZPOPMIN or ZPOPMAX. That of miniredis takes a count of 0 for all.
func (d *Memory) zpop(args []string) Reply {
	if n, ok := at(args, 2); ok && n == 0 && len(args) == 3 {
		if f, bad := d.dispatch([]string{"ZCARD", args[1]}).(Failure); bad {
			return f
		}
		return Array{}
	}
	return d.dispatch(args)
}

// hincrBy is HINCRBY, in 64 bits on every platform.
func (d *Memory) hincrBy(args []string) Reply {
	by, ok := parseInt(args[3])
	if !ok {
		return errNotInt
	}
	n := int64(0)
	switch old := d.dispatch([]string{"HGET", args[1], args[2]}).(type) {
	case Failure:
		return old
	case Bulk:
		if n, ok = parseInt(string(old)); !ok {
			return errHashNotInt
		}
	}
	sum := n + by
	if by > 0 && sum < n || by < 0 && sum > n {
		return errIncrOverflow
	}
	d.dispatch([]string{"HSET", args[1], args[2], strconv.FormatInt(sum, 10)})
	return sum
}

// hexpire is HEXPIRE. A time of 0 removes the fields.
func (d *Memory) hexpire(args []string) Reply {
	n, ok := parseInt(args[2])
	if ok && n < 0 {
		return errHashExpire
	}
	answer := d.dispatch(args)
	reply, isArray := answer.(Array)
	if !ok || n > 0 || !isArray {
		return answer
	}
	fields := args[len(args)-len(reply):]
	for i := range reply {
		if reply[i] == int64(1) {
			d.dispatch([]string{"HDEL", args[1], fields[i]})
			reply[i] = int64(2)
		}
	}
	return reply
}

// isFloat reports whether text is a number that Redis takes for a score.
func isFloat(text string) bool {
	f, err := strconv.ParseFloat(text, 64)
	return err == nil && !math.IsNaN(f)
}

var zaddFlags = nameSet("NX XX GT LT CH INCR")

// zadd is ZADD. With CH it counts each change of a member that stands twice.
func (d *Memory) zadd(args []string) Reply {
	first := 2 // of the scores
	for first < len(args) && zaddFlags[strings.ToUpper(args[first])] {
		first++
	}
	flags, pairs := args[:first], args[first:]
	has := func(flag string) bool {
		return slices.ContainsFunc(flags[2:], func(f string) bool { return strings.EqualFold(f, flag) })
	}
	if len(pairs) == 0 || len(pairs)%2 == 1 {
		return d.dispatch(args)
	}
	for _, score := range everySecond(pairs) {
		if !isFloat(score) {
			return errNotFloat
		}
	}
	switch {
	case has("INCR") && d.sumIsNaN(args[1], pairs[1], pairs[0]):
		return errNaN
	case has("INCR"), !has("CH"):
		return d.dispatch(args)
	}
	sum := int64(0)
	for ; len(pairs) > 0; pairs = pairs[2:] {
		n, ok := d.dispatch(slices.Concat(flags, pairs[:2])).(int64)
		if !ok {
			return d.dispatch(args) // the error of the flags or of the key
		}
		sum += n
	}
	return sum
}

// zincrBy is ZINCRBY without NaN.
func (d *Memory) zincrBy(args []string) Reply {
	switch {
	case !isFloat(args[2]):
		return errNotFloat
	case d.sumIsNaN(args[1], args[3], args[2]):
		return errNaN
	}
	return d.dispatch(args)
}

// sumIsNaN reports whether a member's score is one infinity and by the other.
func (d *Memory) sumIsNaN(key, member, by string) bool {
	old, _ := d.dispatch([]string{"ZSCORE", key, member}).(Bulk)
	a, _ := strconv.ParseFloat(string(old), 64)
	b, _ := strconv.ParseFloat(by, 64)
	return math.IsNaN(a + b)
}

// near is a search in GEO, which has so many arguments before its options. With
// COUNT it finds the nearest, but for ANY or DESC.
func near(before int) func(*Memory, []string) Reply {
	return func(d *Memory, args []string) Reply {
		has := func(word string) int {
			return slices.IndexFunc(args[before:], func(a string) bool { return strings.EqualFold(a, word) })
		}
		if i := has("ANY"); i >= 0 {
			return d.dispatch(slices.Delete(slices.Clone(args), before+i, before+i+1))
		}
		if i := has("COUNT"); i >= 0 && before+i+1 < len(args) && has("ASC") < 0 && has("DESC") < 0 {
			args = slices.Concat(args, []string{"ASC"})
		}
		return d.dispatch(args)
	}
}

// xrange is XRANGE or XREVRANGE. A COUNT of 0 or less finds nothing.
func (d *Memory) xrange(args []string) Reply {
	reply := d.dispatch(args)
	n, ok := at(args, 5)
	if _, found := reply.(Array); found && ok && n <= 0 && d.db.Exists(args[1]) {
		return nil
	}
	return reply
}

// pfAdd is PFADD. Without elements it makes an empty HyperLogLog.
func (d *Memory) pfAdd(args []string) Reply {
	if len(args) > 2 {
		return d.dispatch(args)
	}
	switch d.db.Type(args[1]) {
	case "hll":
		return int64(0)
	case "":
		_, _ = d.db.HllAdd(args[1]) // a missing key is of no other type
		return int64(1)
	case "string":
		return errHLL
	}
	return ErrWrongType
}

// lpos is LPOS with a COUNT of at most a million. The engine allocates so many
// positions in advance. 0 stands for all.
func (d *Memory) lpos(args []string) Reply {
	for i := 3; i < len(args)-1; i++ {
		if n, ok := parseInt(args[i+1]); ok && n > mostDrawn && strings.EqualFold(args[i], "COUNT") {
			args = with(args, i+1, "0")
		}
	}
	return d.dispatch(args)
}

// zrandMember is ZRANDMEMBER. If members may be drawn more than once, that of
// miniredis sorts them for each draw.
func (d *Memory) zrandMember(args []string) Reply {
	n, ok := at(args, 2)
	if !ok || n >= 0 || len(args) == 4 && !strings.EqualFold(args[3], "WITHSCORES") || len(args) > 4 {
		return d.dispatch(args)
	}
	all, ok := d.dispatch(append([]string{"ZRANGE", args[1], "0", "-1"}, args[3:]...)).(Array)
	width := len(args) - 2 // a member, or a member and its score
	if !ok || len(all) == 0 {
		return d.dispatch(args)
	}
	out := make(Array, 0, int(-n)*width)
	for range -n {
		i := rand.IntN(len(all)/width) * width
		out = append(out, all[i:i+width]...)
	}
	return out
}
