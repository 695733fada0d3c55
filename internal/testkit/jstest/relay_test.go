//go:build !wasm

package jstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/jstest/relay"
	"github.com/upbloom/upbloom/internal/testkit/jstest/relayed"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/internal/testkit/transporttest"
)

// startRelay builds the default transport of js/wasm and starts it under Node
// in its own process. The caller must call stop, which fails the test if the
// process printed anything or does not end by itself.
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
	r, end, err := relayed.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return r, func() {
		if err := end(); err != nil {
			t.Errorf("the relay: %v", err)
		}
	}
}
