package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// If a program's reader has gone, as with head, the program ends quietly, with
// the status that a shell reports after SIGPIPE. doctor removes its keys first.
func TestBrokenPipe(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "new", "", "add", "--items", "100", "key", "a")
	for _, args := range [][]string{
		{"ls"},
		{"check", "key", "a"},
		{"check", "key", "b"},
		{"--json", "info", "key"},
		{"save", "key", "-"},
		{"doctor"},
		{"load", "key", "-"},
	} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = reader.Close()
		cmd := sh.command(args...)
		var errOut strings.Builder
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("c\n"), writer, &errOut
		_ = cmd.Run()
		_ = writer.Close()
		if cmd.ProcessState.ExitCode() != exitNoReader || errOut.Len() != 0 {
			t.Errorf("%s: %v, and says %q", args, cmd.ProcessState, &errOut)
		}
	}
	if all, _ := sh.keys(); all != "key" {
		t.Errorf("these keys are left: %s", all)
	}
	sh.want(0, "", "", "check", "key", "c") // load had ended
}

// If the named file cannot be replaced, as on Windows while another program has
// it open, save says so of that file, and leaves nothing beside it.
func TestSaveThatCannotReplace(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "add", "--items", "9", "key", "a")
	name := filepath.Join(t.TempDir(), "saved")
	sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if slices.Contains(r.Commands, "EVAL_RO") { // save has looked at the name by then
			_ = os.Mkdir(name, 0o700)
		}
		return upstashtest.Fault{}
	})
	sh.want(2, "saved cannot be replaced, and was left as it is: ", "", "save", "key", name)
	if left, err := os.ReadDir(filepath.Dir(name)); err != nil || len(left) != 1 {
		t.Errorf("%v are left, %v", left, err)
	}
}
