package main

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Lines are answered as they come: a writer may wait for an answer before it
// writes the next line.
func TestCheckAnswersAsLinesCome(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "add", "--items", "9", "key", "a", "b")
	cmd := sh.command("check", "key", "-")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := testenv.Start(t, cmd)
	answers := bufio.NewScanner(out)
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
	_ = in.Close()
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitNo {
		t.Errorf("status %d, want %d: an item was a no", cmd.ProcessState.ExitCode(), exitNo)
	}
}

// If the database fails later, the error says how many answers came before.
func TestCheckFailsAfterAnswers(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "add", "--items", "9", "key", "a", "b")
	cmd := sh.command("check", "key", "-")
	var errOut strings.Builder
	cmd.Stderr = &errOut
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(testenv.Start(t, cmd))
	if _, err := io.WriteString(in, "a\n"); err != nil || !answers.Scan() {
		t.Fatal(err, answers.Err())
	}
	sh.s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault { return upstashtest.CommandError("ERR broken") })
	_, _ = io.WriteString(in, "b\n")
	_ = in.Close()
	_ = cmd.Wait()
	const want = "key: after 1 answer: 0 of 1 items done, 1 not done: "
	if cmd.ProcessState.ExitCode() != exitDatabase || !strings.Contains(errOut.String(), want) {
		t.Errorf("status %d, %s, want %d and %q", cmd.ProcessState.ExitCode(), &errOut, exitDatabase, want)
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
