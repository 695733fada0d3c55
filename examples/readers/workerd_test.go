package readers_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestDigests compares xxh3.ts with another implementation.
func TestDigests(t *testing.T) {
	compiled(t) // or skips
	out, err := exec.Command("node", filepath.Join(dist, "testdata", "digests.js")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(out))); err != nil || n < 8000 {
		t.Errorf("compared %s digests, want more than 8,000", out)
	}
}

const workerdConfig = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "worker", worker = .worker), (name = "internet", network = (allow = ["local"]))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "worker")],
);
const worker :Workerd.Worker = (
  modules = [
    (name = "testdata/worker.js", esModule = embed "testdata/worker.js"),
    (name = "upbloom.js", esModule = embed "upbloom.js"),
    (name = "xxh3.js", esModule = embed "xxh3.js"),
  ],
  bindings = [
    (name = "UPSTASH_REDIS_REST_URL", fromEnvironment = "UPSTASH_REDIS_REST_URL"),
    (name = "UPSTASH_REDIS_REST_TOKEN", fromEnvironment = "UPSTASH_REDIS_REST_TOKEN"),
  ],
  compatibilityDate = "2026-10-01",
);
`

// TestWorkerd looks items up in a Worker, in a filter and a window that Go wrote.
func TestWorkerd(t *testing.T) {
	compiled(t) // or skips
	s := upstashtest.NewServer(t)
	window, err := bloom.NewWindow(s.Client(), "window", bloom.WindowConfig{
		Capacity: 1000, FPRate: 1e-6, Span: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("long ", 100)
	bloomtest.MustAdd(t, window, "in", long)
	for key, seed := range map[string]uint64{"plain": 0, "filter": 7} {
		cfg := bloom.Config{Capacity: 1000, FPRate: 1e-6, Seed: seed}
		bloomtest.MustAdd(t, bloomtest.HandleAt(t, s.Client(), key, cfg), "in", long)
	}

	url := startWorkerd(t, s.URL, s.Token)
	for _, c := range []struct{ key, want string }{
		{"plain", `{"found":[true,true,false]}`},
		{"window", `{"found":[true,true,false]}`},
		{"filter", `{"error":"Mismatch: the filter has another seed"}`},
		{"none", `{"error":"NotFound: no filter is at this key; `},
	} {
		got := ask(t, url, map[string]any{"key": c.key, "items": []string{"in", long, "out"}})
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.key, got, c.want)
		}
	}

	// A Worker must not pass the token on to where a redirect points.
	elsewhere := make(chan string, 1)
	redirected := startWorkerd(t, redirecting(t, elsewhere), s.Token)
	got := ask(t, redirected, map[string]any{"key": "plain", "items": []string{"in"}})
	if !strings.Contains(got, "status 307") {
		t.Errorf("after a redirect: %s, want an error that names status 307", got)
	}
	select {
	case host := <-elsewhere:
		t.Errorf("the Worker followed a redirect to %s", host)
	default:
	}
}

// BenchmarkWorkerdDigest is the time of a digest of 20 bytes in workerd.
func BenchmarkWorkerdDigest(b *testing.B) {
	if err := compile(); err != nil {
		b.Fatal(err)
	}
	s := upstashtest.NewServer(b)
	url := startWorkerd(b, s.URL, s.Token)
	item := strings.Repeat("x", 20)
	ask(b, url, map[string]any{"key": "none", "items": []string{item}, "digests": 100_000})
	for b.Loop() {
		ask(b, url, map[string]any{"key": "none", "items": []string{item}, "digests": 100_000})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/digest")
}

// redirecting returns the URL of a server that redirects to another.
func redirecting(t *testing.T, elsewhere chan string) string {
	t.Helper()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case elsewhere <- r.Host:
		default:
		}
		_, _ = io.WriteString(w, `{"result":null}`)
	}))
	t.Cleanup(other.Close)
	first := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(first.Close)
	return first.URL
}

// startWorkerd returns the URL of a Worker with a database at url.
func startWorkerd(t testing.TB, url, token string) string {
	t.Helper()
	exe, config := testenv.NeedWorkerd(t), filepath.Join(dist, "config.capnp")
	if err := os.WriteFile(config, []byte(workerdConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return testenv.StartWorkerd(t, exe, config,
		"UPSTASH_REDIS_REST_URL="+url, "UPSTASH_REDIS_REST_TOKEN="+token).URL
}

// ask posts a question to a Worker and returns its answer.
func ask(t testing.TB, url string, question map[string]any) string {
	t.Helper()
	body, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}
