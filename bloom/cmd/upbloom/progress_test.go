//go:build unix

package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// In a terminal a bar shows how far a load is; the answer itself goes to
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
	drawn, _ := io.ReadAll(terminal) // it ends with an error when the program does
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(drawn), "load") || !strings.Contains(string(drawn), "100%") {
		t.Errorf("the bar: %q", drawn)
	}
	if !strings.HasPrefix(out.String(), "loaded 2 items, 1.3 MiB in 4 requests") {
		t.Errorf("the answer: %q", out.String())
	}
}

// Elsewhere there is none.
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
