package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// load takes a sharded filter too, from a file or from standard input. Whatever
// it refuses changes nothing.
func TestLoadShards(t *testing.T) {
	sh := newShell(t)
	file := filepath.Join(t.TempDir(), "items")
	if err := os.WriteFile(file, []byte(numbered("a", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	sh.want(0, "", "", "create", "--items", "1k", "--shards", "3", "key")
	shards := func() string { return sh.stored("key:0") + sh.stored("key:1") + sh.stored("key:2") }
	empty := shards()
	for says, stdin := range map[string]string{
		"standard input has no items, and nothing was changed": "",
		"line 2 is not valid UTF-8":                            "a\n\xff\n",
		"in each shard, and without --max-rate the limit for ": numbered("b", 20_000),
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
	var s state
	decode(t, sh.want(0, "", "", "--json", "info", "key"), &s)
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
	if _, err := sh.s.Exec("DEL", "key:1"); err != nil {
		t.Fatal(err)
	}
	sh.want(3, "key: shard 1 of 3 is missing: ", "a\n", "load", "key")
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
		sh.want(0, "", "", "create", "--items", "1k", "--shards", "3", "key")
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
	sh.want(0, "", "", "create", "--items", "1k", "--shards", "3", "key")
	sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if strings.HasPrefix(r.Commands[0], "EVAL") {
			return upstashtest.Drop(upstashtest.AfterExec)
		}
		return upstashtest.Fault{}
	})
	sh.want(exitDatabase, "unexpected EOF, after 5 attempts; nothing was changed\n", numbered("a", 100), "load", "key")
}

// The exit status of an interrupted load is 5 if a shard may have been changed,
// wherever it comes; 130 says that none was.
func TestLoadShardsInterruptedAnywhere(t *testing.T) {
	statuses := map[int]int{}
	for _, when := range []upstashtest.When{upstashtest.BeforeExec, upstashtest.AfterExec} {
		for n := int64(1); ; n++ {
			sh := newShell(t)
			sh.want(0, "", "", "create", "--items", "1k", "--shards", "3", "key")
			before := sh.everything()
			errOut, request, status := sh.interrupted(n, when, numbered("a", 500), "load", "key")
			statuses[status]++
			if request == "" {
				break
			}
			if after := sh.everything(); status == exitInterrupted && after != before {
				t.Errorf("%s, %v: status %d, and a shard has changed: %s", request, when, status, errOut)
			} else if status != exitInterrupted && status != exitUnknown {
				t.Errorf("%s, %v: status %d: %s", request, when, status, errOut)
			}
		}
	}
	if statuses[exitInterrupted] < 3 || statuses[exitUnknown] < 3 || statuses[0] != 2 {
		t.Errorf("statuses %v, want three and more of %d and of %d", statuses, exitInterrupted, exitUnknown)
	}
}
