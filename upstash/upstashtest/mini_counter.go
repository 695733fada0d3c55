package upstashtest

import (
	"math"
	"strconv"
)

const (
	errIncrOverflow = failure("ERR increment or decrement would overflow")
	errDecrOverflow = failure("ERR decrement would overflow")
)

// The counters are here because those of miniredis are an int, which is too
// narrow on 32-bit platforms.

func (d *memory) incr(args []string) reply { return d.count(args[1], 1) }
func (d *memory) decr(args []string) reply { return d.count(args[1], -1) }

func (d *memory) incrBy(args []string) reply {
	by, ok := parseInt(args[2])
	if !ok {
		return errNotInt
	}
	return d.count(args[1], by)
}

func (d *memory) decrBy(args []string) reply {
	by, ok := parseInt(args[2])
	if !ok {
		return errNotInt
	}
	if by == math.MinInt64 {
		return errDecrOverflow
	}
	return d.count(args[1], -by)
}

func (d *memory) count(key string, by int64) reply {
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
