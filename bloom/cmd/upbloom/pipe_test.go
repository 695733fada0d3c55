//go:build unix

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/pages"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// namedPipe makes a pipe with a name.
func namedPipe(t *testing.T) string {
	t.Helper()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no pipe can have a name here: ", err)
	}
	return pipe
}

// One interrupt ends a program that waits for its input, a pipe with or without a
// name, and changes nothing. The input does not end, and is more than a pipe holds: once
// it is written, the program is reading.
func TestInterruptedInput(t *testing.T) {
	pipe := namedPipe(t)
	other := newShell(t)
	other.want(0, "", "a\n", "load", "--items", "1M", "key")
	saved := other.want(0, "", "", "save", "key", "-")
	var err error
	for _, args := range []string{
		"load --items 1M new", "load key", "load sh", "replace key", "add --items 1M new", "restore key",
	} {
		for _, from := range []string{"-", pipe} {
			if strings.HasPrefix(args, "add") && from == pipe {
				continue // it reads no file
			}
			sh := newShell(t)
			sh.want(0, "", "a\n", "load", "--items", "1k", "key")
			sh.create("sh", "--shards", "2")
			before := sh.everything()
			cmd, errOut := sh.process(append(strings.Fields(args), from)...)
			var in io.WriteCloser
			if from == "-" {
				in, err = cmd.StdinPipe()
			}
			start(t, cmd)
			if from == pipe && err == nil {
				in, err = os.OpenFile(pipe, os.O_WRONLY, 0) // waits for the program
			}
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Repeat("item\n", 200_000)
			if args == "restore key" {
				text = saved[:len(saved)-1]
			}
			if _, err := io.WriteString(in, text); err != nil {
				t.Fatal(err)
			}
			interrupt(t, cmd, os.Interrupt)
			_ = cmd.Wait()
			_ = in.Close()
			if cmd.ProcessState.ExitCode() != exitInterrupted ||
				!strings.HasPrefix(errOut.String(), "upbloom: interrupted: ") ||
				!strings.HasSuffix(errOut.String(), "nothing was changed\n") {
				t.Errorf("%s %s: %v, %s", args, from, cmd.ProcessState, errOut)
			}
			if sh.everything() != before {
				t.Errorf("%s %s: the data changed", args, from)
			}
		}
	}
}

// The same holds for a pipe that nobody reads, or nobody any more.
func TestInterruptOfSaveToAPipe(t *testing.T) {
	pipe := namedPipe(t)
	sh := newShell(t)
	sh.want(0, "", "a\n", "load", "--items", "1M", "key") // more than a pipe holds
	asked := make(chan struct{}, 100)
	sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		asked <- struct{}{}
		return upstashtest.Fault{}
	})
	for _, reads := range []bool{false, true} {
		cmd, errOut := sh.process("save", "key", pipe)
		start(t, cmd)
		<-asked
		if reads {
			in, err := os.Open(pipe)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if _, err := in.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		interrupt(t, cmd, os.Interrupt)
		_ = cmd.Wait()
		if cmd.ProcessState.ExitCode() != exitInterrupted || !strings.Contains(errOut.String(), "interrupted: key: ") {
			t.Errorf("%v, %s", cmd.ProcessState, errOut)
		}
	}
}

// If nobody reads the recording of doctor any more, or what it prints before,
// the program ends as it does without one.
func TestRecordToABrokenPipe(t *testing.T) {
	sh := newShell(t)
	for _, file := range []string{"/dev/stdout", "/dev/fd/3"} {
		if _, err := os.Stat(filepath.Dir(file)); err != nil {
			t.Skip("no open file has a name here: ", err)
		}
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = reader.Close()
		cmd, errOut := sh.process("doctor", "--record", file)
		cmd.ExtraFiles = []*os.File{writer} // which is 3
		if file == "/dev/stdout" {
			cmd.Stdout = writer
		}
		_ = cmd.Run()
		_ = writer.Close()
		if cmd.ProcessState.ExitCode() != exitNoReader || errOut.Len() != 0 {
			t.Errorf("%s: %v, and says %q", file, cmd.ProcessState, errOut)
		}
	}
	sh.wantKeys("")
}

// save reports the length of the file, also if it is a pipe.
func TestSaveIntoAPipeSaysItsLength(t *testing.T) {
	pipe := namedPipe(t)
	sh := newShell(t)
	sh.want(0, "new", "", "add", "--items", "100", "key", "a")
	read := make(chan int)
	go func() {
		text, _ := os.ReadFile(pipe)
		read <- len(text)
	}()
	var m moved
	decode(t, sh.want(0, "", "", "--json", "save", "key", pipe), &m)
	if n := <-read; int64(n) != m.Bytes {
		t.Errorf("%d bytes were saved, and save says %d", n, m.Bytes)
	}
}

// The loop of the runbook asks each filter, and a sharded one once.
func TestRunbookLoop(t *testing.T) {
	sh := newShell(t)
	sh.create("a:1")
	sh.create("b", "--window", "1h")
	sh.create("c", "--shards", "2")
	sh.want(0, "", "", "add", "a:1", "ITEM")
	sh.want(0, "", "", "add", "c", "ITEM")
	loop := `program=$0; upbloom() { "$program" "$@"; }` + "\n" + pages.Code(t, "../../RUNBOOK.md", "shell")[0]
	cmd := sh.command()
	cmd.Args = []string{"sh", "-c", loop, cmd.Path}
	testenv.Need(t, "sh", "awk")
	testenv.Need(t, "sh", "sort")
	cmd.Path = testenv.Need(t, "sh", "sh")
	if out, err := cmd.Output(); err != nil || string(out) != "a:1 yes   ITEM\nb no    ITEM\nc yes   ITEM\n" {
		t.Errorf("%v: %s", err, out)
	}
}
