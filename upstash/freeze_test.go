//go:build linux

package upstash

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
)

const freezeURL = "UPBLOOM_FREEZE_URL"

// TestFrozenProcess is a function that its platform freezes between two
// events, while the server closes the connection. The command after the thaw
// must succeed at the first attempt, and run once: new stays new.
func TestFrozenProcess(t *testing.T) {
	if url := os.Getenv(freezeURL); url != "" {
		countForEachLine(t, url)
		return
	}
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"result":%d}`, n.Add(1))
	}))
	defer s.Close()
	child := startChild(t, s.URL)
	for want := int64(1); want <= 4; want++ {
		if got := child.count(t); got != want || n.Load() != want {
			t.Fatalf("INCR gave %d after %d commands, want %d", got, n.Load(), want)
		}
		child.freeze(t)
		s.CloseClientConnections()
		child.signal(t, syscall.SIGCONT)
	}
}

// countForEachLine is the child: an INCR for each line that comes in.
func countForEachLine(t *testing.T, url string) {
	c := newClient(t, url, WithRetry(0))
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		r, err := c.Do(t.Context(), Cmd("INCR", "k"))
		if err != nil {
			fmt.Println("freeze:", err)
			continue
		}
		n, err := r.Int64()
		fmt.Println("freeze:", n, err)
	}
}

type freezeChild struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startChild(t *testing.T, url string) *freezeChild {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestFrozenProcess$")
	cmd.Env = append(os.Environ(), freezeURL+"="+url)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // ends it
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Wait()
	})
	return &freezeChild{cmd, in, bufio.NewReader(out)}
}

// count makes the child run its command and gives the answer.
func (c *freezeChild) count(t *testing.T) (n int64) {
	t.Helper()
	if _, err := io.WriteString(c.in, "go\n"); err != nil {
		t.Fatal(err)
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(line, "freeze: %d <nil>", &n); err != nil {
		t.Fatalf("the child says %q", line)
	}
	return n
}

// freeze returns once the child has stopped.
func (c *freezeChild) freeze(t *testing.T) {
	t.Helper()
	c.signal(t, syscall.SIGSTOP)
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(c.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("status %v, %v", status, err)
	}
}

func (c *freezeChild) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}
