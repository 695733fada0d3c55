package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// load takes a sharded filter too, from a file or from standard input. Whatever
// it refuses changes nothing.
func TestLoadShards(t *testing.T) {
	sh := newShell(t)
	file := fileOf(t, "items", numbered("a", 500))
	sh.create("key", "--shards", "3")
	shards := func() string { return sh.stored("key:0") + sh.stored("key:1") + sh.stored("key:2") }
	empty := shards()
	for says, stdin := range map[string]string{
		"standard input has no items, and nothing was changed": "",
		"line 2 is not valid UTF-8":                            "a\n\xff\n",
		"the sharded filter would hold about 20,":              numbered("b", 20_000),
	} {
		sh.want(2, says, stdin, "load", "key")
	}
	sh.want(2, "the limit is 1 in 10,000\n", numbered("b", 500), "load", "--max-rate", "1/10000", "key")
	sh.want(3, "a sharded filter, and not a plain filter, as upbloom load --items needs; nothing was changed: leave --items"+
		" out to load it", "b\n", "load", "--items", "1k", "key")
	if shards() != empty {
		t.Error("what was refused has changed a shard")
	}
	sh.want(0, "loaded 500 lines, ", "", "load", "key", file)
	out := sh.want(0, "loaded 400 lines, ", numbered("b", 400), "load", "key")
	sh.want(0, "loaded 20,000 lines, ", strings.Repeat(numbered("a", 500), 40), "load", "key") // nothing new
	sh.want(0, "loaded 900 lines, ", numbered("a", 500)+numbered("b", 400), "load", "--max-rate", "2%", "key")
	// The shards are about as full as each other, and what they hold is told as
	// if they were exactly so.
	s := sh.info("key")
	after := fmt.Sprintf("\nafter   about %d items, 1 in ", *s.Items)
	_, rate, _ := strings.Cut(strings.TrimSuffix(out, " false positives\n"), after)
	if one, err := strconv.ParseFloat(rate, 64); err != nil || math.Abs(one**s.Rate-1) > 0.02 {
		t.Errorf("load says %q, and info %d items, %v", out, *s.Items, *s.Rate)
	}
	sh.want(0, "", numbered("a", 500)+numbered("b", 400), "check", "key", "-")
	var m moved
	decode(t, sh.want(0, "", numbered("a", 500), "--json", "load", "key"), &m)
	if *m.Items != 500 || *m.NewBits != 0 || m.Holds.SetBits != s.SetBits || m.Holds.Items != *s.Items {
		t.Errorf("%d lines, %d new bits and then %+v the second time, want 500, none, and as before: %+v",
			*m.Items, *m.NewBits, m.Holds, s)
	}
	sh.want(0, "loaded 20,000 lines", numbered("c", 20_000), "load", "--force", "key")
	sh.want(0, "loaded 0 lines, 0 new bits, 0 B in 1 request (", "", "load", "--allow-empty", "key")
	sh.exec("DEL", "key:1")
	sh.want(3, "key: shard 1 of 3 is missing: ", "a\n", "load", "key")
}

// Few items are counted in many shards, too.
func TestLoadShardsCountsFew(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "create", "-n", "100k", "--shards", "50", "key")
	sh.want(0, "\nafter   about 3 items, ", "a\nb\nc\n", "load", "key")
}

// If the database refuses the upload of one shard, or of all, load says what is
// known.
func TestLoadShardsRefused(t *testing.T) {
	for refusals, tt := range map[int]struct {
		status int
		says   string
	}{
		1: {exitUnknown, "; each shard is as it was, or complete, and it does no harm to run the command again\n"},
		3: {exitDatabase, "; nothing was changed, and what was uploaded is gone within an hour\n"},
	} {
		sh := newShell(t)
		sh.create("key", "--shards", "3")
		left := refusals
		sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) (f upstashtest.Fault) {
			if r.Commands[0] == "SETEX" && left > 0 {
				f = upstashtest.ErrorObject("OOM command not allowed")
				left--
			}
			return f
		})
		sh.want(tt.status, tt.says, numbered("a", 100), "load", "key")
		if left != 0 {
			t.Errorf("%d of %d refusals did not happen", left, refusals)
		}
	}
}

// load looks at the shards before it uploads anything.
func TestLoadShardsUnseen(t *testing.T) {
	sh := newShell(t)
	sh.create("key", "--shards", "3")
	sh.strikes("EVAL", upstashtest.Drop(upstashtest.AfterExec))
	sh.want(exitDatabase, "unexpected EOF, after 5 attempts; nothing was changed\n", numbered("a", 100), "load", "key")
}

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
	sh.strikes("EVAL", upstashtest.NotJSON(upstashtest.BeforeExec))
	sh.want(exitUnknown, "; the filter was made, or it was not, and no item was added: it does no harm to run"+
		" the command again\n", "", add...)
	sh.s.InjectFunc(nil)
	sh.want(0, "new", "", add...)
	sh.want(0, "stored           107,468,754 bytes, expires in ", "", "info", "key")
	sh.want(0, "seen", "", add...)
}

// A full Redis refuses a BITFIELD, also one that only reads. It can be freed.
func TestFullRedis(t *testing.T) {
	addr := testenv.Redis(t)
	sh := newShell(t, upstashtest.WithRedis(addr))
	sh.want(0, "", "", "add", "--items", "9", "plain", "a")
	sh.create("key", "--shards", "3")
	sh.exec("DEL", "key:0")
	configure(t, addr, "maxmemory 1")
	sh.want(exitDatabase, "a full database refuses: free memory, e.g. with upbloom rm, and ask again", "", "check", "plain", "a")
	for _, args := range [][]string{{"info", "key"}, {"check", "key", "a"}, {"add", "key", "a"}} {
		sh.want(exitFilter, "shard 0 is missing: a create or an rm was interrupted", "", args...)
	}
	sh.want(0, "removed from "+sh.host()+"\n", "", "rm", "--rest", "--yes", "key")
	sh.want(0, "removed from "+sh.host()+"\n", "", "rm", "--yes", "plain")
}

// load and replace show the first and the last item: of a hosts file they are
// whole lines.
func TestLoadShowsItems(t *testing.T) {
	sh := newShell(t)
	hosts := "# blocked\n0.0.0.0 ads.example\n\n0.0.0.0 " + strings.Repeat("ü", 70) + "\n"
	says := "\nfirst   # blocked\nlast    0.0.0.0 " + strings.Repeat("ü", 52) + " ...\n"
	sh.want(0, says, hosts, "load", "-n", "1k", "key")
	sh.want(0, says, hosts, "replace", "key")
	sh.want(0, "\nfirst   \"\\ta\"\nlast    \"\\ta\"\n", "\ta\n", "replace", "-y", "key")
	sh.create("shards", "--shards", "2")
	sh.want(0, says, hosts, "load", "shards")
	var m moved
	decode(t, sh.want(0, "", hosts, "--json", "load", "key"), &m)
	if m.First != "# blocked" || !strings.HasSuffix(m.Last, "üüü") {
		t.Errorf("%q and %q", m.First, m.Last)
	}
	if out := sh.want(0, "loaded 0 lines", "", "load", "--allow-empty", "key"); strings.Contains(out, "first") {
		t.Errorf("of no items: %q", out)
	}
}
