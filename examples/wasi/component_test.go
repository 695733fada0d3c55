//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/pages"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
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

	start = time.Now()
	c.want(t, "first", 200, "new\n")
	t.Logf("first request: %v", time.Since(start))

	t.Run("README", func(t *testing.T) {
		url := strings.TrimSuffix(c.url, "/")
		r := pages.Request(t, "README.md", "curl -X POST -H 'Event-Id: order-1'", url)
		if status, text := c.send(t, r); status != 200 || text != "new\n" {
			t.Errorf("status %d, %q, want 200, new", status, text)
		}
	})
	t.Run("answers", func(t *testing.T) {
		const n = 100
		start := time.Now()
		for i := range n {
			c.want(t, fmt.Sprint("event-", i), 200, "new\n")
			c.want(t, fmt.Sprint("event-", i), 200, "seen\n")
		}
		t.Logf("warm requests: %v each", time.Since(start)/(2*n))
		c.want(t, "", 400, "send an Event-Id header\n")
	})
	t.Run("concurrent", func(t *testing.T) {
		const n, clients = 20, 5
		var news [n]atomic.Int32
		var wg sync.WaitGroup
		for range clients {
			wg.Go(func() {
				for i := range n {
					status, text := c.ask(t, fmt.Sprint("job-", i))
					if status != 200 || text != "new\n" && text != "seen\n" {
						t.Errorf("job-%d: status %d, %q, want 200, new or seen", i, status, text)
					}
					if text == "new\n" {
						news[i].Add(1)
					}
				}
			})
		}
		wg.Wait()
		for i := range news {
			if got := news[i].Load(); got != 1 {
				t.Errorf("job-%d was new to %d requests, want 1", i, got)
			}
		}
	})
	t.Run("a long answer", func(t *testing.T) {
		srv.Inject(upstashtest.Trickle(0))
		c.want(t, "first", 200, "seen\n")
		always := func(f upstashtest.Fault) {
			srv.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault { return f })
		}
		defer srv.InjectFunc(nil)
		always(upstashtest.HugeBody(300_000))
		c.wantError(t, "first", "unexpected response")
		always(upstashtest.HugeBody(33 << 20))
		c.wantError(t, "first", "larger than the limit", "deadline exceeded")
	})
	t.Run("retries", func(t *testing.T) {
		srv.Inject(upstashtest.RateLimit(0))
		c.want(t, "limited", 200, "new\n")
		srv.Inject(upstashtest.Drop(upstashtest.AfterExec))
		c.want(t, "dropped", 200, "uncertain\n")
	})
	t.Run("deadline", func(t *testing.T) {
		srv.Inject(upstashtest.Stall(upstashtest.AfterExec))
		text := c.wantError(t, "slow", "deadline exceeded") // the database never answers
		if !strings.Contains(text, "may have run") {
			t.Errorf("%q does not say that the command may have run", text)
		}
		c.want(t, "slow", 200, "seen\n")
	})
	t.Run("database down", func(t *testing.T) {
		srv.Close()
		c.wantError(t, "b", "connection refused")
		text := c.wantError(t, "b", "the command did not run")
		if strings.Contains(text, srv.Token) {
			t.Error("the token shows in the error")
		}
	})
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
	case <-time.After(2 * time.Minute):
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

// wantError checks that the answer is a 503 without the cause, and that the log
// has a line with one of the parts. It returns that line.
func (c served) wantError(t *testing.T, id string, parts ...string) string {
	t.Helper()
	c.want(t, id, 503, "the database cannot be used\n")
	select {
	case text := <-c.logged:
		for _, part := range parts {
			if strings.Contains(text, part) {
				return text
			}
		}
		t.Errorf("%q: logged %q; want one of %q", id, text, parts)
	case <-time.After(patience):
		t.Errorf("%q: nothing logged; want one of %q", id, parts)
	}
	return ""
}
