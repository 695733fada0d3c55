package peertest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

const doctorsToken = "the-token-of-another-server"

// finding is a line of "upbloom --json doctor".
type finding struct{ Check, Verdict, Says string }

// doctor runs "upbloom doctor" on a database, and returns its findings by check
// and its exit status.
func doctor(t *testing.T, url string) (map[string]finding, int) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "upbloom")
	build := exec.Command("go", "build", "-o", program, "github.com/upbloom/upbloom/bloom/cmd/upbloom")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, "--json", "doctor")
	cmd.Env = []string{"UPSTASH_REDIS_REST_URL=" + url, "UPSTASH_REDIS_REST_TOKEN=" + doctorsToken}
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	findings := map[string]finding{}
	for line := range bytes.Lines(out) {
		var f finding
		if err := json.Unmarshal(line, &f); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		findings[f.Check] = f
	}
	return findings, cmd.ProcessState.ExitCode()
}

// wantFailed compares the checks that failed with those that should, and with a
// part of each reason. The scratch keys must be gone, or go soon: if an answer came
// too late, they are empty and live for a minute.
func wantFailed(t *testing.T, redis, url string, want map[string]string) {
	t.Helper()
	findings, status := doctor(t, url)
	if status != 4 {
		t.Errorf("doctor's exit status is %d, want 4", status)
	}
	for check, f := range findings {
		if why, fails := want[check]; fails != (f.Verdict == "FAIL") || !strings.Contains(f.Says, why) {
			t.Errorf("%+v, want FAIL: %v %q", f, fails, why)
		}
		delete(want, check)
	}
	if len(want) > 0 {
		t.Errorf("doctor did not ask %v", want)
	}
	left := testenv.Ask(t, redis, "DBSIZE")
	for end := time.Now().Add(testenv.Patience); left != ":0\r\n" && time.Now().Before(end); time.Sleep(time.Millisecond) {
		left = testenv.Ask(t, redis, "DBSIZE")
	}
	if left != ":0\r\n" {
		t.Errorf("doctor leaves keys: %q", left)
	}
}

// TestDoctorOfAnotherServer: a server that has the commands and pipelines of the
// REST API, and not the rest of it.
func TestDoctorOfAnotherServer(t *testing.T) {
	redis := testenv.Redis(t)
	port := <-testenv.Lines(t, script(t, "server.mjs", "redis://"+redis, doctorsToken))
	wantFailed(t, redis, "http://127.0.0.1:"+port, map[string]string{
		"transaction":                     "HTTP status 404",
		"raw body, any bytes":             "HTTP status 404",
		"RESP2, any bytes":                "HTTP status 404",
		"base64, any bytes":               "HTTP status 404",
		"base64 of a nested OK":           `the text OK is sent as "OK"`,
		"refused commands":                "HTTP status 500); the command may have run",
		"base64 wherever it is asked for": "a pipeline is answered as if it had not asked",
		"wrong token":                     "status 200 to a pipeline: whoever knows the URL may use the database",
		// Its Redis does not know the flag, and status 500 hides that nothing ran.
		"filter":   "Unexpected flag in script shebang",
		"window":   "Unexpected flag in script shebang",
		"scalable": "Unexpected flag in script shebang",
		"cuckoo":   "Unexpected flag in script shebang",
		"sharded":  "HTTP status 404",
	})
}

// TestDoctorOfWebdis: a REST server for Redis with an API of its own.
func TestDoctorOfWebdis(t *testing.T) {
	testenv.Asked(t, "webdis")
	webdis := testenv.Need(t, "webdis", "webdis")
	redis := testenv.Redis(t)
	wantFailed(t, redis, startWebdis(t, webdis, redis), map[string]string{
		"connection and token": "neither a result nor an error in it",
	})
}

// startWebdis returns the URL of a webdis, once it listens.
func startWebdis(t *testing.T, webdis, redis string) (url string) {
	t.Helper()
	host, port, err := net.SplitHostPort(redis)
	if err != nil {
		t.Fatal(err)
	}
	testenv.OnFreePort(t, func(addr string) bool {
		file := filepath.Join(t.TempDir(), "webdis.json")
		config := fmt.Sprintf(`{"redis_host": %q, "redis_port": %s, "http_host": "127.0.0.1", "http_port": %s,
			"logfile": %q}`, host, port, addr[strings.Index(addr, ":")+1:], file+".log")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		exited := testenv.Lines(t, exec.Command(webdis, file)) // it prints nothing
		url = "http://" + addr
		for {
			if c, err := net.Dial("tcp", addr); err == nil {
				_ = c.Close()
				return true
			}
			select {
			case <-exited:
				return false
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	return url
}
