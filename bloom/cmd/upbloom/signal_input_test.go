//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// Ctrl-C on the terminal ends a program that waits there, and changes nothing.
func TestCtrlC(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "a\n", "load", "--items", "1k", "key")
	before := sh.stored("key")
	for args, waits := range map[string]string{
		"rm key": "Type yes: ", "load key": "reading items", "add key -": "reading items",
		"check key -": "reading items",
	} {
		drawn := sh.ctrlC(waits, strings.Fields(args)...)
		if !strings.Contains(drawn, "\nupbloom: interrupted: key: ") ||
			!strings.Contains(drawn, "nothing was changed") ||
			!strings.HasSuffix(drawn, fmt.Sprintf("\nstatus %d, ended\r\n", exitInterrupted)) {
			t.Errorf("%s: %q", args, drawn)
		}
		if sh.stored("key") != before {
			t.Errorf("%s: the filter was changed", args)
		}
	}
}

// ctrlC runs the program in a shell on a terminal. It presses Ctrl-C when the
// program has drawn waits, and returns all that was drawn, with the exit status
// at the end. The shell stays: if the first process of a terminal ends, what was
// drawn last may be lost.
func (sh *shell) ctrlC(waits string, args ...string) (drawn string) {
	sh.t.Helper()
	terminal, tty, err := pty.Open()
	if err != nil {
		sh.t.Skip("no pseudo-terminal here: ", err)
	}
	const script = `trap : INT; "$@"; echo "status $?, ended"; read stay`
	program := sh.command(args...)
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, program.Args...)...)
	cmd.Env = program.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		sh.t.Fatal(err)
	}
	_ = tty.Close()
	defer func() {
		_ = terminal.Close() // ends the shell
		_ = cmd.Wait()
	}()
	chunk := make([]byte, 1000)
	for sent := false; !strings.HasSuffix(drawn, ", ended\r\n"); {
		n, err := terminal.Read(chunk)
		if err != nil {
			sh.t.Fatalf("%v: %v, %q", args, err, drawn)
		}
		if drawn += string(chunk[:n]); !sent && strings.Contains(drawn, waits) {
			sent = true
			if _, err := io.WriteString(terminal, "half a line\x03"); err != nil {
				sh.t.Fatal(err)
			}
		}
	}
	return drawn
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

// One interrupt ends a program that waits for input, and leaves nothing half
// done.
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

// Under nohup the program outlives its terminal.
func TestNohup(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "a\n", "load", "--items", "1k", "key")
	cmd := sh.command("check", "key", "-")
	cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$@"`, "sh"}, cmd.Args...)
	cmd.Path = testenv.Need(t, "sh", "sh")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := testenv.Start(t, cmd)
	answers := bufio.NewScanner(out)
	for i := range 20 { // a signal that counts ends one of these rounds
		if _, err := io.WriteString(in, "a\n"); err != nil {
			t.Fatal(err)
		}
		if !answers.Scan() || answers.Text() != "yes   a" {
			t.Fatalf("round %d: %q", i, answers.Text())
		}
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("under nohup SIGHUP ends it: %v", err)
	}
}

// If the reader of a pipe stops, as head does, save ends as quietly as if it wrote
// to standard output, also if the pipe is standard output by its name.
func TestSaveToAPipeThatEnds(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "a\n", "load", "--items", "1M", "key") // more than a pipe holds
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no pipe can have a name here: ", err)
	}
	for _, name := range []string{pipe, "/dev/stdout"} {
		cmd := sh.command("save", "key", name)
		var errOut strings.Builder
		cmd.Stderr = &errOut
		in, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err == nil && name == pipe {
			in, err = os.Open(pipe) // waits for the program
		}
		if err == nil {
			_, err = in.Read(make([]byte, 10))
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = in.Close()
		_ = cmd.Wait()
		if cmd.ProcessState.ExitCode() != exitNoReader || errOut.Len() != 0 {
			t.Errorf("%s: %v, and says %q", name, cmd.ProcessState, &errOut)
		}
	}
}
