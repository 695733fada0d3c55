package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A filter of bytes that are not text would answer "no" to text. Nothing is
// sent, and the error names the line.
func TestItemsAreUTF8(t *testing.T) {
	sh := newShell(t)
	latin1 := "alpha\n\nb\xe9ta\ngamma\n"
	file := filepath.Join(t.TempDir(), "items.txt")
	if err := os.WriteFile(file, []byte(latin1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"add", "--items", "9", "key", "-"},
		{"load", "--items", "9", "key"},
		{"load", "--items", "9", "key", file},
		{"replace", "--items", "9", "key"},
	} {
		sh.want(2, "line 3 is not valid UTF-8: convert", latin1, args...)
	}
	sh.want(2, "item 2 is not valid UTF-8", "", "add", "--items", "9", "key", "alpha", "b\xe9ta")
	if v, err := sh.s.Exec("DBSIZE"); err != nil || v != int64(0) {
		t.Errorf("%v keys are left, %v", v, err)
	}
	sh.want(0, "new   b\u00e9ta", "", "add", "--items", "9", "key", "b\u00e9ta")
	sh.want(2, "item 1 is not valid UTF-8", "", "check", "key", "b\xe9ta")
	sh.want(2, "line 1 is not valid UTF-8", "b\xe9ta\n", "check", "key", "-")
	sh.want(2, "the key is not valid UTF-8: is the terminal", "", "info", "b\xe9ta")
	longest := strings.Repeat("x", maxLine)
	for _, input := range []string{longest, longest + "\n", "\ufeff" + longest + "\r\nlast"} {
		sh.want(0, "loaded ", input, "load", "--items", "9", "longest")
	}
	sh.want(0, "yes", longest, "check", "longest", "-")
	sh.want(2, "line 2 is longer than 1048576 bytes", "a\n"+longest+"x\n", "load", "longest")
	sh.want(2, "line 2 is longer than", "a\n"+strings.Repeat("x", maxLine+1), "load", "key")
}

// A last line without an end is a line.
func TestInputEndsInALine(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "loaded 2 lines", "a\nb", "load", "--items", "9", "key")
	sh.want(0, "replaced by 2 lines", "a\nb", "replace", "key")
	sh.want(0, "new   d\n", "c\r\nd", "add", "key", "-")
	sh.want(0, "yes   a\nyes   b\nyes   c\nyes   d\n", "a\nb\r\n\nc\r\nd", "check", "key", "-")
}

// An item that is the name of a file is an item all the same, and a note says
// how to take the file's lines.
func TestItemIsAFile(t *testing.T) {
	sh := newShell(t)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("urls.txt", []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	sh.want(0, "", "", "create", "--items", "9", "--cuckoo", "ck")
	const note = "upbloom: urls.txt was taken as an item, and is also a file here: to take its lines use upbloom "
	for _, c := range []struct {
		status    int
		out, note string
		args      []string
	}{
		{0, "new   urls.txt\n", note + "add key - < urls.txt\n", []string{"add", "--items", "9", "key", "urls.txt"}},
		{0, "yes   urls.txt\n", note + "check key - < urls.txt\n", []string{"check", "key", "urls.txt"}},
		{1, "missing  urls.txt\n", note + "remove ck - < urls.txt\n", []string{"remove", "ck", "urls.txt"}},
		{0, `{"item":"urls.txt","found":true}` + "\n", "", []string{"--json", "check", "key", "urls.txt"}},
		{0, "new   folder\n", "", []string{"add", "key", "folder"}},
		{0, "yes   urls.txt\nyes   folder\n", "", []string{"check", "key", "urls.txt", "folder"}},
	} {
		if out, errOut, status := sh.run("", c.args...); status != c.status || out != c.out || errOut != c.note {
			t.Errorf("%q: status %d, %q, %q", c.args, status, out, errOut)
		}
	}
	if out, errOut, status := sh.run("urls.txt\n", "check", "key", "-"); status != 0 || errOut != "" {
		t.Errorf("a line: status %d, %q, %q", status, out, errOut)
	}
}
