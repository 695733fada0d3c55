//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// program builds quickstart, to be run against a database of the test's.
func program(t *testing.T, s *upstashtest.Server) *exec.Cmd {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "quickstart")
	if out, err := exec.Command("go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "UPSTASH_REDIS_REST_URL="+s.URL, "UPSTASH_REDIS_REST_TOKEN="+s.Token)
	return cmd
}

func wantNoKeys(t *testing.T, s *upstashtest.Server) {
	t.Helper()
	if n, err := s.Exec("DBSIZE"); err != nil || n != int64(0) {
		t.Errorf("%v keys are left (%v)", n, err)
	}
}

func TestItCleansUp(t *testing.T) {
	s := upstashtest.NewServer(t)
	out, err := program(t, s).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "0 false negatives") {
		t.Errorf("%v\n%s", err, out)
	}
	wantNoKeys(t, s)
}

// started starts the program. serve gets what sends it a signal, for the server's goroutines,
// which may ask before Start has returned here.
func started(t *testing.T, cmd *exec.Cmd, serve func(send func(os.Signal))) {
	t.Helper()
	ready := make(chan struct{})
	serve(func(signal os.Signal) {
		<-ready
		_ = cmd.Process.Signal(signal)
	})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	close(ready)
}

// A signal in the midst of it ends it, and the key goes all the same.
func TestSignalsCleanUp(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		s := upstashtest.NewServer(t)
		cmd := program(t, s)
		started(t, cmd, func(send func(os.Signal)) {
			s.InjectFunc(func(n int64, _ upstashtest.RequestInfo) upstashtest.Fault {
				if n == 4 {
					send(signal)
				}
				return upstashtest.Fault{}
			})
		})
		if err := cmd.Wait(); err == nil {
			t.Errorf("%v: it ended well", signal)
		}
		wantNoKeys(t, s)
	}
}

// A second signal ends the cleanup.
func TestASecondSignalEndsItAtOnce(t *testing.T) {
	s := upstashtest.NewServer(t)
	cmd := program(t, s)
	started(t, cmd, func(send func(os.Signal)) {
		s.InjectFunc(func(n int64, r upstashtest.RequestInfo) upstashtest.Fault {
			if n == 4 {
				send(os.Interrupt)
			}
			if r.Commands[0] == "EVAL" && n > 4 { // the Delete of the cleanup
				send(os.Interrupt)
				return upstashtest.Stall(upstashtest.BeforeExec)
			}
			return upstashtest.Fault{}
		})
	})
	err := cmd.Wait()
	state, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if err == nil || !ok || !state.Signaled() {
		t.Errorf("it ended with %v", err)
	}
}

func TestOutputThatFails(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full here")
	}
	defer full.Close()
	s := upstashtest.NewServer(t)
	cmd := program(t, s)
	cmd.Stdout = full
	if err := cmd.Run(); err == nil {
		t.Error("the status is 0")
	}
	wantNoKeys(t, s)
}
