package transporttest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// blackHole returns the URL of a loopback address that answers no dial. Its
// listener accepts nothing, and its queue is full. It calls reached once somebody
// dials.
func blackHole(t *testing.T, reached func()) (url string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("how long the queue of a listener is differs by system")
	}
	l, err := net.Listen("tcp", anyIPv4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) { err = shrinkQueue(fd) })
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	c, err := net.DialTimeout("tcp", l.Addr().String(), patience) // all that the queue takes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for start := time.Now(); !queued(t, port); {
		if time.Since(start) > patience {
			t.Fatal("the system does not say that a connection waits")
		}
	}
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for ; !dialled(t, port); time.Sleep(time.Millisecond) {
			select {
			case <-over:
				return
			default:
			}
		}
		reached()
	}()
	t.Cleanup(func() {
		close(over)
		<-watched
	})
	return "http://" + l.Addr().String()
}

// queued reports whether a connection waits in the queue of the listener at port,
// and dialled whether a dial waits for an answer from there.
func queued(t *testing.T, port int) bool {
	return hasSocket(t, func(local, _, state, queues string) bool {
		return state == "0A" && strings.HasSuffix(local, fmt.Sprintf(":%04X", port)) &&
			!strings.HasSuffix(queues, ":00000000")
	})
}

func dialled(t *testing.T, port int) bool {
	return hasSocket(t, func(_, remote, state, _ string) bool {
		return state == "02" && strings.HasSuffix(remote, fmt.Sprintf(":%04X", port))
	})
}

// hasSocket reports whether the system has such a socket: proc_net_tcp(5) says what
// the texts mean.
func hasSocket(t *testing.T, is func(local, remote, state, queues string) bool) (has bool) {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		t.Error(err)
		return true
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if v := strings.Fields(lines.Text()); len(v) > 4 && is(v[1], v[2], v[3], v[4]) {
			return true
		}
	}
	return false
}
