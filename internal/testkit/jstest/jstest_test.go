//go:build !wasm

package jstest

import (
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/upbloom/upbloom/internal/testkit/jstest/relay"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/internal/testkit/transporttest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// startRelay builds the default transport of js/wasm and starts it under Node
// in its own process. The caller must call stop, which fails the test if the
// process printed anything or does not end by itself.
func startRelay(t *testing.T) (r *relay.Transport, stop func()) {
	t.Helper()
	wasm := BuildRelay(t)
	cmd := exec.Command(testenv.Need(t, "node", "node"), "--stack-size=8192",
		WasmExec(t, "wasm_exec_node.js"), wasm, "-test.run=^TestRelay$")
	root := filepath.Join(t.TempDir(), "root.pem")
	if err := os.WriteFile(root, transporttest.RootPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), relay.Env + "=1",
		"NODE_EXTRA_CA_CERTS=" + root, "NODE_NO_WARNINGS=1", // which differ by version
	}
	r, end, err := relay.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return r, func() {
		if err := end(); err != nil {
			t.Errorf("the relay: %v", err)
		}
	}
}

// The client never asks for such a response, so only a careless proxy sends
// one. The call then fails as one that may have been executed.
const no100 = "Node's fetch takes an interim response with status 100 for a bad one"

// TestConformance runs the test of every transport over Node's fetch.
func TestConformance(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	r, stop := startRelay(t)
	defer stop()
	t.Run("plain", func(t *testing.T) {
		transporttest.Run(t, func(*testing.T, string) upstash.Transport { return r },
			transporttest.Exception{Case: "response forms/after 100", Reason: no100},
			transporttest.Exception{Case: "response forms/after 103", Reason: no100})
	})
	t.Run("TLS", func(t *testing.T) {
		transporttest.RunTLS(t, func(*testing.T, string, *x509.CertPool) upstash.Transport { return r })
	})
}

// TestMemoryIsFlat: 10,000 calls leave nothing in the memory of the program or
// its host. The host keeps each JavaScript value until Go releases it.
func TestMemoryIsFlat(t *testing.T) {
	db := upstashtest.NewServer(t)
	said := node(t, []string{"UPSTASH_REDIS_REST_URL=" + db.URL, "UPSTASH_REDIS_REST_TOKEN=" + db.Token},
		"--expose-gc", "testdata/memory.mjs", WasmExec(t, "wasm_exec.js"), build(t, "build", "./manycalls"))
	var guest, host [2]int
	if _, err := fmt.Sscan(said, &guest[0], &host[0], &guest[1], &host[1]); err != nil {
		t.Fatalf("the guest printed %q, %v, want four numbers", said, err)
	}
	t.Logf("after 1,000 calls: %d bytes of the program, %d of its host; 10,000 later: %d and %d",
		guest[0], host[0], guest[1], host[1])
	if guest[1] > guest[0]+4<<20 || host[1] > host[0]+4<<20 {
		t.Error("the memory grows with the calls, want at most 4 MiB more")
	}
}

// TestFetch runs the guest's tests against a misbehaving server, and then
// checks the server's view. The guest cannot see which requests it left
// running.
func TestFetch(t *testing.T) {
	s := newServer(t)
	Run(t, "^TestGuest", "UPBLOOM_JSTEST_URL="+s.URL)

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
		{"answer", "/answer", "answered"},
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
