package testenv

import (
	"io"
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
