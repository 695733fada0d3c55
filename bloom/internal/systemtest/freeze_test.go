//go:build linux

package systemtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestFrozenProcess does what a function platform does between two invocations:
// it stops the process, and the server closes the idle connection. After the
// thaw the next Add must succeed, and a new item must still be new.
func TestFrozenProcess(t *testing.T) {
	// Without retries, the client must notice the dead connection before it uses it:
	// a request sent there may have been executed.
	if client, is := inAnotherProcess(t, upstash.WithRetry(0)); is {
		freezeChild(t, client)
		return
	}
	for name, linger := range map[string]int{"FIN": fin, "RST": rst} {
		t.Run(name, func(t *testing.T) {
			server := upstashtest.NewServer(t)
			relay, err := newProxy(strings.TrimPrefix(server.URL, "http://"), 0)
			bloomtest.NoError(t, err)
			t.Cleanup(relay.close)
			relay.heal(fin)
			child := startFreezeChild(t, relay.url(), server.Token)
			child.want(t, "a", true, 1)
			child.want(t, "a", false, 2)
			if n := relay.joined(); n != 1 {
				t.Fatalf("four calls took %d connections, want 1 kept alive", n)
			}

			child.freeze(t)
			relay.heal(linger)
			server.ResetStats()
			child.signal(t, syscall.SIGCONT)

			child.want(t, "b", true, 3)
			child.want(t, "a", false, 4)
			if s := server.Stats(); s.Requests != 4 {
				t.Errorf("four calls after the thaw took %d requests, want 4", s.Requests)
			}
			if n := relay.joined(); n != 2 {
				t.Errorf("%d connections in all, want 2", n)
			}
		})
	}
}

// freezeChild adds each line of its input, counts it, and prints the answers.
func freezeChild(t *testing.T, client *upstash.Client) {
	f := bloomtest.Handle(t, client, bloomtest.Small())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		added, err := f.Add(context.Background(), in.Text())
		fmt.Println("answer:", added, err)
		// Also send a command that is never repeated.
		reply, err := client.Do(context.Background(), upstash.Cmd("INCR", "n"))
		n, _ := reply.Int64()
		fmt.Println("count:", n, err)
	}
}

type frozenChild struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startFreezeChild(t *testing.T, url, token string) *frozenChild {
	t.Helper()
	cmd, in := anotherProcess(t, url, token)
	return &frozenChild{cmd, in, bufio.NewScanner(testenv.Start(t, cmd))}
}

// want sends the child an item and compares the answers of Add and INCR.
func (c *frozenChild) want(t *testing.T, item string, added bool, count int) {
	t.Helper()
	bloomtest.NoError(t, bloomtest.ErrorOf(fmt.Fprintln(c.in, item)))
	answers := []string{fmt.Sprint("answer: ", added, " <nil>"), fmt.Sprint("count: ", count, " <nil>")}
	for _, want := range answers {
		if !c.out.Scan() {
			t.Fatalf("the child ended: %v", c.out.Err())
		}
		if got := c.out.Text(); got != want {
			t.Fatalf("after %q the child says %q, want %q", item, got, want)
		}
	}
}

func (c *frozenChild) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	bloomtest.NoError(t, c.cmd.Process.Signal(s))
}

// freeze returns once the child has stopped.
func (c *frozenChild) freeze(t *testing.T) {
	t.Helper()
	c.signal(t, syscall.SIGSTOP)
	var status syscall.WaitStatus
	_, err := syscall.Wait4(c.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	if err != nil || !status.Stopped() {
		t.Fatalf("the child did not stop: status %v, %v", status, err)
	}
}
