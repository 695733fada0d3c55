package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Each message says in the program's words what is wrong, and what to do.
func TestMessages(t *testing.T) {
	sh := newShell(t)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	saved := filepath.Join(dir, "saved")
	sh.want(0, "", "", "add", "--items", "1000", "seen", "a")
	sh.want(0, "", "", "save", "seen", saved)
	sh.want(0, "", "", "add", "--items", "5000", "larger", "a")
	for _, c := range [][]string{{"LPUSH", "list", "v"}, {"SET", "text", "some text"}} {
		sh.exec(c...)
	}
	items := file("items.txt", "a\nb\n")
	const gzipped = "\x1f\x8b\x08\x00"
	compressed := file("items.gz", gzipped)
	_, err := os.Stat("/does/not/exist")
	missing := errors.Unwrap(err).Error()
	plan := []string{"create", "key", "-n", "1000", "-p"}
	for _, c := range []struct {
		status int
		says   string
		not    string
		stdin  string
		args   []string
	}{
		{3, "restore it to another key", "--items", "", []string{"restore", "--merge", "larger", saved}},
		{2, `there is no command "rebuild"; replace --help says how to do that`, "topic", "", []string{"rebuild", "-h"}},
		{2, `there is no command "rebuild"`, "", "", []string{"help", "rebuild"}},
		{2, `there is no command "version"; --version does that`, "", "", []string{"version"}},
		{2, "- stands for the lines of standard input", "", "b\n", []string{"check", "seen", "-", "a"}},
		{2, "- stands for the lines of standard input", "", "b\n", []string{"add", "seen", "a", "-"}},
		{0, "upbloom load [options] KEY [FILE]", "", "", []string{"help", "load"}},
		{0, "upbloom load [options] KEY [FILE]", "", "", []string{"load", "--help"}},
		{0, "RebuildInAnotherSize", "", "", []string{"replace", "-h"}},
		{2, "--items is 0: say how many", "--batch", "", []string{"calc", "-n", "0"}},
		{2, `"300000d" for flag --ttl: it is too long: the longest time is 106751d`, "write a time", "", []string{
			"create", "-n", "5", "--ttl", "300000d", "new",
		}},
		{3, "use another key (upbloom knows no filters without a header)", "nothing else", "", []string{"info", "text"}},
		{0, "130 interrupted (serve: 0), 141", "", "", []string{"help"}},
		{0, "upbloom version ", "", "", []string{"--version"}},
		{
			2, `invalid value "1y" for flag --ttl: write a time such as`, "strconv", "",
			[]string{"add", "-n", "5", "--ttl", "1y", "key", "a"},
		},
		{2, "write a whole number such as 5000000, 5M or 5e6", "strconv", "", []string{"calc", "-n", "5x"}},
		{2, items + " is no saved filter, and was left as it is", "", "", []string{"save", "seen", items}},
		{2, "items.gz is compressed with gzip: gunzip", "iconv", "", []string{"load", "seen", compressed}},
		{2, "standard input is compressed with gzip", "iconv", gzipped, []string{"add", "seen", "-"}},
		{2, "saved is a saved filter", "UTF-8", "", []string{"load", "seen", saved}},
		{2, "is text in UTF-16", "", "\xff\xfea\x00", []string{"load", "seen"}},
		{2, "line 1 holds a zero byte", "", "a\x00b\x00\n\x00", []string{"load", "seen"}},
		{2, dir + " is a directory", "", "", []string{"load", "seen", dir}},
		{2, filepath.FromSlash("/does/not: ") + missing, ".upbloom", "", []string{"save", "seen", "/does/not/exist"}},
		{
			2, "items.txt is no saved filter, and nothing was changed: upbloom load adds", "save it", "",
			[]string{"restore", "new", items},
		},
		{2, dir + " is a directory: name a file", "", "", []string{"save", "seen", dir}},
		{2, "line 1 is binary data: a file of items is text", "iconv", "\x7fELF\xff\x00\n", []string{"load", "seen"}},
		{2, "line 1 is binary data: a file of items is text", "carriage", "\x9c\x01\r\xff\n", []string{"load", "seen"}},
		{2, "line 2 holds a carriage return", "", "a\nb\rc\rd\n", []string{"load", "seen"}},
		{
			0, "upbloom: standard input: 2 lines with white space or what nobody sees at an end, which belongs to the item, line 2 first\n",
			"", "a\n b\n\nc\t\r\nd e\n",
			[]string{"load", "seen"},
		},
		{1, "1 line with white space or what", "", " a\n", []string{"check", "seen", "-"}},
		// A no-break space, a zero width space, a mark of direction, a soft hyphen.
		{1, "4 lines with white space or what", "", "a\u00a0\nb\u200b\nc\u200e\n\u00ada\nd\n", []string{"check", "seen", "-"}},
		// An Arabic number sign is drawn, and the flag of England ends in a tag.
		{1, "", "nobody sees", "\u0600a\n\U0001f3f4\U000e0067\U000e0062\U000e007f\n", []string{"check", "seen", "-"}},
		{3, "upbloom knows no filters without a header); nothing was changed\n", "", "", []string{"add", "text", "a"}},
		{3, "or another type that is no string", "nothing was changed", "", []string{"info", "list"}},
		{3, "; nothing was changed\n", "", "a\n", []string{"replace", "--items", "9", "list"}},
		{2, "standard input is empty", "", "", []string{"restore", "new", "-"}},
		{
			2, "--rate is 1e-12: --scheme blocked reaches 1e-9; use that, or --scheme xxh3", "Scheme", "",
			append(plan, "1e-12"),
		},
		{2, "at --rate 1e-09", "FPRate", "", []string{"create", "-n", "1e9", "-p", "1e-9", "key"}},
		{2, "write a rate such as 0.01, 1% or 1/1000", "strconv", "", append(plan, "one percent")},
		{3, "list: the key holds a list, a hash", "HTTP", "", []string{"info", "list"}},
		{3, "list: the key holds a list, a hash", "WRONGTYPE", "", []string{"check", "list", "a"}},
		{3, "list: the key holds a list", "HTTP", "", []string{"add", "-n", "5", "list", "a"}},
	} {
		out, errOut, status := sh.run(c.stdin, c.args...)
		text := out + errOut
		wrong := c.not != "" && strings.Contains(errOut, c.not)
		if status != c.status || !strings.Contains(text, c.says) || wrong {
			t.Errorf("upbloom %q: status %d, want %d, %q and not %q\n%s", c.args, status, c.status, c.says,
				c.not, text)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".upbloom*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	sh.want(0, "saved", "", "save", "--force", "seen", items)
	sh.want(0, "saved", "", "save", "seen", saved) // over its own kind
}

// A byte order mark is not part of the first item.
func TestByteOrderMark(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "loaded 2 lines", "\ufeffalpha\nbeta\n", "load", "--items", "100", "key")
	sh.want(0, "yes   alpha\nyes   beta", "", "check", "key", "alpha", "beta")
	sh.want(0, "yes   alpha", "\ufeffalpha\n", "check", "key", "-")

	// Files that were joined have one in the middle, which nobody sees.
	for _, command := range []string{"load key", "replace key", "add key -", "check key -"} {
		sh.unchanged("key", "standard input: line 2 begins with a byte order mark", "alpha\n\ufeffgamma\n",
			strings.Fields(command)...)
	}
	sh.unchanged("key", "line 1 begins with a byte order mark", "\ufeff\ufeffgamma\n", "load", "key")
}

// With --json an error is one object, on standard error.
func TestErrorsAsJSON(t *testing.T) {
	sh := newShell(t)
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{3, "missing: no filter at this key", []string{"--json", "info", "missing"}},
		{2, "no command", []string{"--json", "nope"}},
		{2, "not defined: -nope", []string{"--json", "info", "--nope"}},
		{2, "not defined: -nope", []string{"--nope", "--json", "info"}},
	} {
		out, errOut, status := sh.run("", c.args...)
		var f failure
		if err := json.Unmarshal([]byte(errOut), &f); err != nil || out != "" {
			t.Errorf("%q prints %q and %q, %v", c.args, out, errOut, err)
		}
		if status != c.status || f.Exit != c.status || !strings.Contains(f.Error, c.says) {
			t.Errorf("%q: status %d, %+v, want %d and %q", c.args, status, f, c.status, c.says)
		}
	}
}

