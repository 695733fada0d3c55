package main

import (
	"os"
	"path/filepath"
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
		"key: with 20,000 items more, each shard would have":   numbered("b", 20_000),
	} {
		sh.want(2, says, stdin, "load", "key")
	}
	sh.want(2, "the limit is 1 in 10,000\n", numbered("b", 500), "load", "--max-rate", "1/10000", "key")
	sh.want(3, "a sharded filter, and not a plain filter, as upbloom load needs; nothing was changed: leave --items"+
		" out to load it", "b\n", "load", "--items", "1k", "key")
	if shards() != empty {
		t.Error("what was refused has changed a shard")
	}
	sh.want(0, "loaded 500 items, ", "", "load", "key", file)
	sh.want(0, "loaded 400 items, ", numbered("b", 400), "load", "key")
	sh.want(0, "", numbered("a", 500)+numbered("b", 400), "check", "key", "-")
	var m moved
	decode(t, sh.want(0, "", numbered("a", 500), "--json", "load", "key"), &m)
	if *m.Items != 500 || *m.NewBits != 0 {
		t.Errorf("%d items and %d new bits the second time, want 500 and none", *m.Items, *m.NewBits)
	}
	sh.want(0, "loaded 20,000 items", numbered("c", 20_000), "load", "--force", "key")
	sh.want(0, "loaded 0 items", "", "load", "--allow-empty", "key")
	if _, err := sh.s.Exec("DEL", "key:1"); err != nil {
		t.Fatal(err)
	}
	sh.want(3, "a shard is missing", "a\n", "load", "key")
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
