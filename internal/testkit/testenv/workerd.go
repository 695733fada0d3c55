package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/goccy/go-json"
)

// A Workerd is a running workerd, Cloudflare's runtime.
type Workerd struct {
	URL  string // of its one socket
	PID  int
	Stop func()
	Log  func() string // its output; complete after Stop
}

// NeedWorkerd returns the path of the workerd that npm has installed in the current
// folder. If there is none, the test skips, or fails if UPBLOOM_REQUIRE contains
// "workerd".
func NeedWorkerd(tb testing.TB) (exe string) {
	tb.Helper()
	// node_modules/.bin/workerd may be a script, if install scripts are off.
	// Killing it would leave the server running.
	found, _ := filepath.Glob("node_modules/@cloudflare/workerd-*/bin/workerd")
	if len(found) != 1 {
		Missing(tb, "workerd", "run npm ci in the example's folder")
	}
	return found[0]
}

// StartWorkerd runs workerd until the end of the test, with a configuration file
// whose one socket is called http. It listens at a free port of loopback.
func StartWorkerd(tb testing.TB, exe, config string, env ...string) *Workerd {
	tb.Helper()
	control, theirs, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	defer control.Close()
	log, err := os.Create(filepath.Join(tb.TempDir(), "workerd.log"))
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(exe, "serve", config, "--socket-addr=http=127.0.0.1:0", "--control-fd=3")
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = env
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	theirs.Close()

	w := &Workerd{PID: cmd.Process.Pid, Stop: sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log.Close()
	})}
	w.Log = func() string {
		text, _ := os.ReadFile(log.Name())
		return string(text)
	}
	tb.Cleanup(func() {
		w.Stop()
		if tb.Failed() {
			tb.Logf("workerd: %s", w.Log())
		}
	})
	// workerd writes its port to the pipe, or ends and closes the pipe.
	var listen struct{ Port int }
	if err := json.NewDecoder(control).Decode(&listen); err != nil {
		tb.Fatalf("workerd did not start: %v", err)
	}
	w.URL = fmt.Sprintf("http://127.0.0.1:%d/", listen.Port)
	return w
}
