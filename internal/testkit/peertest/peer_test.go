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

	"github.com/goccy/go-json"

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

// play runs a session under Node and returns an outcome for each of its steps.
func play(tb testing.TB, s session) []outcome {
	tb.Helper()
	node, dir := install(tb)
	input, err := json.Marshal(s)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.CommandContext(tb.Context(), node, "peer.mjs")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // no NODE_OPTIONS, no proxy
	cmd.Stdin = bytes.NewReader(input)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("node: %v\n%s", err, stderr.String())
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) != len(s.Steps) {
		tb.Fatalf("%d lines for %d steps:\n%s%s", len(lines), len(s.Steps), out, stderr.String())
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
	for _, backend := range []string{"embedded", "redis"} {
		t.Run(backend, func(t *testing.T) {
			var opts []upstashtest.Option
			if backend == "redis" {
				opts = append(opts, upstashtest.WithRedis(testenv.Redis(t)))
			}
			server := upstashtest.NewServer(t, opts...)
			for _, set := range allSettings {
				t.Run(set.String(), func(t *testing.T) {
					server.FlushAll()
					test(t, server, set)
				})
			}
		})
	}
}

//go:embed js/package.json js/package-lock.json js/*.mjs
var source embed.FS

// installLimit allows for a slow network. On a good one npm takes a few
// seconds, and less if its cache has the packages.
const installLimit = testenv.Patience

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
		session := session{URL: server.URL, Token: server.Token, Options: set, Steps: scripts(steps)}
		for i, o := range play(t, session) {
			check(t, steps[i], o)
		}
	})
}
