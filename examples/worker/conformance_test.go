//go:build !js

package main

import (
	"crypto/x509"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/jstest"
	"github.com/upbloom/upbloom/internal/testkit/jstest/relay"
	"github.com/upbloom/upbloom/internal/testkit/jstest/relayed"
	"github.com/upbloom/upbloom/internal/testkit/transporttest"
	"github.com/upbloom/upbloom/upstash"
)

const (
	oneError        = "workerd has one error for a connection that was refused and one that was lost"
	failedHandshake = "workerd logs each failed TLS handshake as a failure of its own"
)

// TestConformance runs the conformance test of transports over workerd's fetch.
func TestConformance(t *testing.T) {
	r := startRelay(t)
	t.Run("plain", func(t *testing.T) {
		transporttest.Run(t, func(*testing.T, string) upstash.Transport { return r },
			transporttest.Exception{Case: "dial refused", Reason: oneError},
			transporttest.Exception{Case: "handshake", Reason: failedHandshake})
	})
	t.Run("TLS", func(t *testing.T) {
		transporttest.RunTLS(t, func(*testing.T, string, *x509.CertPool) upstash.Transport { return r })
	})
}

// startRelay starts workerd with the default transport of js/wasm in it, and
// ends it after the test. The test fails if workerd or the relay logged
// anything.
func startRelay(t *testing.T) *relayed.Transport {
	t.Helper()
	w := workerd(t, func() string { return relayConfig(t) }, "RELAY="+relay.Env)
	calls, to := io.Pipe()
	resp, err := w.client.Post(w.url, "", calls)
	if err != nil {
		t.Fatal(err)
	}
	r := relayed.New(to, resp.Body)
	t.Cleanup(func() {
		hung := time.AfterFunc(20*time.Second, w.stop)
		broken := r.End()
		hung.Stop()
		_ = resp.Body.Close()
		w.stop()
		if w.log() != "" {
			t.Errorf("workerd's log has %q, want nothing; the relay's end: %v", w.log(), broken)
		}
	})
	return r
}

// relayConfig writes the configuration of that Worker and all files embedded in
// it.
func relayConfig(t *testing.T) (config string) {
	t.Helper()
	dir := t.TempDir()
	files := map[string][]byte{"root.pem": transporttest.RootPEM()}
	for name, from := range map[string]string{
		"relay.wasm":   jstest.BuildRelay(t),
		"wasm_exec.js": jstest.WasmExec(t, "wasm_exec.js"),
		"relay.mjs":    "testdata/relay.mjs",
		"relay.capnp":  "testdata/relay.capnp",
	} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "relay.capnp")
}
