package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// An operator is told of flags, and of nothing from a script.
func TestTooLargeForARecord(t *testing.T) {
	sh := newShell(t)
	sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) (f upstashtest.Fault) {
		if strings.HasPrefix(r.Commands[0], "EVAL") {
			f = upstashtest.ErrorObject("ERR max single record size exceeded script: 012d00, on @user_script:8.")
		}
		return f
	})
	sh.want(4, "upbloom: key: the filter is too large for one record of the database: "+tooLarge+"\n",
		"", "create", "-n", "1k", "key")
}

const tooLarge = "lower --items, raise --rate, choose a larger plan, or spread the items over more records" +
	" with create --shards N, and fill them with upbloom add KEY -"

// If a load, a replace or a restore is above the limit, it changes nothing,
// leaves nothing behind, and is not to be run again.
func TestTooLargeToLoad(t *testing.T) {
	saved := filepath.Join(t.TempDir(), "saved")
	other := newShell(t)
	other.want(0, "", "item\n", "load", "-n", "3M", "key")
	other.want(0, "", "", "save", "key", saved)
	sh := newShell(t, upstashtest.WithMaxRecord(2<<20))
	for _, args := range [][]string{
		{"load", "-n", "3M", "key"}, {"replace", "-n", "3M", "--yes", "key"}, {"restore", "key", saved},
	} {
		sh.want(4, "upbloom: key: the filter is too large for one record of the database: "+tooLarge+
			"; nothing was changed\n", "item\n", args...)
		sh.want(0, "no filters", "", "ls")
	}
}
