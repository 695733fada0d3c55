package database

import "strings"

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
		switch word := strings.ToUpper(cString(args[i])); {
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
	switch {
	case from == to: // an error in Redis
		return int64(0)
	case !d.db.Exists(from), d.db.Exists(to) && !replace:
		return int64(0)
	}
	d.db.Del(to)
	_ = d.m.Copy(d.index, from, d.index, to) // fails on a missing key only
	return int64(1)
}
