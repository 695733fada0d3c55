package database

import (
	"math"
	"slices"
	"strings"
	"time"
)

const (
	errExpireNX = Failure("ERR NX and XX, GT or LT options at the same time are not compatible")
	errExpireGT = Failure("ERR GT and LT options at the same time are not compatible")
)

// longest is the longest time to live here, in milliseconds: the longest
// time.Duration, 292 years.
const longest = math.MaxInt64 / int64(time.Millisecond)

// expireFlags are the options of EXPIRE and its kin.
type expireFlags struct{ nx, xx, gt, lt bool }

// expiry returns EXPIRE, PEXPIRE, EXPIREAT or PEXPIREAT. Those of miniredis
// check in another order and do not check for overflow.
func expiry(unit time.Duration, absolute bool) func(*Memory, []string) Reply {
	return func(d *Memory, args []string) Reply {
		flags, f := parseExpireFlags(args[3:])
		if f != "" {
			return f
		}
		n, ok := parseInt(args[2])
		if !ok {
			return errNotInt
		}
		left, ok := d.millisecondsLeft(n, unit, absolute)
		if !ok {
			return invalidExpire(args[0])
		}
		return d.expire(args[1], left, flags)
	}
}

// expire sets a key's remaining milliseconds, unless the flags forbid it. For
// GT and LT, a key without a time to live has more than any other. If left is 0
// or less, the key is removed.
func (d *Memory) expire(key string, left int64, flags expireFlags) Reply {
	if !d.db.Exists(key) {
		return int64(0)
	}
	now := int64(d.db.TTL(key) / time.Millisecond)
	forever := d.db.TTL(key) == 0
	if flags.nx && !forever || flags.xx && forever ||
		flags.gt && (forever || left <= now) || flags.lt && !forever && left >= now {
		return int64(0)
	}
	if left <= 0 {
		d.db.Del(key)
	} else {
		d.db.SetTTL(key, time.Duration(min(left, longest))*time.Millisecond)
	}
	return int64(1)
}

// millisecondsLeft converts an argument to the remaining milliseconds. As in
// Redis, the instant in milliseconds since 1970 must fit into an int64: ok
// reports whether it does.
func (e *engine) millisecondsLeft(n int64, unit time.Duration, absolute bool) (left int64, ok bool) {
	if unit == time.Second {
		if n > math.MaxInt64/1000 || n < math.MinInt64/1000 {
			return 0, false
		}
		n *= 1000
	}
	now := e.now.UnixMilli()
	if absolute {
		if n < 0 {
			return -1, true
		}
		return n - now, true
	}
	return n, n <= math.MaxInt64-now
}

// parseExpireFlags reads NX, XX, GT and LT. As in Redis, the caller does so
// before it reads the time: it reports a wrong option before a wrong number.
func parseExpireFlags(args []string) (e expireFlags, f Failure) {
	for _, a := range args {
		switch keyword(a) {
		case "NX":
			e.nx = true
		case "XX":
			e.xx = true
		case "GT":
			e.gt = true
		case "LT":
			e.lt = true
		default:
			return e, Failure("ERR Unsupported option " + a)
		}
	}
	if e.nx && (e.xx || e.gt || e.lt) {
		return e, errExpireNX
	}
	if e.gt && e.lt {
		return e, errExpireGT
	}
	return e, ""
}

// timeLeft returns TTL, PTTL, EXPIRETIME or PEXPIRETIME. As in Redis, seconds are
// rounded to the nearest. Those of miniredis overflow on 32-bit platforms. The
// reply is -2 for a missing key, and -1 for a key without a time to live.
func timeLeft(unit time.Duration, absolute bool) func(*Memory, []string) Reply {
	return func(d *Memory, args []string) Reply {
		if !d.db.Exists(args[1]) {
			return int64(-2)
		}
		left := d.db.TTL(args[1])
		if left == 0 {
			return int64(-1)
		}
		n := left.Milliseconds()
		if absolute {
			n = d.now.Add(left).UnixMilli()
		}
		return (n + unit.Milliseconds()/2) / unit.Milliseconds()
	}
}

const (
	errSameObject = Failure("ERR source and destination objects are the same")
	errDBIndex    = Failure("ERR DB index is out of range")
)

// copyKey is COPY. miniredis's own keeps the time to live of a destination it
// replaces. There is one database, as over REST.
func (d *Memory) copyKey(args []string) Reply {
	from, to := args[1], args[2]
	replace := false
	for i := 3; i < len(args); i++ {
		switch word := keyword(args[i]); {
		case word == "REPLACE":
			replace = true
		case word == "DB" && i+1 < len(args):
			i++
			n, ok := parseInt(args[i])
			if !ok {
				return errNotInt
			}
			if n != 0 {
				return errDBIndex
			}
		default:
			return errSyntax
		}
	}
	if from == to { // an error in Redis
		return int64(0)
	}
	if !d.db.Exists(from) || d.db.Exists(to) && !replace {
		return int64(0)
	}
	d.db.Del(to)
	_ = d.m.Copy(d.index, from, d.index, to) // fails on a missing key only
	return int64(1)
}

// scan is SCAN with the service's option WITHTYPE.
func (d *Memory) scan(args []string) Reply {
	args, types := withoutType(args)
	reply := d.dispatch(args)
	if types {
		return addTypes(reply, d.Do)
	}
	return reply
}

// withoutType takes WITHTYPE out of a SCAN, because Redis does not know it.
// With this option of the service, each key in the reply is followed by its
// type.
func withoutType(args []string) (cmd []string, found bool) {
	i := slices.IndexFunc(args, func(a string) bool { return strings.EqualFold(a, "WITHTYPE") })
	if i < 2 {
		return args, false
	}
	return slices.Delete(slices.Clone(args), i, i+1), true
}

// addTypes asks for the type of each key in the reply to a SCAN.
func addTypes(reply Reply, do func(args []string) Reply) Reply {
	page, _ := reply.(Array)
	if len(page) != 2 { // an error
		return reply
	}
	keys, _ := page[1].(Array)
	var out Array
	for _, key := range keys {
		name, _ := key.(Bulk)
		kind, _ := do([]string{"TYPE", string(name)}).(Status)
		out = append(out, key, Bulk(kind))
	}
	return Array{page[0], out}
}
