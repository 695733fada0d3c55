package database

import (
	"crypto/rand"
	"maps"
	"slices"
	"strings"
)

// Redis itself vets what scripts call: they run as one of two users of its ACL,
// whose commands are those of the table. A Redis that lets no users be made has
// none: then a read-only token runs no script.

// users are the names of the two, or "".
type users struct{ all, reader string }

// transaction is what a user needs beside the table.
var transaction = []string{"MULTI", "EXEC", "DISCARD"}

// makeUsers makes the users.
func (r *Redis) makeUsers() {
	name := "upstashtest-" + rand.Text()
	r.users = users{all: name + "-all", reader: name + "-reader"}
	if r.makeUser(r.users.all, func(string) bool { return true }) &&
		r.makeUser(r.users.reader, r.table.readable) {
		return
	}
	r.users = users{}
	for name, c := range r.table {
		if strings.HasSuffix(name, "_RO") && RunsScript([]string{name}) {
			c.write = true
			r.table[name] = c
		}
	}
}

// makeUser makes one user, or sets its commands again. It reports whether Redis
// did.
func (r *Redis) makeUser(name string, may func(command string) bool) bool {
	rules := []string{"ACL", "SETUSER", name, "reset", "on", "nopass", "~*", "&*"}
	for _, command := range slices.Concat(transaction, slices.Sorted(maps.Keys(r.table))) {
		if may(command) {
			rules = append(rules, "+"+command)
		}
	}
	reply, err := r.link.do(r.limits.Timeout, append(rules, "-memory|purge")...)
	return err == nil && reply == Status("OK")
}

// user returns the user for scripts, or "".
func (r *Redis) user() string {
	if r.readOnly {
		return r.users.reader
	}
	return r.users.all
}
