//go:build !js

package main

import (
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/testkit/jstest"
	"github.com/upbloom/upbloom/internal/testkit/jstest/relay"
	"github.com/upbloom/upbloom/internal/testkit/pages"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/internal/testkit/transporttest"
	"github.com/upbloom/upbloom/upstash"
)

// build runs the build for the deployment, once for all tests.
var build = sync.OnceValues(func() (dir string, err error) {
	if dir, err = filepath.Abs("build"); err != nil {
		return "", err
	}
	cmd := exec.Command("./build.sh", dir)
	cmd.Stderr = os.Stderr
	return dir, cmd.Run()
})

func mustBuild(t *testing.T) (dir string) {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatalf("build.sh: %v", err)
	}
	return dir
}

// worker is the Worker, served by a workerd of its own.
type worker struct {
	*testenv.Workerd

	client http.Client
}

// serve starts the Worker with a database at url.
func serve(t *testing.T, url, token string) *worker {
	t.Helper()
	return workerd(t, func() string { return filepath.Join(mustBuild(t), "config.capnp") },
		"UPSTASH_REDIS_REST_URL="+url, "UPSTASH_REDIS_REST_TOKEN="+token)
}

// workerd starts workerd with the configuration file of build, as README does.
func workerd(t *testing.T, build func() (config string), env ...string) *worker {
	t.Helper()
	exe := testenv.NeedWorkerd(t)
	line := pages.Command(t, "README.md", "npx workerd serve build/config.capnp")
	if len(line.Args) != 4 {
		t.Errorf("%q, want the file alone", line.Args)
	}
	w := &worker{Workerd: testenv.StartWorkerd(t, exe, build(), env...)}
	w.client.Transport = &http.Transport{MaxIdleConnsPerHost: 32}
	t.Cleanup(w.client.CloseIdleConnections)
	return w
}

// reply is an answer of the Worker, read as its users would read it.
type reply struct {
	Status     int    `json:"-"`
	Allow      string `json:"-"`
	RetryAfter string `json:"-"`
	ID         string `json:"id"`
	New        *bool  `json:"new"`
	Error      string `json:"error"`
}

func (r reply) isNew() bool { return r.New != nil && *r.New }

// post sends an event. Its id is in the header, if that has a name.
func (w *worker) post(t *testing.T, header, id, body string) (r reply) {
	t.Helper()
	h := http.Header{}
	if header != "" {
		h.Set(header, id)
	}
	return w.send(t, "POST", h, strings.NewReader(body))
}

// send sends a request, chunked unless the body is of a type with a length.
func (w *worker) send(t *testing.T, method string, h http.Header, body io.Reader) (r reply) {
	t.Helper()
	req, err := http.NewRequest(method, w.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = h
	resp, err := w.client.Do(req)
	if err != nil {
		t.Error(err)
		return r
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	r.Status = resp.StatusCode
	// Only a 200 may have "new". A careless sender must not read an error as
	// "not new".
	if err := json.Unmarshal(text, &r); err != nil || (r.New != nil) != (r.Status == 200) {
		t.Errorf("not the Worker's answer: %d %q", r.Status, text)
	}
	r.Allow, r.RetryAfter = resp.Header.Get("Allow"), resp.Header.Get("Retry-After")
	return r
}

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
func startRelay(t *testing.T) *relay.Transport {
	t.Helper()
	w := workerd(t, func() string { return relayConfig(t) }, "RELAY="+relay.Env)
	calls, to := io.Pipe()
	resp, err := w.client.Post(w.URL, "", calls)
	if err != nil {
		t.Fatal(err)
	}
	r := relay.New(to, resp.Body)
	t.Cleanup(func() {
		hung := time.AfterFunc(testenv.Patience, w.Stop)
		broken := r.End()
		hung.Stop()
		_ = resp.Body.Close()
		w.Stop()
		if w.Log() != "" {
			t.Errorf("workerd's log has %q, want nothing; the relay's end: %v", w.Log(), broken)
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
