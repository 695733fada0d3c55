package database

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// setOptions are the options of SET. miniredis checks them in another order,
// and with other errors.
type setOptions struct {
	nx, xx, get, keep bool
	expiry            string // EX, PX, EXAT or PXAT, or ""
	value             string // of the expiry
}

// store is SET. With GET it answers the old value, whether it sets or not, and
// refuses a key of another type. Without GET it replaces a key of any type.
func (d *Memory) store(args []string) Reply {
	key := args[1]
	o, ok := parseSet(args[3:])
	if !ok {
		return errSyntax
	}
	left, f := o.left(d.engine, args[0])
	if f != "" {
		return f
	}
	old, found, f := d.get(key)
	var answer Reply = Status("OK")
	if o.get {
		if f != "" {
			return f
		}
		answer = nil
		if found {
			answer = Bulk(old)
		}
	}
	if o.nx && found || o.xx && !found {
		if !o.get {
			return nil
		}
		return answer
	}
	ttl := d.db.TTL(key)
	d.db.Del(key) // it may hold another type
	d.set(key, args[2])
	if o.expiry != "" {
		d.expire(key, left, expireFlags{})
	}
	if o.keep && ttl > 0 {
		d.db.SetTTL(key, ttl)
	}
	return answer
}

// parseSet reads the options in any order. NX excludes XX, and KEEPTTL excludes
// the four options that set a time. An option may occur twice: the last value
// counts.
func parseSet(args []string) (o setOptions, ok bool) {
	for i := 0; i < len(args); i++ {
		switch word := keyword(args[i]); {
		case word == "NX" && !o.xx:
			o.nx = true
		case word == "XX" && !o.nx:
			o.xx = true
		case word == "GET":
			o.get = true
		case word == "KEEPTTL" && o.expiry == "":
			o.keep = true
		case isExpiry(word) && !o.keep && (o.expiry == "" || o.expiry == word) && i+1 < len(args):
			i++
			o.expiry, o.value = word, args[i]
		default:
			return o, false
		}
	}
	return o, true
}

func isExpiry(word string) bool {
	return word == "EX" || word == "PX" || word == "EXAT" || word == "PXAT"
}

// left returns the milliseconds to live for which the options ask.
func (o setOptions) left(e *engine, command string) (int64, Failure) {
	if o.expiry == "" {
		return 0, ""
	}
	n, ok := parseInt(o.value)
	if !ok {
		return 0, errNotInt
	}
	unit := time.Second
	if o.expiry[0] == 'P' {
		unit = time.Millisecond
	}
	left, ok := e.millisecondsLeft(n, unit, strings.HasSuffix(o.expiry, "AT"))
	if !ok || n <= 0 {
		return 0, invalidExpire(command)
	}
	return left, ""
}

// storeFor returns SETEX or PSETEX. Those of miniredis overflow after 292 years.
func storeFor(expiry string) func(*Memory, []string) Reply {
	return func(d *Memory, args []string) Reply {
		return d.store([]string{args[0], args[1], args[3], expiry, args[2]})
	}
}

const (
	errOffset       = Failure("ERR offset is out of range")
	errStringTooBig = Failure("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
)

// setRange is SETRANGE. That of miniredis makes the key even if there is
// nothing to write, and its offsets are ints.
func (d *Memory) setRange(args []string) Reply {
	at, ok := parseInt(args[2])
	if !ok {
		return errNotInt
	}
	if at < 0 {
		return errOffset
	}
	old, _, f := d.get(args[1])
	if f != "" {
		return f
	}
	part := args[3]
	if part == "" {
		return int64(len(old))
	}
	// Written like this, the comparison cannot overflow.
	if at > maxString-int64(len(part)) {
		return errStringTooBig
	}
	data := grown(old, int(at)+len(part))
	copy(data[at:], part)
	d.setBytes(args[1], data)
	return int64(len(data))
}

// getRange is GETRANGE. Both ends are inclusive, and
// negative ones count from the end. The result shares the string's memory.
func (d *Memory) getRange(args []string) Reply {
	start, ok1 := parseInt(args[2])
	end, ok2 := parseInt(args[3])
	if !ok1 || !ok2 {
		return errNotInt
	}
	data, _, f := d.get(args[1])
	if f != "" {
		return f
	}
	if start < 0 && start > end {
		return Bulk("")
	}
	from, to := clampBits(start, end, 8, len(data))
	return Bulk(data[from/8 : to/8])
}

const (
	errIncrOverflow = Failure("ERR increment or decrement would overflow")
	errDecrOverflow = Failure("ERR decrement would overflow")
)

// count is INCR, DECR, INCRBY or DECRBY. The counters of miniredis are ints, which
// are too small on 32-bit platforms.
func (d *Memory) count(args []string) Reply {
	by, ok := int64(1), true
	if len(args) > 2 {
		by, ok = parseInt(args[2])
	}
	if !ok {
		return errNotInt
	}
	if strings.HasPrefix(upper(args[0]), "DECR") {
		if by == math.MinInt64 {
			return errDecrOverflow
		}
		by = -by
	}
	text, found, f := d.get(args[1])
	if f != "" {
		return f
	}
	if !found {
		text = "0"
	}
	n, ok := parseInt(text)
	if !ok {
		return errNotInt
	}
	sum := n + by
	if by > 0 && sum < n || by < 0 && sum > n {
		return errIncrOverflow
	}
	d.set(args[1], strconv.FormatInt(sum, 10))
	return sum
}

// incrByFloat is INCRBYFLOAT. The engine's own writes all digits of a number.
func (d *Memory) incrByFloat(args []string) Reply {
	old, _, _ := d.get(args[1])
	for _, number := range []string{args[2], old} {
		if f := floatBreaks(number); f != "" {
			return f
		}
	}
	return d.dispatch(args)
}
