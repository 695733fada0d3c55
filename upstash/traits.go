package upstash

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// traits are what the client must know of a command to send it safely.
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

// repeatableWrites leave the same state when they run twice in a row. A
// repetition overwrites what another client wrote in between. Commands whose
// repetition could hit something else are not in the list: DEL, SREM and RENAME
// may meet a key that was made again, LSET may meet another element, and
// EXPIREAT deletes if its time has passed by the server's clock.
const repeatableWrites = `HMSET HSET MSET PERSIST PFADD PFMERGE PSETEX SADD SETBIT
	SETEX SETRANGE`

const scripts = "EVAL EVALSHA FCALL EVAL_RO EVALSHA_RO FCALL_RO"

// commandTraits is made at the first use: the first Add of a process needs none.
var commandTraits = sync.OnceValue(func() map[string]traits {
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
})

// traitsOf returns the traits of a command by its name, and by its arguments if
// the name is not enough. An unknown command has none.
func traitsOf(name string, args []string) traits {
	repeatable := false
	switch name {
	case "SET":
		repeatable = len(args) >= 2 && !hasOption(args[2:], "NX", "GET", "IFEQ", "IFNE", "IFDEQ", "IFDNE")
	case "JSON.SET":
		repeatable = len(args) >= 3 && !hasOption(args[3:], "NX")
	case "ZADD":
		repeatable = len(args) >= 1 && !hasOption(args[1:], "INCR", "CH")
	case "EXPIRE", "PEXPIRE":
		if len(args) >= 2 {
			n, err := strconv.ParseInt(args[1], 10, 64)
			repeatable = err == nil && n > 0 // else it deletes
		}
	case "BITOP":
		repeatable = repeatableBitOp(args)
	case "BITFIELD":
		return bitFieldTraits(args)
	default:
		return commandTraits()[name]
	}
	if repeatable {
		return traitRepeatable
	}
	return 0
}

func hasOption(args []string, options ...string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		return slices.ContainsFunc(options, func(o string) bool { return strings.EqualFold(a, o) })
	})
}

// repeatableBitOp reports whether a BITOP is repeatable. AND and OR always are;
// the other operations are if the destination is none of the sources.
func repeatableBitOp(args []string) bool {
	return len(args) >= 3 &&
		(hasOption(args[:1], "AND", "OR") || !slices.Contains(args[2:], args[1]))
}

// bitFieldTraits returns the traits of a BITFIELD that was not built as a [BitField].
// One with an INCRBY has none, nor one that the server would refuse.
func bitFieldTraits(args []string) traits {
	t := traitRead | traitRepeatable
	for i := 1; i < len(args); {
		switch op := args[i]; {
		case strings.EqualFold(op, "GET"):
			i += 3
		case strings.EqualFold(op, "SET"):
			i, t = i+4, traitRepeatable
		case strings.EqualFold(op, "OVERFLOW"):
			i, t = i+2, traitRepeatable
		default:
			return 0
		}
		if i > len(args) {
			return 0
		}
	}
	return t
}
