package database

import (
	"fmt"
	"strconv"
	"strings"
)

// command is one row of a command table.
type command struct {
	// arity counts the command's name too; -n means n or more.
	arity int
	// write is set if regions apply the command late. A read-only token may not
	// run it.
	write bool
}

// fits reports whether a command may have n words, its name among them.
func (c command) fits(n int) bool { return n == c.arity || c.arity < 0 && n >= -c.arity }

// Table holds the commands of a database that work over REST, by their names in
// upper case. A Table does not change.
type Table map[string]command

// The commands of the database in memory as NAME:arity, with the arities of
// Redis. Commands that miniredis lacks, and those without a meaning over REST,
// are left out. BITFIELD counts as a write even if it only reads, as in Redis.
const (
	readCommands = `
		BITCOUNT:-2 BITFIELD_RO:-2 BITPOS:-3 DBSIZE:1 DUMP:2 ECHO:2 EVALSHA_RO:-3
		EVAL_RO:-3 EXISTS:-2 EXPIRETIME:2 GEODIST:-4 GEOPOS:-2
		GEORADIUSBYMEMBER_RO:-5 GEORADIUS_RO:-6 GEOSEARCH:-7 GET:2 GETBIT:3
		GETRANGE:4 HEXISTS:3 HGET:3 HGETALL:2 HKEYS:2 HLEN:2 HMGET:-3
		HPTTL:-5 HRANDFIELD:-2 HSCAN:-3 HSTRLEN:3 HTTL:-5 HVALS:2 KEYS:2 LINDEX:3 LLEN:2 LPOS:-3
		LRANGE:4 MGET:-2 PEXPIRETIME:2 PFCOUNT:-2 PING:-1 PTTL:2 RANDOMKEY:1
		SCAN:-2 SCARD:2 SDIFF:-2 SINTER:-2 SINTERCARD:-3 SISMEMBER:3 SMEMBERS:2
		SMISMEMBER:-3 SRANDMEMBER:-2 SSCAN:-3 STRLEN:2 SUNION:-2 TIME:1
		TOUCH:-2 TTL:2 TYPE:2 XINFO:-2 XLEN:2 XPENDING:-3 XRANGE:-4 XREAD:-4
		XREVRANGE:-4 ZCARD:2 ZCOUNT:4 ZINTER:-3
		ZLEXCOUNT:4 ZMSCORE:-3 ZRANDMEMBER:-2 ZRANGE:-4 ZRANGEBYLEX:-4
		ZRANGEBYSCORE:-4 ZRANK:3 ZREVRANGE:-4 ZREVRANGEBYLEX:-4
		ZREVRANGEBYSCORE:-4 ZREVRANK:3 ZSCAN:-3 ZSCORE:3 ZUNION:-3`
	writeCommands = `
		APPEND:3 BITFIELD:-2 BITOP:-4 COPY:-3 DECR:2 DECRBY:3 DEL:-2 EVAL:-3
		EVALSHA:-3 EXPIRE:-3 EXPIREAT:-3 FLUSHALL:-1 FLUSHDB:-1 GEOADD:-5
		GEORADIUS:-6 GEORADIUSBYMEMBER:-5 GETDEL:2 GETEX:-2
		GETSET:3 HDEL:-3 HEXPIRE:-6 HINCRBY:4 HINCRBYFLOAT:4 HMSET:-4 HPERSIST:-5 HSET:-4
		HSETEX:-6 HSETNX:4
		INCR:2 INCRBY:3 INCRBYFLOAT:3 LINSERT:5 LMOVE:5 LMPOP:-4 LPOP:-2
		LPUSH:-3 LPUSHX:-3 LREM:4 LSET:4 LTRIM:4 MSET:-3 MSETNX:-3 PERSIST:2
		PEXPIRE:-3 PEXPIREAT:-3 PFADD:-2 PFMERGE:-2 PSETEX:4 PUBLISH:3 RENAME:3
		RENAMENX:3 RESTORE:-4 RPOP:-2 RPOPLPUSH:3 RPUSH:-3 RPUSHX:-3 SADD:-3
		SCRIPT:-2 SDIFFSTORE:-3 SET:-3 SETBIT:4 SETEX:4 SETNX:3 SETRANGE:4
		SINTERSTORE:-3 SMOVE:4 SPOP:-2 SREM:-3 SUNIONSTORE:-3 UNLINK:-2 XACK:-4
		XADD:-5 XAUTOCLAIM:-6 XCLAIM:-6 XDEL:-3 XGROUP:-2 XREADGROUP:-7 XTRIM:-4
		ZADD:-4 ZINCRBY:4 ZINTERSTORE:-4 ZMPOP:-4 ZPOPMAX:-2
		ZPOPMIN:-2 ZREM:-3 ZREMRANGEBYLEX:4 ZREMRANGEBYRANK:4
		ZREMRANGEBYSCORE:4 ZUNIONSTORE:-4`
	// refusedCommands exist, but not over REST: they need a connection of their
	// own, or they wait.
	refusedCommands = `
		AUTH BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN CLIENT
		DISCARD EXEC HELLO MONITOR MULTI PSUBSCRIBE PUNSUBSCRIBE QUIT RESET SELECT
		SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE UNSUBSCRIBE UNWATCH WATCH`
)

