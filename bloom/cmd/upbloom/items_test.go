package main

import (
	"bufio"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A filter of bytes that are not text would answer "no" to text. Nothing is
// sent, and the error names the line.
func TestItemsAreUTF8(t *testing.T) {
	sh := newShell(t)
	latin1 := "alpha\n\nb\xe9ta\ngamma\n"
	file := fileOf(t, "items.txt", latin1)
	for _, args := range [][]string{
		{"add", "--items", "9", "key", "-"},
		{"load", "--items", "9", "key"},
		{"load", "--items", "9", "key", file},
		{"replace", "--items", "9", "key"},
	} {
		sh.want(2, "line 3 is not valid UTF-8: convert", latin1, args...)
	}
	sh.want(2, "item 2 is not valid UTF-8", "", "add", "--items", "9", "key", "alpha", "b\xe9ta")
	sh.wantKeys("")
	sh.want(0, "new   b\u00e9ta", "", "add", "--items", "9", "key", "b\u00e9ta")
	sh.want(2, "item 1 is not valid UTF-8", "", "check", "key", "b\xe9ta")
	sh.want(2, "line 1 is not valid UTF-8", "b\xe9ta\n", "check", "key", "-")
	sh.want(2, "the key is not valid UTF-8: is the terminal", "", "info", "b\xe9ta")
	longest := strings.Repeat("x", maxLine)
	for _, input := range []string{longest, longest + "\n", "\ufeff" + longest + "\r\nlast"} {
		sh.want(0, "loaded ", input, "load", "--items", "9", "longest")
	}
	sh.want(0, "yes", longest, "check", "longest", "-")
	sh.want(2, "line 2 is longer than 1 MiB, and nothing was changed", "a\n"+longest+"x\n", "load", "longest")
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

// Lines are answered as they come: a writer may wait for an answer before it
// writes the next line. If the database fails later, the error says how many answers
// came before.
func TestCheckAnswersAsLinesCome(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "add", "--items", "9", "key", "a", "b")
	for _, fails := range []bool{false, true} {
		cmd, errOut := sh.process("check", "key", "-")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		answers := bufio.NewScanner(testenv.Start(t, cmd))
		for _, c := range []struct{ item, answer string }{
			{"a", "yes   a"}, {"x", "no    x"}, {"b", "yes   b"},
		} {
			if _, err := io.WriteString(in, c.item+"\n"); err != nil {
				t.Fatal(err)
			}
			if !answers.Scan() || answers.Text() != c.answer {
				t.Fatalf("%s: %q, want %q", c.item, answers.Text(), c.answer)
			}
		}
		status, want := exitNo, ""
		if fails {
			status, want = exitDatabase, "key: after 3 answers: 0 of 1 items done, 1 not done: "
			sh.s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault { return upstashtest.CommandError("ERR broken") })
			_, _ = io.WriteString(in, "b\n")
		}
		_ = in.Close()
		_ = cmd.Wait()
		if cmd.ProcessState.ExitCode() != status || !strings.Contains(errOut.String(), want) {
			t.Errorf("status %d, %s, want %d and %q", cmd.ProcessState.ExitCode(), errOut, status, want)
		}
	}
}

// An input without an end does not fill the memory: check takes no more than a
// round ahead, and ends with its reader.
func TestCheckEndsWithItsReader(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "add", "--items", "9", "key", "a")
	cmd := sh.command("check", "key", "-")
	cmd.Stdin = strings.NewReader(strings.Repeat("a\n", 100*roundLines))
	out := testenv.Start(t, cmd)
	if first, err := bufio.NewReader(out).ReadString('\n'); first != "yes   a\n" || err != nil {
		t.Errorf("%q, %v", first, err)
	}
	_ = out.Close()
	_ = cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != exitNoReader {
		t.Errorf("status %d, want %d", status, exitNoReader)
	}
	if n := sh.s.Stats().Requests; n > 50 {
		t.Errorf("%d requests after the reader left", n)
	}
}

// Lines after a wrong one are not asked, those before it are answered.
func TestCheckStopsAtAWrongLine(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "add", "--items", "9", "key", "a")
	out, errOut, status := sh.run("a\nb\xe9ta\na\n", "check", "key", "-")
	if status != exitUsage || strings.Count(out, "yes   a") != 1 || !strings.Contains(errOut, "line 2 is not valid UTF-8") {
		t.Errorf("status %d, %q, %q", status, out, errOut)
	}
	sh.want(2, "standard input has no items", "\n\n", "check", "key", "-")
	sh.want(3, "no filter at this key", "a\n", "check", "nokey", "-")
}
