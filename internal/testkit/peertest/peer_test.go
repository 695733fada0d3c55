package peertest

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// settings change how the client sends and reads.
type settings struct {
	AutoPipelining bool `json:"enableAutoPipelining"`
	// Encoding is "base64", the client's default, or false.
	Encoding any `json:"responseEncoding"`
}

var allSettings = []settings{{false, "base64"}, {false, false}, {true, "base64"}, {true, false}}

func (s settings) String() string {
	return fmt.Sprintf("autopipelining=%v,encoding=%v", s.AutoPipelining, s.Encoding)
}

// session is the input of peer.mjs: where to connect, and the steps to run.
type session struct {
	URL     string   `json:"url"`
	Token   string   `json:"token"`
	Options settings `json:"options"`
	Items   any      `json:"items"`
	Steps   []string `json:"steps"`
}

// outcome is the outcome of a step: its value as JSON, or the message of the
// error it threw.
type outcome struct {
	Value json.RawMessage
	Error *string
}

// script returns a command that runs one of the programs of the folder js.
func script(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), testenv.Need(tb, "node", "node"), args...)
	cmd.Dir = install(tb)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // no NODE_OPTIONS, no proxy
	return cmd
}

// feed runs a program with an input, as JSON, and returns what it printed.
func feed(tb testing.TB, cmd *exec.Cmd, input any) []byte {
	tb.Helper()
	in, err := json.Marshal(input)
	if err != nil {
		tb.Fatal(err)
	}
	cmd.Stdin = bytes.NewReader(in)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("%v\n%s", err, stderr.String())
	}
	return out
}

// play runs a session under Node and returns an outcome for each of its steps.
func play(tb testing.TB, s session) []outcome {
	tb.Helper()
	out := feed(tb, script(tb, "peer.mjs"), s)
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) != len(s.Steps) {
		tb.Fatalf("%d lines for %d steps:\n%s", len(lines), len(s.Steps), out)
	}
	outcomes := make([]outcome, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal(line, &outcomes[i]); err != nil {
			tb.Fatalf("line %q: %v", line, err)
		}
	}
	return outcomes
}

// decode reads a step's value, and ends the test if it threw.
func decode[T any](tb testing.TB, o outcome) (v T) {
	tb.Helper()
	if o.Error != nil {
		tb.Fatalf("threw %q", *o.Error)
	}
	if err := json.Unmarshal(o.Value, &v); err != nil {
		tb.Fatalf("%s: %v", o.Value, err)
	}
	return v
}

// everywhere runs a test with each database of the server and each setting of
// the client. The database is empty each time.
func everywhere(t *testing.T, test func(*testing.T, *upstashtest.Server, settings)) {
	install(t) // skips the whole test, not each of its eight parts
	bloomtest.EachBackend(t, func(t *testing.T, server *upstashtest.Server) {
		for _, set := range allSettings {
			t.Run(set.String(), func(t *testing.T) {
				server.FlushAll()
				test(t, server, set)
			})
		}
	})
}

//go:embed js/package.json js/package-lock.json js/*.mjs
var source embed.FS

// folder has the programs and their node_modules, outside of the source tree, once
// they are installed. TestMain removes it.
var folder string

func TestMain(m *testing.M) {
	code := m.Run()
	if folder != "" {
		_ = os.RemoveAll(folder)
	}
	os.Exit(code)
}

var installed = sync.OnceValue(func() (err error) {
	if folder, err = os.MkdirTemp("", "peertest"); err != nil {
		return err
	}
	if err := os.CopyFS(folder, source); err != nil {
		return err
	}
	cmd := exec.Command("npm", "ci", "--omit=peer", "--ignore-scripts", "--no-audit", "--no-fund",
		"--no-update-notifier", "--prefer-offline", "--fetch-retries=1", "--fetch-retry-mintimeout=500",
		"--fetch-timeout=20000")
	cmd.Dir = filepath.Join(folder, "js")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return nil
})

