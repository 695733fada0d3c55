//go:build linux

package systemtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

const freezeChildEnv = "UPBLOOM_TEST_FREEZE_CHILD"

// TestFrozenProcess does what a function platform does between two invocations:
// it stops the process, and the server closes the idle connection. After the
// thaw the next Add must succeed, and a new item must still be new.
func TestFrozenProcess(t *testing.T) {
	if url := os.Getenv(freezeChildEnv); url != "" {
		freezeChild(url)
		return
	}
	for name, linger := range map[string]int{"FIN": -1, "RST": 0} {
		t.Run(name, func(t *testing.T) {
			server := upstashtest.NewServer(t)
			relay := newRelay(t, server.URL)
			child := startFreezeChild(t, relay.url(), server.Token)
			child.want(t, "a", true, 1)
			child.want(t, "a", false, 2)
			if n := relay.dialed(); n != 1 {
				t.Fatalf("four calls took %d connections, want 1 kept alive", n)
			}

			child.freeze(t)
			relay.hangUp(t, linger)
			server.ResetStats()
			child.signal(t, syscall.SIGCONT)

			child.want(t, "b", true, 3)
			child.want(t, "a", false, 4)
			if s := server.Stats(); s.Requests != 4 {
				t.Errorf("four calls after the thaw took %d requests, want 4", s.Requests)
			}
			if n := relay.dialed(); n != 2 {
				t.Errorf("%d connections in all, want 2", n)
			}
		})
	}
}

// freezeChild adds each line of its input, counts it, and prints the answers.
func freezeChild(url string) {
	// Without retries, the client must notice the dead connection before it
	// uses it: a request sent there may have been executed.
	client, err := upstash.New(url, os.Getenv(freezeChildEnv+"_TOKEN"), upstash.WithRetry(0))
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := bloom.New(client, "seen", bloom.Config{Capacity: 1000, FPRate: 0.001})
	if err != nil {
		fmt.Println(err)
		return
	}
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
	cmd := exec.Command(os.Args[0], "-test.run=^TestFrozenProcess$")
	cmd.Env = append(os.Environ(), freezeChildEnv+"="+url, freezeChildEnv+"_TOKEN="+token)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := testenv.Start(t, cmd)
	return &frozenChild{cmd, in, bufio.NewScanner(out)}
}

// want sends the child an item and compares the answers of Add and INCR.
func (c *frozenChild) want(t *testing.T, item string, added bool, count int) {
	t.Helper()
	if _, err := fmt.Fprintln(c.in, item); err != nil {
		t.Fatal(err)
	}
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
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
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

// relay passes bytes to a server over connections that the test can end.
type relay struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	conns []net.Conn // all that were accepted
}

func newRelay(t *testing.T, url string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, target: strings.TrimPrefix(url, "http://")}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			r.mu.Lock()
			r.conns = append(r.conns, in)
			r.mu.Unlock()
			running.Go(func() { r.pass(in) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.mu.Lock()
		for _, c := range r.conns {
			_ = c.Close()
		}
		r.mu.Unlock()
		running.Wait()
	})
	return r
}

func (r *relay) pass(in net.Conn) {
	out, err := net.Dial("tcp", r.target)
	if err != nil {
		_ = in.Close()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(out, in); _ = out.Close() })
	both.Go(func() { _, _ = io.Copy(in, out); _ = in.Close() })
	both.Wait()
}

func (r *relay) url() string { return "http://" + r.listener.Addr().String() }

func (r *relay) dialed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conns)
}

func (r *relay) hangUp(t *testing.T, linger int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		if err := errors.Join(c.(*net.TCPConn).SetLinger(linger), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
