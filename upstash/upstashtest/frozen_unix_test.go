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
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
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
	pid := pidOf(t, addr)
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

// pidOf returns the process ID of a Redis.
func pidOf(t *testing.T, addr string) int {
	t.Helper()
	db, err := database.DialRedis(addr, database.Limits{Timeout: testenv.Patience})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	info, _ := db.Do([]string{"INFO", "server"}).(database.Bulk)
	_, rest, _ := strings.Cut(string(info), "process_id:")
	text, _, _ := strings.Cut(rest, "\r\n")
	pid, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
