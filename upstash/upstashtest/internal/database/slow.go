package database

import (
	"math/rand/v2"
	"strings"
	"time"
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
	n, ok := parseInt(args[0])
	if !ok || n < 0 || n > int64(len(args)-1) {
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
	key, values := args[1], args[2:]
	isNew := !d.db.Exists(key)
	if len(values) < 32 || isNew && strings.EqualFold(args[0], "LPUSHX") || !isNew && d.db.Type(key) != "list" {
		return d.dispatch(args)
	}
	var old []string
	var ttl time.Duration
	if !isNew {
		old, _ = d.db.List(key)
		ttl = d.db.TTL(key)
	}
	all := make([]string, 0, len(values)+len(old))
	for i := range values {
		all = append(all, values[len(values)-1-i])
	}
	all = append(all, old...)
	d.db.Del(key)
	n, _ := d.db.Push(key, all...) // fails on another type only
	if ttl > 0 {
		d.db.SetTTL(key, ttl)
	}
	return int64(n)
}

// popMembers is SPOP. The engine's own makes a list of all members for each.
func (d *Memory) popMembers(args []string) Reply {
	n, ok := int64(0), false
	if len(args) == 3 {
		n, ok = parseInt(args[2])
	}
	if !ok || n < 32 || d.db.Type(args[1]) != "set" {
		return d.dispatch(args)
	}
	members, _ := d.db.Members(args[1])
	rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	members = members[:min(n, int64(len(members)))]
	_, _ = d.db.SRem(args[1], members...)
	out := make(Array, len(members))
	for i, m := range members {
		out[i] = Bulk(m)
	}
	return out
}

// drawMembers is ZRANDMEMBER. The engine's own sorts all members for each.
func (d *Memory) drawMembers(args []string) Reply {
	var n int64
	scores := len(args) == 4 && strings.EqualFold(args[3], "WITHSCORES")
	if len(args) == 3 || scores {
		n, _ = parseInt(args[2])
	}
	if n >= 0 || d.db.Type(args[1]) != "zset" {
		return d.dispatch(args)
	}
	all, _ := d.dispatch([]string{"ZRANGE", args[1], "0", "-1", "WITHSCORES"}).(Array)
	if len(all) == 0 {
		return Array{}
	}
	out := make(Array, 0, -n)
	for range -n {
		i := 2 * rand.IntN(len(all)/2)
		if out = append(out, all[i]); scores {
			out = append(out, all[i+1])
		}
	}
	return out
}
