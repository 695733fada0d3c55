//go:build !wasm

package jstest

import (
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestFetch runs the guest's tests against a server that misbehaves, and then
// checks what the server saw. The guest itself cannot see what it left running.
func TestFetch(t *testing.T) {
	s := newServer(t)
	db := upstashtest.NewServer(t, upstashtest.WithToken("very-secret-token"))
	Run(t, "^TestGuest", "UPBLOOM_JSTEST_URL="+s.URL, "UPBLOOM_JSTEST_DATABASE="+db.URL,
		"UPBLOOM_JSTEST_DOWN=http://"+testenv.ClosedAddr(t))

	if got, err := db.Exec("BITFIELD", "bits", "GET", "u8", "0"); err != nil || got.([]any)[0] != int64(200) {
		t.Errorf("what the guest stored: %v, %v", got, err)
	}
	if n := s.followed.Load(); n != 0 {
		t.Errorf("%d requests followed a redirect", n)
	}
	// The server writes more than the guest reads, by the few MB of the buffers
	// in between. A guest without a limit reads the whole body.
	if n := s.written.Load(); n >= hugeBody {
		t.Errorf("the guest took %d bytes of the bodies over its limit", n)
	}
	s.Close() // waits for the handlers
	if n := s.dropped.Load(); n != 3 {
		t.Errorf("%d of 3 stalled requests were dropped by the guest", n)
	}
}

// TestNothingLeft has programs end in a host that lives on. They end after an
// answer, at the time limit of an attempt, and by a cancellation in the pause
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