// hostile controls a terminal, forges a line and reverses the text.
const hostile = "x\x1b]0;owned\a\r\nupbloom: all is well\u009b31m\u202etxt\x7f"

// Names of keys and files, items and a server's words never reach the terminal
// unescaped.
func TestNothingDrivesTheTerminal(t *testing.T) {
	sh := newShell(t)
	name := filepath.Join(t.TempDir(), hostile)
	if err := os.WriteFile(name, []byte("a\n\xff\n"), 0o600); err != nil {
		t.Skip("no file can have such a name here: ", err)
	}
	clean := func(args ...string) {
		t.Helper()
		out, errOut, _ := sh.run("", args...)
		for _, text := range []string{out, errOut} {
			if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) ||
				strings.HasPrefix(text, "upbloom: all is well") || strings.Contains(text, "\nupbloom: all is") {
				t.Errorf("%q prints %q", args, text)
			}
		}
	}
	for _, mode := range [][]string{{}, {"--json"}} {
		for _, args := range [][]string{
			{"add", "--items", "100", hostile, hostile},
			{"check", hostile, hostile},
			{"ls"},
			{"info", hostile},
			{"info", "missing" + hostile},
			{"load", hostile, name},
			{"load", hostile, name + "/no"},
			{"restore", hostile, name},
			{"restore", hostile, name + "no"},
			{"save", hostile, name},
			{"save", hostile, name + "/no"},
			{"ttl", hostile, hostile},
			{"rm", hostile},
			{hostile},
			{"load", "--" + hostile, "key"},
			{"calc", "-n", hostile},
			{"create", "-n", "5", "--scheme", hostile, "key"},
			{"serve", "--addr", hostile},
			{"help", hostile},
			{"rm", "--yes", hostile},
		} {
			clean(append(mode, args...)...)
		}
		sh.s.Inject(upstashtest.ErrorObject("ERR " + hostile))
		clean(append(mode, "info", "key")...)
	}
}

