package peertest

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

//go:embed js/package.json js/package-lock.json js/*.mjs
var source embed.FS

// installLimit allows for a slow network. On a good one npm takes a few
// seconds, and less if its cache has the packages.
const installLimit = 3 * time.Minute

// installed is the folder with the programs and their node_modules. It is made
// once for all tests, outside of the source tree. TestMain removes it.
var installed struct {
	once        sync.Once
	dir         string
	unreachable string // why npm reaches no registry, or ""
	err         error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if installed.dir != "" {
		_ = os.RemoveAll(installed.dir)
	}
	os.Exit(code)
}

// install returns the path of Node and the folder to run in.
func install(tb testing.TB) (node, dir string) {
	tb.Helper()
	testenv.Asked(tb, "node")
	node = testenv.Need(tb, "node", "node")
	npm := testenv.Need(tb, "node", "npm")
	i := &installed
	i.once.Do(func() {
		if i.dir, i.err = os.MkdirTemp("", "peertest"); i.err != nil {
			return
		}
		if i.err = os.CopyFS(i.dir, source); i.err == nil {
			i.unreachable, i.err = npmCI(npm, filepath.Join(i.dir, "js"))
		}
	})
	switch {
	case i.unreachable != "":
		testenv.Missing(tb, "node", i.unreachable)
	case i.err != nil:
		tb.Fatal(i.err)
	}
	return node, filepath.Join(i.dir, "js")
}

// npmCI installs the packages of the lock file. If npm reaches no registry, the
// reason is unreachable and err is nil.
func npmCI(npm, dir string) (unreachable string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), installLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "ci", "--omit=peer", "--ignore-scripts", "--no-audit", "--no-fund",
		"--no-update-notifier", "--prefer-offline", "--fetch-retries=1", "--fetch-retry-mintimeout=500",
		"--fetch-timeout=20000")
	cmd.Dir = dir
	cmd.WaitDelay = time.Second // npm's children may hold its output open
	out, err := cmd.CombinedOutput()
	switch code := npmCode(out); {
	case err == nil:
		return "", nil
	case ctx.Err() != nil:
		return fmt.Sprintf("npm ci was not done in %v", installLimit), nil
	case slices.Contains(networkCodes, code):
		return "npm reaches no registry: " + code, nil
	}
	return "", fmt.Errorf("npm ci: %w\n%s", err, out)
}

// networkCodes are npm's codes for a registry that did not answer. A registry
// with another package than the lock file's is an error.
var networkCodes = strings.Fields(`ENOTFOUND EAI_AGAIN ECONNREFUSED ECONNRESET ENETUNREACH
	EHOSTUNREACH ENETDOWN ETIMEDOUT ERR_SOCKET_TIMEOUT FETCH_ERROR ENOTCACHED
	E407 E502 E503 E504`)

// TestLockFile: the lock file has these packages and names no registry. npm
// then uses the machine's own.
func TestLockFile(t *testing.T) {
	lock, err := source.ReadFile("js/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`"@upstash/redis": "1.39.0"`: true, `"@upstash/ratelimit": "2.2.0"`: true,
		`"@upstash/lock": "0.2.1"`: true, `"hash-wasm": "4.12.0"`: true, `"resolved"`: false,
	} {
		if bytes.Contains(lock, []byte(text)) != want {
			t.Errorf("the lock file contains %s: %v, want %v", text, !want, want)
		}
	}
}

var codeLine = regexp.MustCompile(`(?m)^npm (?:error|ERR!) code (\S+)$`)

func npmCode(out []byte) string {
	if m := codeLine.FindSubmatch(out); m != nil {
		return string(m[1])
	}
	return ""
}
