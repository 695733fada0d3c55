//go:build !wasm

package jstest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/jstest/relay"
	"github.com/upbloom/upbloom/internal/testkit/jstest/relayed"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/internal/testkit/transporttest"
)

// startRelay builds the default transport of js/wasm and starts it under Node,
// in a process of its own. The caller must call stop, which fails the test if
// the process printed anything or does not end of itself.
func startRelay(t *testing.T) (r *relayed.Transport, stop func()) {
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
	var said bytes.Buffer // syscall/js complains here of callbacks that come late
	cmd.Stderr = &said
	to, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r = relayed.New(to, from)
	return r, func() {
		hung := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		broken := r.End() // before Wait, which closes the pipe
		if err := cmd.Wait(); err != nil || said.Len() != 0 {
			t.Errorf("the relay: %v, its last words: %v\n%.2000s", err, broken, said.Bytes())
		}
		hung.Stop()
	}
}