func TestJSONEscapes(t *testing.T) {
	var b strings.Builder
	if err := writeJSON(&b, map[string]string{"a": hostile + "\U000e0001é<"}); err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSuffix(b.String(), "\n")
	hidden := strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
	if hidden || !strings.Contains(text, "é<") {
		t.Errorf("written as %q", text)
	}
	var back map[string]string
	if err := json.Unmarshal([]byte(text), &back); err != nil || back["a"] != hostile+"\U000e0001é<" {
		t.Errorf("read back as %q, %v", back, err)
	}
}

// An error about a file names the file once, as one word.
func TestFileErrorsNameTheFile(t *testing.T) {
	err := error(&fs.PathError{Op: "open", Path: "a\nb", Err: errors.New("no")})
	if got := plain(err); got != `open "a\nb": no` {
		t.Errorf("%q", got)
	}
}

// An error of the server, or of waiting for it, is told without the words of Go.
func TestPlainWords(t *testing.T) {
	sh := newShell(t)
	sh.want(4, "upbloom: opening the database: no Redis at "+testenv.ClosedAddr(t)[:9], "",
		"serve", "--addr", "127.0.0.1:0", "--redis", testenv.ClosedAddr(t))
	synctest.Test(t, func(t *testing.T) {
		client, err := upstash.New("https://db.example", "t", upstash.WithTimeout(20*time.Millisecond), upstash.WithRetry(0),
			upstash.WithTransport(&silent{until: 2}))
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Do(t.Context(), upstash.Cmd("GET", "key"))
		if got, want := plain(err), "GET: no answer within 20ms"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
