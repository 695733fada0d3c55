//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestComponentDropsEveryHandle counts the component's handles in the host's
// tables after its answers. It serves good and bad requests; some answers of
// the database are lost or not JSON. The few remaining handles are those of the
// standard streams and of the adapter.
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
