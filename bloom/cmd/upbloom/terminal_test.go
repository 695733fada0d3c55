//go:build unix

package main

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// On a terminal a bar shows how far a load is. The answer itself goes to
// standard output.
func TestProgressInATerminal(t *testing.T) {
	sh := newShell(t)
	cmd := sh.command("load", "--items", "1000000", "big")
	cmd.Stdin = strings.NewReader("a\nb\n")
	var out strings.Builder
	cmd.Stdout = &out
	terminal, tty, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo-terminal here: ", err)
	}
	defer terminal.Close()
	cmd.Stderr = tty
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close()
	drawn, _ := io.ReadAll(terminal) // fails when the program ends
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(drawn), "load") || !strings.Contains(string(drawn), "100%") {
		t.Errorf("the bar: %q", drawn)
	}
	if !strings.HasPrefix(out.String(), "loaded 2 items, a new filter, 8 new bits, 1.3 MiB in 4 requests") {
		t.Errorf("the answer: %q", out.String())
	}
}

// Standard error that is no terminal gets no bar.
func TestNoProgressInAFile(t *testing.T) {
	sh := newShell(t)
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := sh.command("load", "--items", "1000", "small")
	cmd.Stdin, cmd.Stderr = strings.NewReader("a\n"), file
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if info, err := file.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("%d bytes were drawn into a file", info.Size())
	}
}

// A program whose reader has gone, as head does, ends quietly, by the signal
// that a shell shows as 141.
func TestBrokenPipe(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "new", "", "add", "--items", "100", "key", "a")
	for _, args := range [][]string{
		{"ls"}, {"check", "key", "a"}, {"--json", "info", "key"}, {"save", "key", "-"},
	} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = reader.Close()
		cmd := sh.command(args...)
		var errOut strings.Builder
		cmd.Stdout, cmd.Stderr = writer, &errOut
		err = cmd.Run()
		_ = writer.Close()
		status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if err == nil || !ok || status.Signal() != syscall.SIGPIPE || errOut.Len() != 0 {
			t.Errorf("%s: %v, and says %q", args, err, &errOut)
		}
	}
}
