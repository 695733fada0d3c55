package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// If a filter is too large for a record, the error names flags of its kind, and
// quotes no script. Above the limit of most plans it names the number of shards
// that suit them.
func TestTooLargeForARecord(t *testing.T) {
	sh := newShell(t)
	const is = " bytes is too large for one record of the database: "
	for flags, says := range map[string]string{
		"-n 300M": "key: the filter's string of 403,007,765" + is + "lower --items, raise --rate, choose a larger plan," +
			" or spread the items over more records with create --shards 5, and fill them with upbloom load\n",
		"-n 300M --shards 2": "key: shard 1 of 2: the filter's string of 201,553,254" + is + "use more --shards, lower" +
			" --items, raise --rate, or choose a larger plan; with 5 shards none is above the 100,000,000 bytes of" +
			" most plans\n",
		"-n 50M --window 1h": is + "lower --items (a shorter --window has fewer items), raise --rate, or choose a" +
			" larger plan\n",
		"-n 50M --window 1h --panes 2": "raise --rate, use fewer --panes, or choose a larger plan\n",
		"-n 100M --scalable":           is + "lower --items, from which the filter grows, raise --rate, or choose a larger plan\n",
		"-n 100M --cuckoo":             is + "lower --items, raise --rate, or choose a larger plan\n",
	} {
		sh.want(4, says, "", append(append([]string{"create"}, strings.Fields(flags)...), "key")...)
		sh.want(0, "no filters", "", "ls")
	}
}

// So does the error of an add that would make such a filter: it adds nothing,
// wherever the item's bits lie. Another filter costs the add no more than before.
func TestTooLargeToAdd(t *testing.T) {
	sh := newShell(t)
	for flags, bytes := range map[string]string{"-n 300M": "403,007,765", "-n 80M": "107,468,754"} {
		for _, item := range []string{"a", "b", "c", "-"} {
			args := append(append([]string{"add"}, strings.Fields(flags)...), "key", item)
			if out := sh.want(4, "upbloom: key: the filter's string of "+bytes+" bytes is too large for one record of the"+
				" database: lower --items, raise --rate, choose a larger plan, or spread the items over more records with"+
				" create --shards ", numbered("item", 100), args...); out != "" {
				t.Errorf("%s %s prints %q", flags, item, out)
			}
			sh.want(0, "no filters", "", "ls")
		}
	}
	var requests [2]int64
	for i, size := range []string{"1k", "70M"} {
		sh.s.ResetStats()
		sh.want(0, "new", "", "add", "-n", size, "key", "a")
		requests[i] = sh.s.Stats().Requests
		sh.want(0, "", "", "rm", "--yes", "key")
	}
	if requests[0] != requests[1] {
		t.Errorf("%v requests for an add that makes a filter of 1k and of 70M items, want as many", requests)
	}

	// Without --items no flag makes the filter smaller.
	sh.want(0, "", "", "create", "-n", "1k", "key")
	sh.s.Inject(upstashtest.Fault{}, upstashtest.ErrorObject("ERR max single record size exceeded"))
	sh.want(4, "key: 0 of 2 items done, 2 not done: the filter's string of 1,369 bytes is too large for one record of"+
		" the database: choose a larger plan, or fill a smaller filter from where its items come from\n",
		"", "add", "key", "a", "b")
}

// If a load, a replace or a restore is above the limit, it changes nothing,
// leaves nothing behind, and is not to be run again.
func TestTooLargeToLoad(t *testing.T) {
	saved := filepath.Join(t.TempDir(), "saved")
	other := newShell(t)
	other.want(0, "", "item\n", "load", "-n", "3M", "key")
	other.want(0, "", "", "save", "key", saved)
	sh := newShell(t, upstashtest.WithMaxRecord(2<<20))
	const is = "upbloom: key: the filter's string of 4,030,105 bytes is too large for one record of the database: "
	const smaller = "lower --items, raise --rate, choose a larger plan, or spread the items over more records with" +
		" create --shards N, and fill them with upbloom load"
	for _, tt := range []struct {
		advice string
		args   []string
	}{
		{smaller, []string{"load", "-n", "3M", "key"}},
		{smaller, []string{"replace", "-n", "3M", "--yes", "key"}},
		{"choose a larger plan, or fill a smaller filter from where its items come from", []string{"restore", "key", saved}},
	} {
		sh.want(4, is+tt.advice+"; nothing was changed\n", "item\n", tt.args...)
		sh.want(0, "no filters", "", "ls")
	}
}

// On a larger plan an add makes the whole string of such a filter. If it is not
// known whether that was made, no item was added.
func TestAddMakesALongFilterWhole(t *testing.T) {
	sh := newShell(t, upstashtest.WithMaxRecord(200_000_000))
	add := []string{"add", "-n", "80M", "--ttl", "1h", "key", "a"}
	sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if r.Commands[0] == "EVAL" {
			return upstashtest.NotJSON(upstashtest.BeforeExec)
		}
		return upstashtest.Fault{}
	})
	sh.want(exitUnknown, "; the filter was made, or it was not, and no item was added: it does no harm to run"+
		" the command again\n", "", add...)
	sh.s.InjectFunc(nil)
	sh.want(0, "new", "", add...)
	sh.want(0, "stored           107,468,754 bytes, expires in ", "", "info", "key")
	sh.want(0, "seen", "", add...)
}
