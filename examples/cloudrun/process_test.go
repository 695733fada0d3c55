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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/testkit/pages"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestProcess runs the built service against a database that fails in between. It
// sends README's webhook, too, but uses a port that is certain to be free.
func TestProcess(t *testing.T) {
	run := pages.Command(t, "README.md", "PORT=8080 go run .")
	if len(run.Env) != 1 || len(run.Args) != 3 {
		t.Errorf("%q, want the port and go run alone", run)
	}
	db := upstashtest.NewServer(t)
	c := start(t, build(t, t.TempDir()), db, nil)
	for _, path := range []string{"/alive", "/ready"} {
		if status, _, err := c.get(path); status != 200 {
			t.Errorf("GET %s: %d, %v, want 200", path, status, err)
		}
	}
	for _, want := range []string{"new", "duplicate"} {
		status, got, err := do(pages.Request(t, "README.md", "curl -H 'Webhook-Id: evt_1'", c.url))
		if err != nil || status != 200 || got != want {
			t.Errorf("%d %q, %v, want 200 %q", status, got, err, want)
		}
	}
	db.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		return upstashtest.BadGateway(upstashtest.BeforeExec)
	})
	c.want("evt_1", 503, "try again later")
	c.want("b", 503, "try again later")
	db.InjectFunc(nil)
	c.want("b", 200, "new")
	c.want("b", 200, "duplicate")
	c.terminate()
	if code := c.exitCode(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// TestShutdown sends SIGTERM while the database holds up a webhook. The webhook
// is answered and recorded, and then the process ends.
func TestShutdown(t *testing.T) {
	db := upstashtest.NewServer(t)
	c := start(t, build(t, t.TempDir()), db, nil)
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	db.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		once.Do(func() { close(arrived) })
		<-release
		return upstashtest.Fault{}
	})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		c.want("a", 200, "new")
	}()
	<-arrived
	c.terminate()
	c.awaitLog("shutting down")
	close(release)
	<-answered
	if code := c.exitCode(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	c = start(t, c.cmd.Path, db, nil)
	c.want("a", 200, "duplicate")
}

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
		"UPBLOOM_SEED=8213", // which a real database has to have
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
	timeout := time.After(testenv.Patience)
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

func (c *child) want(id string, status int, answer string) {
	c.tb.Helper()
	gotStatus, got, err := c.post(id)
	if err != nil || gotStatus != status || got != answer {
		c.tb.Errorf("%s: %d %q, %v, want %d %q", id, gotStatus, got, err, status, answer)
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
