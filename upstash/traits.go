package upstash

import (
	"slices"
	"strconv"
	"strings"
)

// traits is what the client must know of a command to send it safely.
type traits uint8

const (
	traitRead       traits = 1 << iota // changes nothing
	traitRepeatable                    // running it twice leaves the same state
	traitScript                        // an error may come after a part of it ran
)

const reads = `BITCOUNT BITFIELD_RO BITPOS DBSIZE DUMP ECHO EVALSHA_RO EVAL_RO EXISTS
	EXPIRETIME GEODIST GEOHASH GEOPOS GEOSEARCH GET GETBIT GETRANGE HEXISTS HGET
	HGETALL HKEYS HLEN HMGET HRANDFIELD HSCAN HSTRLEN HVALS JSON.ARRINDEX JSON.ARRLEN
	JSON.GET JSON.MGET JSON.OBJKEYS JSON.OBJLEN JSON.STRLEN JSON.TYPE KEYS LINDEX LLEN
	LPOS LRANGE MGET PEXPIRETIME PFCOUNT PING PTTL RANDOMKEY SCAN SCARD SDIFF SINTER
	SINTERCARD SISMEMBER SMEMBERS SMISMEMBER SRANDMEMBER SSCAN STRLEN SUBSTR SUNION
	TIME TTL TYPE XINFO XLEN XRANGE XREAD XREVRANGE ZCARD ZCOUNT ZDIFF ZINTER
	ZINTERCARD ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK
	ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNION`

// DEL, SREM, RENAME and the like are not here: a repetition may hit what
// another client made in between.
const repeatableWrites = `EXPIRE EXPIREAT HMSET HSET JSON.SET LSET MSET PERSIST
	PEXPIRE PEXPIREAT PFADD PFMERGE PSETEX SADD SETBIT SETEX SETRANGE`

const scripts = "EVAL EVALSHA FCALL EVAL_RO EVALSHA_RO FCALL_RO"

var commandTraits = func() map[string]traits {
	m := make(map[string]traits, 160)
	for _, name := range strings.Fields(reads) {
		m[name] = traitRead | traitRepeatable
	}
	for _, name := range strings.Fields(repeatableWrites) {
		m[name] = traitRepeatable
	}
	for _, name := range strings.Fields(scripts) {
		m[name] |= traitScript
	}
	return m
}()

// traitsOf reads them off a command's name, and its arguments where the name
// is not enough. What it does not know has none.
func traitsOf(name string, args []string) traits {
	switch name {
	case "SET":
		if len(args) >= 2 && !hasOption(args[2:], "NX", "GET", "IFEQ", "IFNE") {
			return traitRepeatable
		}
		return 0
	case "ZADD":
		if len(args) >= 1 && !hasOption(args[1:], "INCR", "CH") {
			return traitRepeatable
		}
		return 0
	case "BITOP":
		return bitOpTraits(args)
	case "BITFIELD":
		return bitFieldTraits(args)
	}
	return commandTraits[name]
}

func hasOption(args []string, options ...string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		return slices.ContainsFunc(options, func(o string) bool { return strings.EqualFold(a, o) })
	})
}

// bitOpTraits knows that AND and OR may be repeated even where the destination
// is one of the sources, and every operation where it is not.
func bitOpTraits(args []string) traits {
	if len(args) < 3 {
		return 0
	}
	if hasOption(args[:1], "AND", "OR") || !slices.Contains(args[2:], args[1]) {
		return traitRepeatable
	}
	return 0
}

// bitFieldTraits walks the operations of a BITFIELD key ... command.
func bitFieldTraits(args []string) traits {
	var ops opTraits
	for i := 1; i < len(args); {
		op := strings.ToUpper(args[i])
		width := map[string]int{"GET": 3, "OVERFLOW": 2, "SET": 4, "INCRBY": 4}[op]
		if width == 0 || i+width > len(args) {
			return 0 // not a command that the server would run
		}
		switch op {
		case "OVERFLOW":
			ops.overflow(strings.EqualFold(args[i+1], "FAIL"))
		case "SET":
			ops.set()
		case "INCRBY":
			incr, err := strconv.ParseInt(args[i+3], 10, 64)
			ops.incrBy(strings.ToLower(args[i+1]), incr, err == nil)
		}
		i += width
	}
	return ops.traits()
}

// opTraits gathers what the operations of one BITFIELD do together.
type opTraits struct {
	fail, writes, unsafe bool
}

func (o *opTraits) overflow(fail bool) { o.fail = fail; o.writes = true }
func (o *opTraits) set()               { o.writes = true }

// incrBy knows one INCRBY that may be repeated: under OVERFLOW FAIL, an
// increment of at least half of an unsigned range cannot succeed twice. It is
// "set if zero", with which a filter's header is written. Adding 0 grows a
// string and is harmless too.
func (o *opTraits) incrBy(typ string, incr int64, known bool) {
	o.writes = true
	if known && incr == 0 {
		return
	}
	if known && o.fail && strings.HasPrefix(typ, "u") {
		bits, err := strconv.Atoi(typ[1:])
		if err == nil && bits >= 1 && bits <= 63 && incr >= 0 && incr>>(bits-1) != 0 {
			return
		}
	}
	o.unsafe = true
}

func (o *opTraits) traits() traits {
	switch {
	case o.unsafe:
		return 0
	case o.writes:
		return traitRepeatable
	}
	return traitRead | traitRepeatable
}
