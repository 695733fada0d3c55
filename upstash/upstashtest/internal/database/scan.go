package database

import (
	"slices"
	"strings"
)

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
	page, ok := reply.(Array)
	if !ok || len(page) != 2 {
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
