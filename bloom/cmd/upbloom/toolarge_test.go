package main

import (
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// An operator is told of flags, and of nothing that a script said.
func TestTooLargeForARecord(t *testing.T) {
	sh := newShell(t)
	sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) (f upstashtest.Fault) {
		if strings.HasPrefix(r.Commands[0], "EVAL") {
			f = upstashtest.ErrorObject("ERR max single record size exceeded script: 012d00, on @user_script:8.")
		}
		return f
	})
	sh.want(4, "upbloom: key: the filter is too large for one record of the database: use fewer --items, choose"+
		" a larger plan, or spread the items over several records with --shards\n", "", "create", "-n", "1k", "key")
}