// install returns the folder to run programs in.
func install(tb testing.TB) (dir string) {
	tb.Helper()
	testenv.Asked(tb, "node")
	testenv.Need(tb, "node", "npm")
	if err := installed(); err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(folder, "js")
}

// TestLockFile: the lock file names no registry. npm then uses the machine's own.
func TestLockFile(t *testing.T) {
	lock, err := source.ReadFile("js/package-lock.json")
	if err != nil || bytes.Contains(lock, []byte(`"resolved"`)) {
		t.Errorf("%v, or the lock file names a registry", err)
	}
}

// scope has a window of ten years, so no window ends during a test.
const scope = "const window = '3650 d', region = [redis], ephemeralCache = new Map();"

// ratelimited asks a limiter of @upstash/ratelimit four times. It allows three
// requests in a window. The package sends scripts with the flag
// allow-key-locking.
func ratelimited(name, maker string) step {
	return limiter(name, maker, `
		await limiter.resetUsedTokens("user");
		ephemeralCache.clear();
		seen.push((await limiter.limit("user")).success, (await limiter.getRemaining("user")).remaining);`,
		`,true,2]`)
}

// ratelimitedRegions leaves out the reset, because with several regions the
// package does not wait for it.
func ratelimitedRegions(name, maker string) step {
	return limiter(name, maker, `seen.push((await limiter.getRemaining("user")).remaining);`, `,0]`)
}

func limiter(name, maker, then, want string) step {
	return step{`(async () => {
		` + scope + `
		const prefix = "` + name + `";
		const limiter = new ` + maker + `;
		const seen = [];
		for (let i = 0; i < 4; i++) {
			const r = await limiter.limit("user");
			await r.pending;
			seen.push(r.success);
		}
		` + then + `
		return [prefix, ...seen];
	})()`, `["` + name + `",true,true,true,false` + want, ``}
}

func single(algorithm string) string {
	return "Ratelimit({redis, prefix, ephemeralCache, limiter: Ratelimit." + algorithm + "})"
}

func multiRegion(algorithm string) string {
	return "MultiRegionRatelimit({redis: region, prefix, ephemeralCache, limiter: MultiRegionRatelimit." +
		algorithm + "})"
}

// TestPackages runs packages built on the official client.
func TestPackages(t *testing.T) {
	steps := []step{
		ratelimited("fixed window", single("fixedWindow(3, window)")),
		ratelimited("sliding window", single("slidingWindow(3, window)")),
		ratelimited("token bucket", single("tokenBucket(1, window, 3)")),
		ratelimited("cached fixed window", single("cachedFixedWindow(3, window)")),
		ratelimitedRegions("fixed window, multi-region", multiRegion("fixedWindow(3, window)")),
		ratelimitedRegions("sliding window, multi-region", multiRegion("slidingWindow(3, window)")),
		{`(async () => {
			const limiter = new Ratelimit({redis, prefix: "dynamic", dynamicLimits: true,
				limiter: Ratelimit.fixedWindow(3, "3650 d")});
			await limiter.setDynamicLimit({limit: 1});
			const [a, b] = [await limiter.limit("user"), await limiter.limit("user")];
			return [a.success, b.success, (await limiter.getDynamicLimit()).dynamicLimit];
		})()`, `[true,false,1]`, ``},
		{`(async () => {
			const retry = {attempts: 1, delay: 1};
			const mine = new Lock({id: "lock", redis, lease: 3_600_000, retry});
			const other = new Lock({id: "lock", redis, lease: 3_600_000, retry});
			return [await mine.acquire(), await other.acquire(), await mine.extend(60_000),
				await other.release(), await mine.release(), await other.acquire()];
		})()`, `[true,false,true,false,true,true]`, ``},
	}
	everywhere(t, func(t *testing.T, server *upstashtest.Server, set settings) {
		checkAll(t, server, set, steps)
	})
}