// ownersOnly are reads of the whole database: the service refuses them to a
// read-only token.
var ownersOnly = map[string]bool{"KEYS": true, "SCAN": true}

// Both are built once and then only read.
var (
	inMemory = memoryTable()
	refused  = nameSet(refusedCommands)
)

func memoryTable() Table {
	table := make(Table)
	add := func(list string, write bool) {
		for _, row := range strings.Fields(list) {
			name, arity, _ := strings.Cut(row, ":")
			n, err := strconv.Atoi(arity)
			if err != nil {
				panic("upstashtest: command table: " + row)
			}
			table[name] = command{arity: n, write: write}
		}
	}
	add(readCommands, false)
	add(writeCommands, true)
	return table
}

func nameSet(names string) map[string]bool {
	set := make(map[string]bool)
	for _, name := range strings.Fields(names) {
		set[name] = true
	}
	return set
}

// Vet returns the refusal of a command that may not run, or "". A refused
// command is neither executed nor counted. In a transaction it discards the
// whole.
func (t Table) Vet(args []string, readOnly bool) Failure {
	name := upper(args[0])
	if refused[name] || blocks(name, args) {
		return Failure(fmt.Sprintf(
			"ERR Command %q is not allowed in REST or it has a special context path", name))
	}
	c, ok := t[name]
	switch {
	case !ok, isPurge(name, args):
		return unavailable(args[0])
	case readOnly && !t.readable(name):
		return NoPermission(name)
	case !c.fits(len(args)):
		return wrongNumber(strings.ToLower(name))
	}
	return ""
}

// isPurge reports whether a command is MEMORY PURGE, which is for operators,
// while other subcommands of MEMORY read.
func isPurge(name string, args []string) bool {
	return name == "MEMORY" && len(args) > 1 && strings.EqualFold(args[1], "PURGE")
}

// readable reports whether a read-only token may run a command of the table.
func (t Table) readable(name string) bool { return !t[name].write && !ownersOnly[name] }

// IsWrite reports whether a command writes.
func (t Table) IsWrite(args []string) bool { return t[strings.ToUpper(args[0])].write }

// MayChange reports whether a command may change the database. It is IsWrite,
// except for a BITFIELD that only reads.
func (t Table) MayChange(args []string) bool {
	if len(args) >= 2 && strings.EqualFold(args[0], "BITFIELD") {
		p, failure := parseBitfield(args[2:])
		return p.writes && failure == ""
	}
	return t.IsWrite(args)
}

// NoPermission returns the reply to a command forbidden to a token.
func NoPermission(name string) Failure {
	return Failure(fmt.Sprintf(
		"NOPERM this user has no permissions to run the '%s' command or its subcommand",
		strings.ToLower(name)))
}

func wrongNumber(name string) Failure {
	return Failure("ERR wrong number of arguments for '" + name + "' command")
}

func invalidExpire(name string) Failure {
	return Failure("ERR invalid expire time in '" + strings.ToLower(name) + "' command")
}

// blocks reports whether a command would wait: WAIT for replicas, XREAD or
// XREADGROUP with BLOCK. A group or a consumer may have the name of an option.
func blocks(name string, args []string) bool {
	switch name {
	case "WAIT":
		n, ok := at(args, 1) // how many replicas
		return ok && n > 0
	case "XREAD", "XREADGROUP":
	default:
		return false
	}
	for i := 1; i < len(args); i++ {
		switch strings.ToUpper(args[i]) {
		case "BLOCK":
			return true
		case "COUNT":
			i++ // its value
		case "GROUP":
			i += 2 // the group and the consumer
		case "STREAMS":
			return false
		}
	}
	return false
}

func unavailable(name string) Failure {
	return Failure(fmt.Sprintf("ERR Command is not available: '%s'. "+
		"Package upstashtest lists the commands that its database lacks; the service may have them", name))
}

// ErrFull is the reply of a full database to a command that may take memory.
const ErrFull = Failure("OOM command not allowed when used memory > 'maxmemory'.")

// growingCommands are those that Redis refuses when it is full, with HEXPIRE
// and HSETEX of later versions. BITFIELD and GEORADIUS are refused even if they
// only read.
const growingCommands = `
	APPEND BITFIELD BITOP COPY DECR DECRBY GEOADD GEORADIUS GEORADIUSBYMEMBER
	GETSET HEXPIRE HINCRBY HINCRBYFLOAT HMSET HSET HSETEX HSETNX INCR INCRBY
	INCRBYFLOAT LINSERT LMOVE LPUSH LPUSHX LSET MSET MSETNX PFADD PFMERGE PSETEX
	RESTORE RPOPLPUSH RPUSH RPUSHX SADD SDIFFSTORE SET SETBIT SETEX SETNX SETRANGE
	SINTERSTORE SUNIONSTORE XADD ZADD ZINCRBY ZINTERSTORE ZUNIONSTORE`

var growing = nameSet(growingCommands)

// Grows reports whether a full database refuses a command because of its name.
func Grows(args []string) bool { return growing[strings.ToUpper(args[0])] }
