package main

import (
	"os"
	"path/filepath"
	"testing"
)

// What a hurried operator types by mistake is an error that says what it was, and
// changes nothing.
func TestStumbles(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "create", "--items", "1k", "--cuckoo", "key")
	sh.want(0, "", "", "create", "--items", "1k", "--window", "1d", "seen")
	before := sh.stored("key")
	for _, command := range []string{"check", "add", "remove"} {
		// An empty pipe, as of a command that failed, is not "all were found".
		sh.want(2, "standard input has no items", "", command, "key", "-")
		sh.want(2, "standard input has no items", "\n\n\r\n", command, "key", "-")
		sh.want(2, "item 1 is empty: is a variable of the shell not set?", "", command, "key", "")
		sh.want(2, "item 2 is empty", "", command, "key", "a", "")
		sh.want(2, `"exit":2`, "", "--json", command, "key", "")
	}
	sh.want(3, "seen: another window is at this key, 11,448 bits (1.4 KiB), k=6, blocked, and not 12,508"+
		" bits (1.5 KiB), k=6, blocked: use another key, or the same flags as then", "",
		"create", "--items", "1k", "--window", "1d", "--panes", "2", "seen")
	sh.want(3, "key: another cuckoo filter is at this key", "", "create", "--items", "9k", "--cuckoo", "key")
	items := filepath.Join(t.TempDir(), "items.txt")
	if err := os.WriteFile(items, []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sh.want(2, "is the key behind the file? It is upbloom load KEY [FILE]", "",
		"load", "--items", "9", items, "key")
	if sh.stored("key") != before {
		t.Error("the filter was changed")
	}
}
