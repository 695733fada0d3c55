//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"
)

// On a terminal bars show how much of an input was read, and the progress of a load.
// The answer itself goes to standard output. In a file there are none.
func TestProgress(t *testing.T) {
	sh := newShell(t)
	file := fileOf(t, "items", numbered("a", 1000))
	sh.want(0, "", "", "create", "--items", "1M", "big")
	for _, args := range [][]string{{"load", "big", file}, {"load", "big"}} {
		var out strings.Builder
		cmd := sh.command(args...)
		cmd.Stdin, cmd.Stdout = strings.NewReader(numbered("a", 1000)), &out
		drawn := onTerminal(t, cmd, "")
		if !strings.Contains(drawn, "read") || !strings.Contains(drawn, "load") || !strings.Contains(drawn, "100%") ||
			!strings.HasPrefix(out.String(), "loaded 1,000 lines, ") {
			t.Errorf("%q: the bars: %q, and the answer %q", args, drawn, out.String())
		}
	}
	var err error
	cmd := sh.command("load", "big", file)
	if cmd.Stderr, err = os.Create(filepath.Join(t.TempDir(), "err")); err == nil {
		err = cmd.Run()
	}
	if info, statErr := cmd.Stderr.(*os.File).Stat(); err != nil || statErr != nil || info.Size() != 0 {
		t.Errorf("%v, or something was drawn into a file", err)
	}
}

// openTerminal makes a terminal, and returns its two sides.
func openTerminal(t *testing.T) (terminal, tty *os.File) {
	t.Helper()
	terminal, tty, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo-terminal here: ", err)
	}
	return terminal, tty
}

// onTerminal runs a program whose standard error is a terminal. If something is
// typed there, standard input is one too. It returns everything drawn there.
func onTerminal(t *testing.T, cmd *exec.Cmd, typed string) string {
	t.Helper()
	terminal, tty := openTerminal(t)
	defer terminal.Close()
	cmd.Stderr = tty
	if typed != "" {
		cmd.Stdin = tty
		if _, err := io.WriteString(terminal, typed); err != nil {
			t.Fatal(err)
		}
	}
	start(t, cmd)
	_ = tty.Close()
	drawn, _ := io.ReadAll(terminal) // fails when the program ends
	_ = cmd.Wait()
	return string(drawn)
}

// rm asks on a terminal, names the database, because the variables may be those of
// another, and removes only after a yes. With --match it asks for the number.
func TestRemoveAsks(t *testing.T) {
	sh := newShell(t)
	for _, c := range []struct {
		args, asks, refuses      string
		wrong, right, says, left string
	}{
		{"rm key", "\r\nRemove it from " + sh.host() + "? Type yes: ", "nothing was removed", "no|y e s", "yes", "", "a"},
		{
			"rm --match *", "2 filters to remove from " + sh.host() + ". Type their number: ", "nothing was done",
			"yes|3", "2", "\rremoved 2 of 2", "",
		},
	} {
		sh.want(0, "", "", "add", "--items", "1000", "key", "x")
		sh.want(0, "", "", "add", "--items", "1000", "a", "x")
		for _, typed := range append(strings.Split(c.wrong, "|"), "", "\x04") {
			cmd := sh.command(strings.Fields(c.args)...)
			drawn := onTerminal(t, cmd, typed+"\n")
			if cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(drawn, c.asks) || !strings.Contains(drawn, c.refuses) {
				t.Errorf("%s, after %q: status %d, %q", c.args, typed, cmd.ProcessState.ExitCode(), drawn)
			}
			sh.wantKeys("a key")
		}
		cmd := sh.command(strings.Fields(c.args)...)
		if drawn := onTerminal(t, cmd, c.right+"\n"); !cmd.ProcessState.Success() || !strings.Contains(drawn, c.says) {
			t.Errorf("%s, after %s: %q", c.args, c.right, drawn)
		}
		sh.wantKeys(c.left)
	}
}

// An operator who forgets the file, and waits, is told that the program waits
// too.
func TestItemsFromATerminal(t *testing.T) {
	sh := newShell(t)
	const says = "upbloom: reading items from the terminal, one a line; Ctrl-D on an empty line ends them"
	for _, args := range []string{
		"load --items 1k key", "load --items 1k key -", "replace --items 1k --yes key", "add key -", "check key -",
	} {
		cmd := sh.command(strings.Fields(args)...)
		if drawn := onTerminal(t, cmd, "a\nb\n\x04"); !cmd.ProcessState.Success() || !strings.Contains(drawn, says) ||
			strings.Contains(drawn, " B  [") { // a bar over what is typed
			t.Errorf("%s: status %d, %q", args, cmd.ProcessState.ExitCode(), drawn)
		}
	}
	sh.want(0, "", "", "check", "key", "a", "b")
	for _, args := range []string{"--json check key -", "--quiet check key -"} {
		cmd := sh.command(strings.Fields(args)...)
		if drawn := onTerminal(t, cmd, "a\n\x04"); !cmd.ProcessState.Success() || strings.Contains(drawn, "reading") {
			t.Errorf("%s: status %d, %q", args, cmd.ProcessState.ExitCode(), drawn)
		}
	}
	cmd := sh.command("restore", "key", "-")
	if drawn := onTerminal(t, cmd, "a\n"); cmd.ProcessState.ExitCode() != exitUsage ||
		!strings.Contains(drawn, "standard input is a terminal: name a file") {
		t.Errorf("restore: %q", drawn)
	}
}

// A saved filter is not written to a terminal.
func TestSaveToATerminal(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "add", "--items", "1000", "key", "a")
	terminal, tty := openTerminal(t)
	defer terminal.Close()
	defer tty.Close()
	cmd, errOut := sh.process("save", "key", "-")
	cmd.Stdout = tty
	_ = cmd.Run()
	if cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(errOut.String(), "is a terminal") {
		t.Errorf("status %d, %q", cmd.ProcessState.ExitCode(), errOut)
	}
}

// An error in the midst of a bar has a line of its own.
func TestErrorAfterABar(t *testing.T) {
	sh := newShell(t)
	file := fileOf(t, "items", "a\n\x00\n"+numbered("a", 100_000))
	drawn := onTerminal(t, sh.command("load", "--items", "1M", "big", file), "")
	if !strings.Contains(drawn, "read") || !strings.Contains(drawn, "\nupbloom: ") {
		t.Errorf("the bar and the error: %q", drawn)
	}
}

// A bar has no rate before a second has passed: it would be that of a moment.
func TestBarWithoutARateAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, err := os.Create(filepath.Join(t.TempDir(), "drawn"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		drawn := func() string {
			text, err := os.ReadFile(file.Name())
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		a := &app{}
		b := a.newBar(file, "load", 100<<20)
		b.at(40 << 20)
		time.Sleep(100 * time.Millisecond)
		b.at(50 << 20)
		if !strings.Contains(drawn(), "load 50.0 MiB") || strings.Contains(drawn(), "/s") {
			t.Errorf("at first: %q", drawn())
		}
		time.Sleep(9900 * time.Millisecond)
		b.at(90 << 20)
		if !strings.Contains(drawn(), "load 90.0 MiB, 5.0 MiB/s") {
			t.Errorf("after ten seconds: %q", drawn())
		}
	})
}
