package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// If shards lie at a key without shard 0, or without more of them, each command
// says so, and none makes another filter beside them.
func TestShardsWithoutFirst(t *testing.T) {
	for _, lost := range []string{"key:0", "key:0 key:1"} {
		sh := newShell(t)
		lines := filepath.Join(t.TempDir(), "lines")
		if err := os.WriteFile(lines, []byte("a\nb\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		sh.want(0, "", "", "create", "--items", "1k", "--shards", "4", "key")
		sh.want(0, "", "", "add", "key", "a", "b", "c", "d", "e", "f", "g", "h")
		if _, err := sh.s.Exec(append([]string{"DEL"}, strings.Fields(lost)...)...); err != nil {
			t.Fatal(err)
		}
		before, _ := sh.keys()
		for _, line := range []string{
			"info key", "check key a", "add key a", "add -n 1k key a", "load key " + lines, "load -n 1k key " + lines,
			"replace key " + lines, "replace -n 1k key " + lines, "create -n 1k key", "create -n 1k --cuckoo key",
		} {
			sh.want(exitFilter, "key: shards of a sharded filter are here, and shard 0 is missing: ", "",
				strings.Fields(line)...)
		}
		gone := map[int]string{1: "key: shard 0 of 4 is missing", 2: "key: shards 0, 1 of 4 are missing"}
		sh.want(exitFilter, gone[len(strings.Fields(lost))]+", and others hold items: lost, or in another database;"+
			" nothing was changed: upbloom rm --rest removes the others\n", "", "create", "-n", "1k", "--shards", "4", "key")
		if all, _ := sh.keys(); all != before {
			t.Errorf("after all that %s is here, want %s", all, before)
		}
		sh.want(0, "removed from "+sh.host()+"\n", "", "rm", "--rest", "--yes", "key")
		if all, _ := sh.keys(); all != "" {
			t.Errorf("left: %s", all)
		}
	}
}

// --rest removes shards, and no other filter at the key.
func TestRemoveRestOfAPlainFilter(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "add", "-n", "10", "key", "a")
	sh.want(exitUsage, "upbloom: --rest is for the shards of a sharded filter, and the key holds a plain filter: leave --rest"+
		" out to remove that\n", "", "rm", "--rest", "--yes", "key")
	sh.want(0, "yes", "", "check", "key", "a")
}
