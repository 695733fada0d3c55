//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A hold keeps back the answer to one request until the client leaves.
type hold struct {
	at   string // its commands
	when upstashtest.When
}

// interrupts returns the signals that end the program in order. Those that this
// test ignores, the program ignores too: SIGHUP under nohup, and SIGINT behind an
// & in a script.
func interrupts() []syscall.Signal {
	return slices.DeleteFunc([]syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP},
		func(s syscall.Signal) bool { return signal.Ignored(s) })
}

// place has the server keep to the holds. reached gets a value when the request
// of each hold has come, and with AfterExec once it was executed.
func (sh *shell) place(holds ...hold) (reached chan struct{}) {
	reached = make(chan struct{}, len(holds))
	var executed atomic.Bool
	sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if len(holds) == 0 || strings.Join(r.Commands, " ") != holds[0].at {
			return upstashtest.Fault{}
		}
		when := holds[0].when
		holds = holds[1:]
		if when == upstashtest.AfterExec {
			executed.Store(true)
			return upstashtest.Fault{}
		}
		reached <- struct{}{}
		return upstashtest.Stall(when)
	})
	sh.through(nil, func(r *http.Response) {
		if executed.CompareAndSwap(true, false) {
			reached <- struct{}{}
			<-r.Request.Context().Done()
		}
	})
	return reached
}

