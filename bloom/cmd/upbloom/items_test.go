package main

import (
	"io"
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
	sh.want(2, "line 2 is longer than", "a\n"+strings.Repeat("x", maxLine+1), "load", "key")
}

// interrupted starts the program with a standard input that begins with input
// and does not end, and interrupts it while it reads. The input is more than a
// pipe holds. Once it is written, the program is reading.
func interrupted(t *testing.T, sh *shell, input string, args ...string) (errOut string, status int) {
	t.Helper()
	cmd := sh.command(args...)
	var e strings.Builder
	cmd.Stderr = &e
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, input); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return e.String(), cmd.ProcessState.ExitCode()
}

// One interrupt ends a program in wait for input, and leaves nothing half done.
func TestInterruptedInput(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "loaded", "a\n", "load", "--items", "1000000", "saved")
	saved := sh.want(0, "", "", "save", "saved", "-")
	lines := strings.Repeat("item\n", 200_000)
	for _, c := range []struct {
		input string
		args  []string
	}{
		{lines, []string{"load", "--items", "1000000", "key"}},
		{lines, []string{"replace", "--items", "1000000", "key"}},
		{lines, []string{"add", "--items", "1000000", "key", "-"}},
		{saved[:len(saved)-1], []string{"restore", "key", "-"}},
	} {
		sh := newShell(t)
		args := c.args
		errOut, status := interrupted(t, sh, c.input, args...)
		if status != exitInterrupted || !strings.HasPrefix(errOut, "upbloom: interrupted: ") ||
			!strings.Contains(errOut, "was not read to its end, and nothing was changed\n") {
			t.Errorf("%s: status %d, %q, want %d", args[0], status, errOut, exitInterrupted)
		}
		if v, err := sh.s.Exec("DBSIZE"); err != nil || v != int64(0) {
			t.Errorf("%s: %v keys are left, %v", args[0], v, err)
		}
	}
}
