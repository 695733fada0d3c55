package testenv

import (
	"bufio"
	"io"
	"net"
	"os/exec"
	"testing"
)

// Start starts a program and returns its standard output. If it still runs at
// the end of the test, it is killed.
func Start(tb testing.TB, cmd *exec.Cmd) io.ReadCloser {
	tb.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return out
}

// Lines starts a program as [Start] does, and returns the lines of its standard
// output. The channel is closed when the program ends.
func Lines(tb testing.TB, cmd *exec.Cmd) <-chan string {
	tb.Helper()
	lines := make(chan string, 1000)
	tb.Cleanup(func() {
		for range lines { // until it ends
		}
	})
	out := Start(tb, cmd)
	go func() {
		defer close(lines)
		for all := bufio.NewScanner(out); all.Scan(); {
			lines <- all.Text()
		}
	}()
	return lines
}

// OnFreePort calls start with addresses of the loopback interface that are free,
// until it reports that its program listens there: another process may take the
// port first.
func OnFreePort(tb testing.TB, start func(addr string) (ok bool)) {
	tb.Helper()
	for range 5 {
		if start(freeAddr(tb)) {
			return
		}
	}
	tb.Fatal("testenv: the program did not start on five ports in turn")
}

func freeAddr(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("testenv: no free port: %v", err)
	}
	defer l.Close()
	return l.Addr().String()
}
