package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// interrupted runs the program in this process, and interrupts it when the
// server gets a request of these commands. The request gets no answer.
func (sh *shell) interrupted(at, stdin string, args ...string) (errOut string, status int) {
	sh.t.Helper()
	sh.setenv()
	ctx, cancel := context.WithCancel(sh.t.Context())
	defer cancel()
	sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if ctx.Err() != nil || strings.Join(r.Commands, " ") != at {
			return upstashtest.Fault{}
		}
		cancel()
		return upstashtest.Stall(upstashtest.BeforeExec)
	})
	defer sh.s.InjectFunc(nil)
	var o, e strings.Builder
	a := &app{in: strings.NewReader(stdin), out: &o, errOut: &e}
	status = exitStatus(a.run(ctx, append([]string{"upbloom"}, args...)))
	return e.String(), status
}

// After an interrupt a command says what is known of the filter, and what to do
// next. The status tells a script whether anything may have changed.
func TestInterruptAtEachStage(t *testing.T) {
	saved := filepath.Join(t.TempDir(), "saved")
	const nothing = "interrupted: key: nothing was changed"
	const uploaded = nothing + ", and what was uploaded is gone within an hour\n"
	const either = "interrupted: key: the filter is as it was, or complete: upbloom info key shows which, and it" +
		" does no harm to run the command again\n"
	for _, c := range []struct {
		at     string
		status int
		says   string
		args   string
	}{
		{"BITFIELD STRLEN", exitInterrupted, nothing + "\n", "load key"},
		{"SETEX", exitInterrupted, uploaded, "load key"},
		{"EVAL", exitUnknown, either, "load key"},
		{"SETEX", exitInterrupted, uploaded, "replace --yes key"},
		{"EVAL", exitUnknown, either, "replace --yes key"},
		{"SETEX", exitInterrupted, uploaded, "restore key " + saved},
		{"EVAL", exitUnknown, either, "restore key " + saved},
		{"EVAL", exitUnknown, "may have run", "rm --yes key"},
		{"EVAL", exitUnknown, "may have run", "ttl key 5d"},
		{"BITFIELD", exitUnknown, "may have run", "add key x"},
		{"SCAN", exitInterrupted, "interrupted: nothing was changed\n", "ls"},
	} {
		sh := newShell(t)
		sh.want(0, "", "a\n", "load", "--items", "1k", "key")
		if _, err := os.Stat(saved); err != nil {
			sh.want(0, "", "", "save", "key", saved)
		}
		before := sh.stored("key")
		errOut, status := sh.interrupted(c.at, "b\nc\n", strings.Fields(c.args)...)
		if status != c.status || !strings.Contains(errOut, c.says) {
			t.Errorf("%s at %s: status %d, want %d and %q:\n%s", c.args, c.at, status, c.status, c.says, errOut)
		}
		if c.status == exitInterrupted && sh.stored("key") != before {
			t.Errorf("%s at %s: the filter was changed", c.args, c.at)
		}
	}
}

// The same holds for an upload that the database refuses, or whose answer is
// lost.
func TestFailedUploadSaysWhatIsKnown(t *testing.T) {
	for _, command := range []string{"load", "replace"} {
		sh := newShell(t)
		sh.want(0, "", "a\n", "load", "--items", "1k", "key")
		sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
			if slices.Contains(r.Commands, "SETEX") {
				return upstashtest.ErrorObject("OOM command not allowed when used memory > 'maxmemory'.")
			}
			return upstashtest.Fault{}
		})
		sh.want(exitDatabase, "choose a larger plan; nothing was changed, and what was uploaded", "b\n",
			command, "key")
		sh.s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
			if slices.Contains(r.Commands, "EVAL") || slices.Contains(r.Commands, "EVALSHA") {
				return upstashtest.NotJSON(upstashtest.AfterExec)
			}
			return upstashtest.Fault{}
		})
		if command == "replace" {
			continue // it finds out by the birth number
		}
		sh.want(exitUnknown, "; the filter is as it was, or complete: upbloom info key shows", "b\n", command, "key")
	}
}
