//go:build !wasm

package jstest

import (
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestFetch runs the guest's tests against a misbehaving server, and then
// checks the server's view. The guest cannot see which requests it left
// running.
func TestFetch(t *testing.T) {
	s := newServer(t)
	db := upstashtest.NewServer(t, upstashtest.WithToken("very-secret-token"))
	Run(t, "^TestGuest", "UPBLOOM_JSTEST_URL="+s.URL, "UPBLOOM_JSTEST_DATABASE="+db.URL,
		"UPBLOOM_JSTEST_DOWN=http://"+testenv.ClosedAddr(t))

	if got, err := db.Exec("BITFIELD", "bits", "GET", "u8", "0"); err != nil || got.([]any)[0] != int64(200) {
		t.Errorf("the guest stored %v, %v, want 200", got, err)
	}
	if n := s.followed.Load(); n != 0 {
		t.Errorf("%d requests followed a redirect, want 0", n)
	}
	// The server writes a few MB more than the guest reads, because of the
	// buffers in between. A guest without a limit would read the whole body.
	if n := s.written.Load(); n >= hugeBody {
		t.Errorf("the guest took %d bytes of bodies over its limit, want less than %d", n, hugeBody)
	}
	s.Close() // waits for the handlers
	if n := s.dropped.Load(); n != 3 {
		t.Errorf("the guest dropped %d stalled requests, want 3", n)
	}
}

// TestNothingLeft runs programs in a host that outlives them. They end after an
// answer, at the time limit of an attempt, and when canceled in the pause
// before a retry.
func TestNothingLeft(t *testing.T) {
	s := newServer(t)
	program := build(t, "build", "./oneshot")
	for _, tt := range []struct{ how, path, want string }{
		{"answer", "/echo", "answered"},
		{"timeout", "/stall", "timeout"},
		{"cancel", "/later", "canceled"},
	} {
		t.Run(tt.how, func(t *testing.T) {
			said := node(t, []string{
				"UPSTASH_REDIS_REST_URL=" + s.URL + tt.path, "UPSTASH_REDIS_REST_TOKEN=token",
				"UPBLOOM_ONESHOT=" + tt.how,
			}, "testdata/host.mjs", WasmExec(t, "wasm_exec.js"), program)
			if want := strings.Repeat(tt.want+"\n", 10); said != want {
				t.Errorf("the programs said %q, want %q", said, want)
			}
		})
	}
}