// signalled runs the program, and sends it one of the signals when it waits at
// each hold.
func (sh *shell) signalled(with []syscall.Signal, holds []hold, stdin string, args ...string,
) (out, errOut string, status syscall.WaitStatus) {
	sh.t.Helper()
	direct := sh.env
	reached := sh.place(holds...)
	defer func() { sh.env = direct; sh.s.InjectFunc(nil) }()
	cmd := sh.command(args...)
	var o, e strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &o, &e
	start(sh.t, cmd)
	over := make(chan struct{})
	go func() { _ = cmd.Wait(); close(over) }()
	for i, s := range with {
		select {
		case <-reached:
			interrupt(sh.t, cmd, s)
		case <-over:
			sh.t.Fatalf("%s: it ended before it sent %s: %s%s", args, holds[i].at, &o, &e)
		}
	}
	<-over
	return o.String(), e.String(), cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// An interrupt ends the program while it waits for an answer. The program says
// what is known of the data, and says so truly, whether the request ran or not.
func TestSignalAtEachStage(t *testing.T) {
	saved, other := filepath.Join(t.TempDir(), "saved"), filepath.Join(t.TempDir(), "other")
	const nothing = "interrupted: key: nothing was changed"
	const uploaded = nothing + ", and what was uploaded is gone within an hour\n"
	const either = "interrupted: key: the filter is as it was, or complete: upbloom info key shows which, and it" +
		" does no harm to run the command again\n"
	for i, c := range []struct {
		args   string
		at     string
		status int
		says   string
	}{
		{"load key -", "BITFIELD STRLEN", exitInterrupted, nothing + "\n"},
		{"load key -", "SETEX", exitInterrupted, uploaded},
		{"load key -", "EVAL", exitUnknown, either},
		{"replace --yes key -", "SETEX", exitInterrupted, uploaded},
		{"replace --yes key -", "EVAL", exitUnknown, either},
		{"restore --merge key " + other, "SETEX", exitInterrupted, uploaded},
		{"restore --merge key " + other, "EVAL", exitUnknown, either},
		{"add key -", "BITFIELD STRLEN", exitInterrupted, nothing + "\n"},
		{"add key -", "BITFIELD", exitUnknown, "2 unknown"},
		{"add ck b", "EVAL", exitUnknown, "to add it again may store a second copy"},
		{"remove ck a", "EVAL", exitUnknown, "to remove it again may take another copy"},
		{"rm --yes key", "BITFIELD STRLEN", exitInterrupted, nothing + "\n"},
		{
			"rm --yes key", "EVAL", exitUnknown,
			"interrupted: key: the filter is gone, or as it was: upbloom info key shows which\n",
		},
		{
			"rm --yes sh", "EVAL", exitUnknown,
			"interrupted: sh: some of its shards may be gone: upbloom rm --rest sh removes the others\n",
		},
		{"load sh -", "SETEX", exitInterrupted, "interrupted: sh: nothing was changed"},
		{"load sh -", "EVAL", exitUnknown, "interrupted: sh: each shard is as it was, or complete"},
		{
			"ttl key 5d", "EVAL", exitUnknown, "interrupted: key: the filter expires as before, or as was asked:" +
				" upbloom ttl key shows it, and it does no harm to run the command again\n",
		},
		{
			"create --items 1k new", "EVAL", exitUnknown, "interrupted: new: the filter was made, or it was not:" +
				" upbloom info new shows which, and it does no harm to run the command again\n",
		},
		{"ls", "SCAN", exitInterrupted, "interrupted: nothing was changed\n"},
		{"info key", "BITFIELD STRLEN BITCOUNT PTTL", exitInterrupted, nothing + "\n"},
		{"check key a", "BITFIELD", exitInterrupted, nothing + "\n"},
		{"save key " + saved, "EVAL", exitInterrupted, nothing + "\n"},
	} {
		for _, when := range []upstashtest.When{upstashtest.BeforeExec, upstashtest.AfterExec} {
			sh := newShell(t)
			sh.want(0, "", "a\n", "load", "--items", "1k", "key")
			sh.want(0, "", "c\n", "load", "--items", "1k", "other")
			sh.want(0, "", "", "save", "other", other)
			sh.create("ck", "--cuckoo")
			sh.create("sh", "--shards", "2")
			sh.want(0, "", "", "add", "ck", "a")
			before := sh.everything()
			s := interrupts()[i%len(interrupts())]
			args := strings.Fields(c.args)
			if args[0] == "replace" && c.at == "EVAL" && when == upstashtest.AfterExec {
				// It finds its birth number at the key.
				c.status, c.says = 0, "replaced by 2 lines, "
			}
			out, errOut, status := sh.signalled([]syscall.Signal{s}, []hold{{c.at, when}}, "b\nc\n", args...)
			if status.ExitStatus() != c.status || !strings.Contains(out+errOut, c.says) {
				t.Errorf("%s at %s, %v: status %d, want %d and %q:\n%s%s", c.args, c.at, when, status.ExitStatus(),
					c.status, c.says, out, errOut)
			}
			after := sh.everything()
			mayChange := c.status != exitInterrupted && when == upstashtest.AfterExec
			if changed := after != before; changed && !mayChange {
				t.Errorf("%s at %s, %v: the data changed:\n%s\n%s", c.args, c.at, when, before, after)
			} else if !changed && c.status == exitUnknown && when == upstashtest.AfterExec {
				t.Errorf("%s at %s, %v: nothing changed, so this case shows nothing", c.args, c.at, when)
			}
			switch { // what ran is complete
			case when == upstashtest.BeforeExec, c.status == exitInterrupted:
			case args[0] == "load" && args[1] == "key", args[0] == "replace", args[0] == "add" && args[1] == "key":
				sh.want(0, "", "", "check", "key", "b", "c")
			case args[0] == "rm" && args[2] == "sh":
				sh.want(0, "removed", "", append([]string{"rm", "--rest"}, args[1:]...)...)
				if all, _ := sh.keys(); strings.Contains(all, "sh:") {
					t.Errorf("rm leaves %s", all)
				}
			case args[0] == "restore":
				sh.want(0, "", "", "check", "key", "a", "c")
			}
			if strings.Contains(errOut, "no harm to run the command again") {
				sh.want(0, "", "b\nc\n", args...)
				if args[0] == "load" {
					sh.want(0, "", "", "check", args[1], "b", "c")
				}
			}
		}
	}
	if left, err := os.ReadDir(filepath.Dir(saved)); err != nil || len(left) != 0 {
		t.Errorf("save leaves %q, %v", left, err)
	}
}

// If the items come from standard input, there may be many of them: one line
// counts those that are not done, and says what to do. A cuckoo filter stores a
// copy for each Add. There each item has its line.
func TestSignalWithManyItems(t *testing.T) {
	input := numbered("item", 500)
	for args, tt := range map[string]struct {
		at    string
		lines int
		says  string
	}{
		"add key -": {"BITFIELD", 0, "interrupted: key: 0 of 500 items done, 500 unknown: BITFIELD: interrupted;" +
			" the command may have run; run the command again to add the rest"},
		"check key -": {"BITFIELD", 0, "; run the command again to ask about all\n"},
		"add key a b": {"BITFIELD", 2, "interrupted: key: 0 of 2 items done"},
		"add ck -":    {"EVAL", 500, "interrupted: ck: 0 of 500 items done"},
	} {
		sh := newShell(t)
		sh.want(0, "", "", "create", "-n", "1k", "key")
		sh.want(0, "", "", "create", "-n", "1k", "--cuckoo", "ck")
		out, errOut, status := sh.signalled([]syscall.Signal{syscall.SIGINT},
			[]hold{{tt.at, upstashtest.BeforeExec}}, input, strings.Fields(args)...)
		if n := strings.Count(out, "\n"); n != tt.lines {
			t.Errorf("%s: %d lines, want %d:\n%.200s", args, n, tt.lines, out)
		}
		if !strings.Contains(errOut, tt.says) || strings.Count(errOut, "\n") != 1 || status.ExitStatus() == 0 {
			t.Errorf("%s: status %d and %q, want %q", args, status.ExitStatus(), errOut, tt.says)
		}
	}
}

// A second interrupt ends the program at once, while it cleans up after the
// first. Nothing is half done, and what is left expires.
func TestSecondSignal(t *testing.T) {
	empty := strings.Join(slices.Repeat([]string{"SET"}, len(scratchNames)), " ")
	for _, c := range []struct{ at, args, clears string }{
		{"SETEX", "load key -", "UNLINK"},
		{"SETEX", "replace --yes key -", "UNLINK"},
		{"BITCOUNT", "doctor", empty},
		{"TIME", "doctor", empty},
	} {
		for _, s := range interrupts() {
			sh := newShell(t)
			sh.want(0, "", "a\n", "load", "--items", "1k", "--ttl", "1d", "key")
			before := sh.stored("key")
			holds := []hold{{c.at, upstashtest.AfterExec}, {c.clears, upstashtest.BeforeExec}}
			out, errOut, status := sh.signalled([]syscall.Signal{s, s}, holds, "b\n", strings.Fields(c.args)...)
			if !status.Signaled() || status.Signal() != s || errOut != "" {
				t.Errorf("%s: %v after a second %v: %s%s", c.args, status, s, out, errOut)
			}
			all, lasting := sh.keys()
			if sh.stored("key") != before || lasting != "" {
				t.Errorf("%s: the filter was changed, or these stay for good: %s", c.args, lasting)
			}
			if strings.Count(all, " ") == 0 {
				t.Errorf("%s: it was cleaned up, so this case shows nothing", c.args)
			}
		}
	}
}

// If doctor's keys cannot be removed, it says how long they stay.
func TestDoctorCannotClear(t *testing.T) {
	sh := newShell(t)
	sh.s.DenyFunc(func(command []string) bool { return command[0] == "UNLINK" })
	_, errOut, status := sh.run("", "doctor")
	if status != 0 || !strings.Contains(errOut, "* may be left: they expire in 10m\n") {
		t.Errorf("status %d, %q", status, errOut)
	}

	sh = newShell(t) // after an interrupt it empties them
	sh.s.DenyFunc(func(command []string) bool { return slices.Contains(command, seconds(emptyTTL)) })
	_, errOut, ended := sh.signalled([]syscall.Signal{syscall.SIGINT},
		[]hold{{"BITCOUNT", upstashtest.AfterExec}}, "", "doctor")
	if ended.ExitStatus() != exitInterrupted || !strings.Contains(errOut, "* may be left: they expire in 10m\n") {
		t.Errorf("interrupted: status %d, %q", ended.ExitStatus(), errOut)
	}
}

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
	const script = `trap : INT; "$@"; echo "status $?, ended"; read stay`
	program := sh.command(args...)
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, program.Args...)...)
	cmd.Env = program.Env
	s := startSession(sh.t, cmd)
	s.types("", waits)
	s.types("half a line\x03", ", ended\r\n")
	return s.drawn
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
		interrupt(t, cmd, syscall.SIGHUP)
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
	pipe := namedPipe(t)
	for _, name := range []string{pipe, "/dev/stdout"} {
		cmd, errOut := sh.process("save", "key", name)
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
			t.Errorf("%s: %v, and says %q", name, cmd.ProcessState, errOut)
		}
	}
}
