package database

import (
	"slices"
	"strings"
)

// No command holds the database for long: what the engine does in a time that
// grows with the square of its arguments is done here, and what would take more
// than about a second is refused.

// errSlow refuses what a real Redis does, if slowly.
const errSlow = Failure("ERR the database in memory does not look at so many elements in one command:" +
	" use WithRedis, or fewer")

// The limits, for tests to lower.
var (
	// mostWalked is how many elements of one key a command may look at.
	mostWalked int64 = 1 << 18
	// mostJoined is how many elements of all keys together.
	mostJoined int64 = 1 << 20
	// mostSteps is how many steps those commands may take that look at all
	// elements for each argument, and how many elements a pattern's wildcards.
	mostSteps int64 = 1 << 26
	// mostCombined is how many bytes a BITOP may read.
	mostCombined int64 = 1 << 29
)

// sortSteps is how many steps it takes to sort in a member.
const sortSteps = 64

// walkers are the commands on one key that look at all its elements.
var walkers = nameSet(`
	ZRANGE ZREVRANGE ZRANGEBYSCORE ZREVRANGEBYSCORE ZRANGEBYLEX ZREVRANGEBYLEX ZRANK ZREVRANK ZCOUNT ZLEXCOUNT
	ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE ZPOPMIN ZPOPMAX ZRANDMEMBER ZSCAN GEORADIUS GEORADIUS_RO
	GEORADIUSBYMEMBER GEORADIUSBYMEMBER_RO GEOSEARCH SMEMBERS SRANDMEMBER SPOP SSCAN HGETALL HKEYS HVALS HSCAN
	HRANDFIELD`)

// tooSlow returns the refusal of a command that would take long, or "".
func (d *Memory) tooSlow(name string, args []string) Failure {
	var steps int64
	switch name {
	case "SUNION", "SINTER", "SDIFF":
		return d.joins(args[1:])
	case "SUNIONSTORE", "SINTERSTORE", "SDIFFSTORE":
		return d.joins(args[2:])
	case "SINTERCARD", "ZUNION", "ZINTER":
		return d.joins(numbered(args[1:]))
	case "ZUNIONSTORE", "ZINTERSTORE":
		return d.joins(numbered(args[2:]))
	case "SPOP": // the engine lists the members anew for each
		n, _ := at(args, 2)
		steps = min(n, d.length(args[1])) * d.length(args[1])
	case "ZRANDMEMBER": // and sorts them for each with repetitions
		n, _ := at(args, 2)
		steps = -n * d.length(args[1]) * sortSteps
	case "XDEL", "XACK", "XCLAIM":
		steps = d.length(args[1]) * int64(len(args))
	case "KEYS":
		steps = d.size() * wildcards(args[1])
	case "SCAN":
		steps = d.size() * wildcards(matchOf(args[2:]))
	case "HSCAN", "SSCAN", "ZSCAN":
		steps = d.length(args[1]) * wildcards(matchOf(args[3:]))
	case "BITOP":
		return d.combines(args[3:])
	}
	if walkers[name] && d.length(args[1]) > mostWalked || steps > mostSteps {
		return errSlow
	}
	return ""
}

func (d *Memory) size() int64 {
	n, _ := d.dispatch([]string{"DBSIZE"}).(int64)
	return n
}

// matchOf returns the pattern of the option MATCH, or "".
func matchOf(options []string) string {
	for i := range len(options) - 1 {
		if strings.EqualFold(options[i], "MATCH") {
			return options[i+1]
		}
	}
	return ""
}

// wildcards returns a pattern's weight: each * may match at any place.
func wildcards(glob string) int64 {
	n := int64(strings.Count(glob, "*"))
	return n * n
}

// numbered returns the keys behind their number.
func numbered(args []string) []string {
	n, _ := parseInt(args[0])
	if n < 0 || n > int64(len(args)-1) {
		return nil // refused when it runs
	}
	return args[1 : 1+n]
}

func (d *Memory) joins(keys []string) Failure {
	var sum int64
	for _, key := range keys {
		sum += d.length(key)
	}
	if sum > mostJoined {
		return errSlow
	}
	return ""
}

func (d *Memory) combines(keys []string) Failure {
	var sum int64
	for _, key := range keys {
		n, _ := d.dispatch([]string{"STRLEN", key}).(int64)
		sum += n
	}
	if sum > mostCombined {
		return errSlow
	}
	return ""
}

// length returns how many elements a key has, 0 if it is a string or missing.
func (d *Memory) length(key string) int64 {
	if !d.db.Exists(key) {
		return 0
	}
	by := map[string]string{"list": "LLEN", "set": "SCARD", "hash": "HLEN", "zset": "ZCARD", "stream": "XLEN"}
	n, _ := d.dispatch([]string{by[d.db.Type(key)], key}).(int64)
	return n
}

// push is LPUSH or LPUSHX. The engine's own copies the list for each element.
func (d *Memory) push(args []string) Reply {
	key, values := args[1], slices.Clone(args[2:])
	old, err := d.db.List(key)
	if err != nil && (d.db.Exists(key) || strings.EqualFold(args[0], "LPUSHX")) {
		return d.dispatch(args)
	}
	slices.Reverse(values)
	ttl := d.db.TTL(key)
	d.db.Del(key)
	n, _ := d.db.Push(key, append(values, old...)...) // fails on another type only
	if ttl > 0 {
		d.db.SetTTL(key, ttl)
	}
	return int64(n)
}
