package database

import (
	"math"
	"strconv"
)

const (
	errIncrOverflow = Failure("ERR increment or decrement would overflow")
	errDecrOverflow = Failure("ERR decrement would overflow")
)

// The counters of miniredis are ints, which are too small on 32-bit platforms.

func (d *Memory) incr(args []string) Reply { return d.count(args[1], 1) }
func (d *Memory) decr(args []string) Reply { return d.count(args[1], -1) }

func (d *Memory) incrBy(args []string) Reply {
	by, ok := parseInt(args[2])
	if !ok {
		return errNotInt
	}
	return d.count(args[1], by)
}

func (d *Memory) decrBy(args []string) Reply {
	by, ok := parseInt(args[2])
	if !ok {
		return errNotInt
	}
	if by == math.MinInt64 {
		return errDecrOverflow
	}
	return d.count(args[1], -by)
}

func (d *Memory) count(key string, by int64) Reply {
	text, found, f := d.get(key)
	if f != "" {
		return f
	}
	var n int64
	if found {
		var ok bool
		if n, ok = parseInt(text); !ok {
			return errNotInt
		}
	}
	sum := n + by
	if by > 0 && sum < n || by < 0 && sum > n {
		return errIncrOverflow
	}
	d.set(key, strconv.FormatInt(sum, 10))
	return sum
}
