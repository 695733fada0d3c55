package main

import (
	"os"
	"path/filepath"
	"testing"
)

// save writes over an older state of the same filter, and over nothing that
// holds more.
func TestSaveKeepsABackup(t *testing.T) {
	sh := newShell(t)
	file := filepath.Join(t.TempDir(), "saved")
	content := func() string {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	refused := func(key string) {
		t.Helper()
		before := content()
		sh.want(2, file+" holds another filter, or items that this one has lost, and was left as it is: name another"+
			" file, or use --force\n", "", "save", key, file)
		if content() != before {
			t.Errorf("save %s has changed the file", key)
		}
		if all, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); err != nil || len(all) > 0 {
			t.Errorf("left beside it: %v, %v", all, err)
		}
	}
	sh.want(0, "new", "", "add", "-n", "1k", "key", "a", "b")
	sh.want(0, "new", "", "add", "-n", "1k", "alike", "c")
	sh.want(0, "new", "", "add", "-n", "2k", "larger", "a", "b")
	sh.want(0, "saved", "", "save", "key", file)
	sh.want(0, "saved", "", "save", "key", file)
	sh.want(0, "new", "", "add", "key", "d")
	sh.want(0, "saved", "", "save", "key", file)
	refused("alike")
	refused("larger")
	sh.want(0, "replaced", "a\nb\n", "replace", "-y", "key")
	refused("key")
	sh.want(0, "removed", "", "rm", "-y", "key")
	sh.want(0, "created", "", "create", "-n", "1k", "key")
	refused("key")
	sh.want(0, "restored", "", "restore", "key", file)
	sh.want(0, "saved", "", "save", "key", file)
	sh.want(0, "saved", "", "save", "--force", "larger", file)

	for _, damaged := range []string{"", content()[:20], content()[:200]} {
		if err := os.WriteFile(file, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		sh.want(0, "saved", "", "save", "larger", file)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	sh.want(0, "saved", "", "save", "alike", file)
}
