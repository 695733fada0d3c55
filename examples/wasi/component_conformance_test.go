//go:build unix

package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/jstest/relayed"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/internal/testkit/transporttest"
	"github.com/upbloom/upbloom/upstash"
)

const (
	noCancel = "nothing tells a component that waits in a call to its host that its caller has left"
	noIPv6   = "jco refuses an IPv6 address as the host of a URL"
)

// TestComponentConformance runs the conformance test of transports over the
// component's transport, as jco serves it.
func TestComponentConformance(t *testing.T) {
	c := runComponent(t)
	t.Run("plain", func(t *testing.T) {
		except := []transporttest.Exception{{Case: "hosts/[::1]:0", Reason: noIPv6}}
		for _, stall := range []string{
			"before the header", "within the header", "within the body",
			"while it takes the request", "TLS handshake", "dial",
		} {
			except = append(except, transporttest.Exception{Case: "cancel/" + stall, Reason: noCancel})
		}
		transporttest.Run(t, func(*testing.T, string) upstash.Transport { return c }, except...)
	})
	t.Run("TLS", func(t *testing.T) {
		transporttest.RunTLS(t, func(*testing.T, string, *x509.CertPool) upstash.Transport { return c },
			transporttest.Exception{Case: "cancel", Reason: noCancel})
	})
}

// runComponent runs the component, with its transport in a test binary, until
// the end of the test. jco transpiles it, and Node runs the JavaScript, because
// "jco run" ends after the first call.
func runComponent(t *testing.T) *relayed.Transport {
	t.Helper()
	node, jco := needJCO(t)
	dir := t.TempDir()
	core, component := filepath.Join(dir, "core.wasm"), filepath.Join(dir, "relay.wasm")
	runCmd(t, wasip1(exec.Command(testenv.Need(t, "go", "go"),
		"test", "-c", "-buildmode=c-shared", "-ldflags=-s -w", "-o", core, "./component")))
	runCmd(t, exec.Command(node, "testdata/relay.mjs", core, component))
	transpile(t, node, jco, component, dir, "relay", "testdata/run.mjs")
	root := filepath.Join(dir, "root.pem")
	if err := os.WriteFile(root, transporttest.RootPEM(), 0o600); err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command(node, filepath.Join(dir, "run.mjs"))
	// Another version of Node may warn of something in jco's code.
	cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+root, "NODE_NO_WARNINGS=1")
	c, stop, err := relayed.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("the component: %v", err)
		}
	})
	return c
}
