package main

import (
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// If a command has changed the database, its status is 0 or 5, whichever request
// an interrupt or a refusal strikes. Any other says that nothing was changed.
func TestStatusAfterAWrite(t *testing.T) {
	for _, line := range []string{
		"ttl key 3h", "rm --yes key", "load --items 1k key", "replace --items 1k --renew-ttl 1h --yes key",
		"create --items 1k new", "create --items 1k --window 1h new", "create --items 1k --shards 2 new",
		"create --items 1k --cuckoo new", "create --items 1k --scalable new",
	} {
		for _, interrupt := range []bool{true, false} {
			for n := int64(1); ; n++ {
				sh := newShell(t)
				sh.want(0, "", "", "create", "--items", "1k", "key")
				before := sh.everything()
				at, status := sh.struck(n, interrupt, strings.Fields(line))
				if at == "" {
					if n == 1 {
						t.Errorf("%s sends no request", line)
					}
					break
				}
				if sh.everything() != before && status != 0 && status != exitUnknown {
					t.Errorf("%s, interrupt %v at request %d, %s: changed, and status %d", line, interrupt, n, at, status)
				}
			}
		}
	}
}

// struck runs a command with two items, whose request n is interrupted or
// refused. at is the request's commands, or "" if it did not come.
func (sh *shell) struck(n int64, interrupt bool, args []string) (at string, status int) {
	const items = "a\nb\n"
	if interrupt {
		_, at, status = sh.interrupted(n, upstashtest.BeforeExec, items, args...)
		return at, status
	}
	sh.s.InjectFunc(func(i int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if i != n {
			return upstashtest.Fault{}
		}
		at = strings.Join(r.Commands, " ")
		return upstashtest.ErrorObject("OOM command not allowed when used memory > 'maxmemory'.")
	})
	defer sh.s.InjectFunc(nil)
	_, _, status = sh.run(items, args...)
	return at, status
}
