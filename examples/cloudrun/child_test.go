package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/testkit/pages"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// child is the service as a process of its own.
type child struct {
	tb   testing.TB
	cmd  *exec.Cmd
	url  string
	logs <-chan string // its lines; closed when it ends
}

// build makes the binary with README's command, which is the Dockerfile's too.
func build(tb testing.TB, dir string) string {
	tb.Helper()
	path := filepath.Join(dir, "server")
	line := pages.Command(tb, "README.md", "CGO_ENABLED=0 go build ")
	docker, err := os.ReadFile("Dockerfile")
	if err != nil || strings.Join(line.Args, " ") != "go build -trimpath -ldflags=-s -w -o server ." ||
		!strings.Contains(string(docker), `RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /server .`) {
		tb.Errorf("README builds with %q, and the Dockerfile otherwise: %v", line.Args, err)
	}
	line.Replace(tb, "server", path)
	cmd := exec.Command(line.Args[0], line.Args[1:]...)
	cmd.Env = append(os.Environ(), line.Env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// start runs the binary at path against db until the end of the test, and
// returns when it serves. attr may be nil.
func start(tb testing.TB, path string, db *upstashtest.Server, attr *syscall.SysProcAttr) *child {
	tb.Helper()
	c := &child{tb: tb, cmd: exec.Command(path)}
	c.cmd.Env = []string{
		"PORT=0", // a free port, which the log names
		"UPSTASH_REDIS_REST_URL=" + db.URL, "UPSTASH_REDIS_REST_TOKEN=" + db.Token,
	}
	c.cmd.Dir, c.cmd.SysProcAttr, c.cmd.Stderr = "/", attr, os.Stderr
	c.logs = testenv.Lines(tb, c.cmd)
	var serving struct{ Addr string }
	if err := json.Unmarshal([]byte(c.awaitLog("serving")), &serving); err != nil {
		tb.Fatal(err)
	}
	_, port, err := net.SplitHostPort(serving.Addr)
	if err != nil {
		tb.Fatal(err)
	}
	c.url = "http://127.0.0.1:" + port
	return c
}

// awaitLog reads the log up to a line with text in it, and returns the line.
func (c *child) awaitLog(text string) string {
	c.tb.Helper()
	timeout := time.After(30 * time.Second)
	for {
		select {
		case line, ok := <-c.logs:
			switch {
			case !ok:
				c.tb.Fatalf("the process ended without logging %q", text)
			case strings.Contains(line, text):
				return line
			}
		case <-timeout:
			c.tb.Fatalf("waited 30 s for the log to say %q", text)
		}
	}
}

// post sends a webhook about an invoice of the same name, and returns the
// answer.
func (c *child) post(id string) (status int, answer string, err error) {
	r, err := http.NewRequest(http.MethodPost, c.url+"/webhook", strings.NewReader(`{"invoice":"`+id+`"}`))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Webhook-Id", id)
	return do(r)
}

func (c *child) get(path string) (status int, answer string, err error) {
	r, err := http.NewRequest(http.MethodGet, c.url+path, nil)
	if err != nil {
		return 0, "", err
	}
	return do(r)
}

func do(r *http.Request) (status int, answer string, err error) {
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, strings.TrimSpace(string(body)), err
}

// terminate sends the signal of Cloud Run before it stops an instance.
func (c *child) terminate() {
	c.tb.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.tb.Fatal(err)
	}
}

// exitCode waits for the end of the process.
func (c *child) exitCode() int {
	c.tb.Helper()
	for range c.logs {
	}
	var exit *exec.ExitError
	if err := c.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		c.tb.Fatal(err)
	}
	return c.cmd.ProcessState.ExitCode()
}
