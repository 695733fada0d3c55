//go:build !wasm

package jstest

import (
	"net"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestFetch runs the guest's tests against a server that misbehaves, then asks
// the server what it saw: the guest cannot know what was left running.
func TestFetch(t *testing.T) {
	s := newServer(t)
	db := upstashtest.NewServer(t, upstashtest.WithToken("very-secret-token"))
	Run(t, "^TestGuest", "UPBLOOM_JSTEST_URL="+s.URL, "UPBLOOM_JSTEST_DOWN="+closedPort(t),
		"UPBLOOM_JSTEST_DATABASE="+db.URL)

	if got, err := db.Exec("BITFIELD", "bits", "GET", "u8", "0"); err != nil || got.([]any)[0] != int64(200) {
		t.Errorf("what the guest stored: %v, %v", got, err)
	}
	if n := s.followed.Load(); n != 0 {
		t.Errorf("%d requests followed a redirect", n)
	}
	// Four buffers (the kernel's two, Node's, Go's) stand between what was
	// written and what was read; without a limit all of both bodies come.
	if n := s.written.Load(); n >= 2*hugeBody {
		t.Errorf("the guest took all %d bytes of the bodies over its limit", n)
	}
	s.Close() // waits for the handlers
	if n := s.dropped.Load(); n != 3 {
		t.Errorf("%d of 3 stalled requests were dropped by the guest", n)
	}
}

// closedPort gives a URL where nobody listens.
func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}
