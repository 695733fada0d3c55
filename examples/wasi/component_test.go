//go:build unix

package main

import (
	"bufio"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	guestrelay "github.com/upbloom/upbloom/internal/testkit/jstest/relay"
	"github.com/upbloom/upbloom/internal/testkit/pages"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/internal/testkit/transporttest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestComponent serves the component with jco. jco takes seconds to start, so
// one server runs all cases; the database goes away in the last one.
func TestComponent(t *testing.T) {
	node, jco := needJCO(t)
	component := componentized(t, node)

	srv := upstashtest.NewServer(t)
	start := time.Now()
	c := serveComponent(t, node, jco, component, srv)
	t.Logf("served after %v", time.Since(start))

	testModule(t, srv, c.asks, "deadline exceeded")
	testOnce(t, c.asks, c.asks, c.asks, c.asks, c.asks)
	url := strings.TrimSuffix(c.url, "/")
	r := pages.Request(t, "README.md", "curl -X POST -H 'Event-Id: order-1'", url)
	if status, text := c.send(t, r); status != 200 || text != "new\n" {
		t.Errorf("README's request: status %d, %q, want 200, new", status, text)
	}
	c.want(t, "", 400, "send an Event-Id header\n")

	srv.Inject(upstashtest.Stall(upstashtest.AfterExec)) // the database never answers
	text := c.asks(t, "slow")
	for _, part := range []string{"deadline exceeded", "may have run"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
	c.want(t, "slow", 200, "seen\n")
	testGone(t, srv, c.asks)
}

// componentized returns the path of the component.
func componentized(t *testing.T, node string) (component string) {
	t.Helper()
	component = filepath.Join(scratch, "dedup.wasm")
	if _, err := os.Stat(component); err == nil {
		return component
	}
	t.Logf("core module: %d bytes", len(module(t, "./component")))
	core := filepath.Join(scratch, "component.wasm")
	build := pages.Command(t, "README.md", "npm run build").Script(t, "component/package.json")
	build.Replace(t, "core.wasm", core)
	build.Replace(t, "dedup.wasm", component)
	cmd := exec.Command(node, build.Args[1:]...)
	cmd.Dir = "component"
	runCmd(t, cmd)
	wasm := mustRead(t, component)
	t.Logf("component: %d bytes, %d gzipped", len(wasm), gzipped(t, wasm))
	return component
}

// needJCO returns the paths of node and of jco. It installs jco if
// UPBLOOM_REQUIRE names it; otherwise it skips the test if jco is not there.
func needJCO(t *testing.T) (node, jco string) {
	t.Helper()
	node = testenv.Need(t, "node", "node")
	jco, err := filepath.Abs("component/node_modules/.bin/jco")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(jco); err == nil {
		return node, jco
	}
	if !strings.Contains(os.Getenv(testenv.Require), "jco") {
		testenv.Missing(t, "jco", "run npm ci in examples/wasi/component")
	}
	install := exec.Command(testenv.Need(t, "jco", "npm"), "ci", "--no-audit", "--no-fund")
	install.Dir = "component"
	runCmd(t, install)
	return node, jco
}

// served is a component at url.
type served struct {
	url    string
	group  int         // of its processes
	logged chan string // each logged cause of a failure
}

// serveComponent starts jco on a free port, because jco does not report a port
// of its own choice.
func serveComponent(t *testing.T, node, jco, component string, srv *upstashtest.Server) (c served) {
	t.Helper()
	testenv.OnFreePort(t, func(addr string) (ok bool) {
		c, ok = tryServe(t, node, jco, component, addr, srv)
		return ok
	})
	return c
}

func tryServe(t *testing.T, node, jco, component, addr string, srv *upstashtest.Server) (c served, ok bool) {
	t.Helper()
	_, port, _ := strings.Cut(addr, ":")
	serve := pages.Command(t, "README.md",
		"UPSTASH_REDIS_REST_URL=... UPSTASH_REDIS_REST_TOKEN=... npm run serve").Script(t, "component/package.json")
	serve.Replace(t, "8000", port)
	serve.Replace(t, "dedup.wasm", component)
	cmd := exec.Command(node, append([]string{jco}, serve.Args[1:]...)...)
	cmd.Env = append(os.Environ(),
		"UPSTASH_REDIS_REST_URL="+srv.URL, "UPSTASH_REDIS_REST_TOKEN="+srv.Token)
	// jco runs the component in a child process: a signal to the group ends both.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	listening, ended := make(chan struct{}), make(chan struct{})
	logged := make(chan string, 64)
	go func() {
		defer close(ended)
		for lines, up := bufio.NewScanner(stderr), false; lines.Scan(); {
			fmt.Fprintln(&output, lines.Text())
			if _, cause, ok := strings.Cut(lines.Text(), "upstash: "); ok {
				logged <- cause
			}
			if !up && strings.HasPrefix(lines.Text(), "Server listening") {
				up = true
				close(listening)
			}
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("jco serve:\n%s", output.String())
		}
	})
	select {
	case <-listening:
	case <-ended:
		if strings.Contains(output.String(), "EADDRINUSE") {
			return served{}, false
		}
		t.Fatal("jco serve ended")
	case <-time.After(patience):
		t.Fatal("jco serve does not listen")
	}
	return served{"http://" + addr, cmd.Process.Pid, logged}, true
}

func (c served) ask(t *testing.T, id string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if id != "" {
		req.Header.Set("Event-Id", id)
	}
	return c.send(t, req)
}

func (c served) send(t *testing.T, req *http.Request) (status int, text string) {
	t.Helper()
	resp, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(body)
}

func (c served) want(t *testing.T, id string, status int, text string) {
	t.Helper()
	if gotStatus, got := c.ask(t, id); gotStatus != status || got != text {
		t.Errorf("%q: status %d, %q; want %d, %q", id, gotStatus, got, status, text)
	}
}

// asks returns the verdict, or what the log says of a 503, which hides it.
func (c served) asks(t *testing.T, id string) string {
	t.Helper()
	status, text := c.ask(t, id)
	if status == 200 {
		return strings.TrimSpace(text)
	}
	if status != 503 || text != "the database cannot be used\n" {
		t.Errorf("%q: status %d, %q, want 200 or 503", id, status, text)
	}
	select {
	case text := <-c.logged:
		return text
	case <-time.After(patience):
		t.Errorf("%q: nothing logged", id)
	}
	return ""
}

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
func runComponent(t *testing.T) *guestrelay.Transport {
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
	c, stop, err := guestrelay.Start(cmd)
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

// TestComponentDropsEveryHandle counts the component's handles in the host's
// tables after its answers. It serves good and bad requests; some answers of
// the database are lost or not JSON. The few remaining handles belong to the
// standard streams and the adapter.
func TestComponentDropsEveryHandle(t *testing.T) {
	node, jco := needJCO(t)
	dir := t.TempDir()
	transpile(t, node, jco, componentized(t, node), dir, "dedup", "testdata/handles.mjs")
	srv := upstashtest.NewServer(t)
	srv.InjectFunc(func(n int64, _ upstashtest.RequestInfo) upstashtest.Fault {
		switch n % 10 {
		case 3:
			return upstashtest.Drop(upstashtest.AfterExec)
		case 6:
			return upstashtest.HugeBody(300_000)
		case 8:
			return upstashtest.Drop(upstashtest.BeforeExec)
		}
		return upstashtest.Fault{}
	})
	cmd := exec.Command(node, filepath.Join(dir, "handles.mjs"), filepath.Join(dir, "dedup.js"), "100")
	cmd.Env = append(os.Environ(), "UPSTASH_REDIS_REST_URL="+srv.URL, "UPSTASH_REDIS_REST_TOKEN="+srv.Token)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, err.(*exec.ExitError).Stderr)
	}
	t.Logf("handles held, and answers so far by status:\n%s", out)
	lines := strings.Fields(string(out)) // of two words each
	if len(lines) != 4 || lines[0] != lines[2] {
		t.Errorf("the handles held grow with the requests:\n%s", out)
	}
	for _, status := range []string{`"200"`, `"400"`, `"503"`} {
		if !strings.Contains(string(out), status) {
			t.Errorf("no request ended with status %s", status)
		}
	}
}

// transpile writes the component's JavaScript, name.js, into dir, and beside it
// a script to import it.
func transpile(t *testing.T, node, jco, component, dir, name, script string) {
	t.Helper()
	runCmd(t, exec.Command(node, jco, "transpile", component, "-o", dir, "--name", name))
	linkShim(t, dir)
	for name, text := range map[string][]byte{
		"package.json":        []byte(`{"type":"module"}`),
		filepath.Base(script): mustRead(t, script),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// linkShim lets the modules in dir import jco's own shim. npm puts the shim
// next to jco, or into jco's folder if other packages need another version.
func linkShim(t *testing.T, dir string) {
	t.Helper()
	const scope, shim = "node_modules/@bytecodealliance", "preview2-shim"
	for _, place := range []string{scope + "/jco/" + scope, scope} {
		path, err := filepath.Abs(filepath.Join("component", place, shim))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if err := os.MkdirAll(filepath.Join(dir, scope), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, scope, shim)); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("jco is installed without its shim")
}
