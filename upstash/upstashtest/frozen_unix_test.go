//go:build unix

package upstashtest

import (
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// TestFrozenRedis stops the process of the Redis behind the server. Every
// request still gets an answer, and Close returns.
func TestFrozenRedis(t *testing.T) {
	addr := testenv.Redis(t)
	s, err := Start(WithRedis(addr), WithTimeout(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, rest, _ := strings.Cut(testenv.Ask(t, addr, "INFO server"), "process_id:")
	text, _, _ := strings.Cut(rest, "\r\n")
	pid, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	for range 2 {
		if got := do(t, s, call{body: `["INCR","n"]`}); got.status != http.StatusInternalServerError {
			t.Errorf("got %d %s, want status 500", got.status, got.body)
		}
	}
	if _, err := s.Exec("PING"); err == nil {
		t.Error("Exec of a frozen database: no error, want one")
	}
	s.Close()
}
