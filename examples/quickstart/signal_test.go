//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// started calls serve with a function that sends the program a signal, and then
// starts the program. Goroutines of the server may call the function before
// Start has returned here. It waits for that.
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

// A signal ends the program in the middle of its work, and it still deletes the
// key. The request under way is never answered, so the signal alone ends it.
func TestSignalsCleanUp(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		s := upstashtest.NewServer(t)
		cmd := command(t, s)
		started(t, cmd, func(send func(os.Signal)) {
			s.InjectFunc(func(n int64, _ upstashtest.RequestInfo) upstashtest.Fault {
				if n != 4 {
					return upstashtest.Fault{}
				}
				send(signal)
				return upstashtest.Stall(upstashtest.BeforeExec)
			})
		})
		if err := cmd.Wait(); err == nil {
			t.Errorf("%v: the status is 0, want another", signal)
		}
		wantNoKeys(t, s)
	}
}

// A second signal ends the program during its cleanup. It is sent again and
// again, as a user might, because the program may still be handling the first
// one.
func TestASecondSignalEndsItAtOnce(t *testing.T) {
	s := upstashtest.NewServer(t)
	cmd := command(t, s)
	ended := make(chan struct{})
	started(t, cmd, func(send func(os.Signal)) {
		s.InjectFunc(func(n int64, _ upstashtest.RequestInfo) upstashtest.Fault {
			switch n {
			case 4:
				send(os.Interrupt)
			case 5: // the Delete of the cleanup
				go func() {
					for again := time.Tick(20 * time.Millisecond); ; {
						send(os.Interrupt)
						select {
						case <-ended:
							return
						case <-again:
						}
					}
				}()
			default:
				return upstashtest.Fault{}
			}
			return upstashtest.Stall(upstashtest.BeforeExec)
		})
	})
	err := cmd.Wait()
	close(ended)
	state, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if err == nil || !ok || !state.Signaled() {
		t.Errorf("the program ended with %v, want a signal", err)
	}
}
