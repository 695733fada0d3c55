package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// patience limits calls that must succeed even on a slow machine.
const patience = testenv.Patience

// load loads a module that is to be closed at the end of the test, by default the
// reactor.
func load(tb testing.TB, cfg Config) *Guest {
	tb.Helper()
	isReactor := cfg.Wasm == nil
	if isReactor {
		cfg.Wasm = module(tb, "./reactor")
	}
	cfg.CacheDir = filepath.Join(scratch, "cache")
	start := time.Now()
	g, err := Load(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Logf("loaded in %v", time.Since(start))
	if isReactor {
		g.grace = patience // it returns by itself
	}
	tb.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return g
}

func loadReactor(tb testing.TB, srv *upstashtest.Server) *Guest {
	tb.Helper()
	return load(tb, Config{URL: srv.URL, Token: srv.Token})
}

// wantSeen asks the guest about an event and checks its verdict.
func wantSeen(tb testing.TB, g *Guest, id string, want Verdict) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	if got, err := g.Seen(ctx, id); err != nil || got != want {
		tb.Fatalf("Seen(%.20q) = %v, %v, want %v", id, got, err, want)
	}
}

// asks asks a module about an event, and returns its verdict or what failed.
type asks func(t *testing.T, id string) string

// want asks, and wants one of the parts in what it gets.
func (ask asks) want(t *testing.T, id string, parts ...string) {
	t.Helper()
	got := ask(t, id)
	if !slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(got, part) }) {
		t.Errorf("%q: %q, want one of %q", id, got, parts)
	}
}

// testModule asks a module that has not been asked yet. Its database answers, and
// then fails in several ways. late is what a module may say that has too little
// time for a large answer.
func testModule(t *testing.T, srv *upstashtest.Server, ask asks, late string) {
	t.Helper()
	want := func(id string, parts ...string) {
		t.Helper()
		ask.want(t, id, parts...)
	}
	start := time.Now()
	want("first", "new")
	t.Logf("first request: %v", time.Since(start))
	const n = 100
	start = time.Now()
	for i := range n {
		want(fmt.Sprint("event-", i), "new")
		want(fmt.Sprint("event-", i), "seen")
	}
	t.Logf("warm requests: %v each", time.Since(start)/(2*n))
	// One more request sets the TTL of the filter made by the first.
	if got := srv.Stats().Requests; got != 2*n+2 {
		t.Errorf("%d requests for %d questions, want one more", got, 2*n+1)
	}

	for id, fault := range map[string]upstashtest.Fault{
		"limited": upstashtest.RateLimit(0), "trickled": upstashtest.Trickle(0),
		"lost": upstashtest.Drop(upstashtest.BeforeExec),
	} {
		srv.Inject(fault)
		want(id, "new")
		want(id, "seen")
	}
	for id, fault := range map[string]upstashtest.Fault{
		"dropped": upstashtest.Drop(upstashtest.AfterExec), "bad": upstashtest.BadGateway(upstashtest.AfterExec),
	} {
		srv.Inject(fault)
		want(id, "uncertain")
		want(id, "seen")
	}
	always := func(f upstashtest.Fault) {
		srv.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault { return f })
	}
	always(upstashtest.HugeBody(300_000))
	want("first", "unexpected response")
	always(upstashtest.HugeBody(33 << 20))
	want("first", "larger than the limit", late)
	srv.InjectFunc(nil)
}

// testGone asks a module whose database goes away. The first time its connection
// breaks in use, and nobody knows whether the request was read.
func testGone(t *testing.T, srv *upstashtest.Server, ask asks) {
	t.Helper()
	srv.Close()
	for _, part := range []string{"connection refused", "the command did not run", "5 attempts"} {
		ask.want(t, "gone", part)
	}
	if got := ask(t, "gone"); strings.Contains(got, srv.Token) {
		t.Errorf("the token shows in the error: %s", got)
	}
}

// testOnce has clients race for the same events: each is new to exactly one.
func testOnce(t *testing.T, clients ...asks) {
	t.Helper()
	const n = 50
	var news [n]atomic.Int32
	var group sync.WaitGroup
	for _, ask := range clients {
		group.Go(func() {
			for i := range n {
				switch got := ask(t, fmt.Sprint("job-", i)); got {
				case "new":
					news[i].Add(1)
				case "seen":
				default:
					t.Errorf("job-%d: %q, want new or seen", i, got)
				}
			}
		})
	}
	group.Wait()
	for i := range news {
		if got := news[i].Load(); got != 1 {
			t.Errorf("job-%d was new to %d clients, want 1", i, got)
		}
	}
}

// asks is a way to ask the guest.
func (g *Guest) asks(t *testing.T, id string) string {
	t.Helper()
	v, err := g.Seen(t.Context(), id)
	if err != nil {
		return err.Error()
	}
	return v.String()
}

func TestReactor(t *testing.T) {
	srv := upstashtest.NewServer(t)
	g := loadReactor(t, srv)
	// Before any other: the guest has no room yet.
	if got, err := g.Seen(t.Context(), ""); err == nil || !strings.HasPrefix(err.Error(), "the id is empty") {
		t.Errorf("an empty id: %v, %v, want an error", got, err)
	}
	testModule(t, srv, g.asks, "larger than the limit")
	testGone(t, srv, g.asks)
}

func TestReactorsShareAFilter(t *testing.T) {
	srv := upstashtest.NewServer(t)
	testOnce(t, loadReactor(t, srv).asks, loadReactor(t, srv).asks)
}

func TestReactorDeadline(t *testing.T) {
	srv := upstashtest.NewServer(t)
	g := loadReactor(t, srv)
	wantSeen(t, g, "before", New)
	var id string
	var ctx context.Context
	before := srv.Stats().Commands
	// On a slow machine the deadline may come before the database has the request.
	for limit := 100 * time.Millisecond; srv.Stats().Commands == before; limit *= 2 {
		id = fmt.Sprint("slow, ", limit)
		srv.Inject(upstashtest.Stall(upstashtest.AfterExec)) // the database never answers
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(t.Context(), limit)
		defer cancel()
		v, err := g.Seen(ctx, id)
		if err == nil {
			t.Fatalf("Seen with a database that stalls: %v, want an error", v)
		}
		for _, want := range []string{"deadline exceeded", "may have run"} {
			if srv.Stats().Commands > before && !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
		srv.Inject() // if no request has met it
	}
	wantSeen(t, g, id, Seen)
	if _, err := g.Seen(ctx, "late"); err == nil {
		t.Error("Seen with a context that has ended: no error, want one")
	}
}

// TestReactorCancel: if a caller gives up, it need not wait, and its request is
// not repeated.
func TestReactorCancel(t *testing.T) {
	srv := upstashtest.NewServer(t)
	g := loadReactor(t, srv)
	wantSeen(t, g, "before", New)
	ctx, cancel := context.WithCancel(t.Context())
	srv.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		cancel()
		return upstashtest.Stall(upstashtest.AfterExec)
	})
	v, err := g.Seen(ctx, "slow") // the database never answers
	if err == nil {
		t.Fatalf("Seen of a call that was given up: %v, want an error", v)
	}
	for _, want := range []string{"context canceled", "may have run"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "attempts") {
		t.Errorf("a call that was given up: %v, want one attempt", err)
	}
	srv.InjectFunc(nil)
	if _, err := g.Seen(ctx, "late"); !errors.Is(err, context.Canceled) {
		t.Errorf("Seen after its call was given up: %v, want context.Canceled", err)
	}
	wantSeen(t, g, "late", New)
}

func TestReactorFailures(t *testing.T) {
	srv := upstashtest.NewServer(t)
	for want, cfg := range map[string]Config{
		"set UPSTASH_REDIS_REST_URL": {},
		"401":                        {URL: srv.URL, Token: "wrong"},
	} {
		asks(load(t, cfg).asks).want(t, "x", want)
	}
}

// The configured URL may differ in form from the guest's.
func TestReactorURLForms(t *testing.T) {
	srv := upstashtest.NewServer(t)
	host := strings.TrimPrefix(srv.URL, "http://")
	_, port, _ := strings.Cut(host, ":")
	for i, url := range []string{srv.URL + "/", srv.URL + "//", "HTTP://" + host, "http://LocalHost:" + port} {
		wantSeen(t, load(t, Config{URL: url, Token: srv.Token}), fmt.Sprint("form-", i), New)
	}
}

// A host of several databases serves them at different paths. Without a base that can
// be parsed, the guest reaches nothing.
func TestRelayReachesOneDatabaseOnly(t *testing.T) {
	const base = "http://127.0.0.1:1/db-1"
	for url, want := range map[string]bool{
		base: true, base + "/": true, base + "/pipeline": true, base + "//pipeline": true,
		base + "/a%2Fb/./...": true, base + "/set/a..b/..c": true, base + "/%2e%2f/x": true,
		base + "-2": false, base + "/../db-2": false, base + "/..": false, base + "/%2e%2e/db-2": false,
		base + "/.%2E/db-2": false, base + "/x/../../db-2": false, base + "/..%2fdb-2": false,
		base + `/..\db-2`: false, base + "/..%5cdb-2": false, base + "/%252e%252e/db-2": false,
		base + "/pipeline/..": false,

		"http://127.0.0.2:1/db-1": false, "http://127.0.0.1:12/db-1": false,
		"https://127.0.0.1:1/db-1": false, "http://127.0.0.1:1@127.0.0.3/db-1": false,
	} {
		for _, base := range []string{base, ""} {
			reached, want := false, want && base != ""
			r := relay{base: baseOf(base), transport: roundTripper(func(*http.Request) (*http.Response, error) {
				reached = true
				return nil, errors.New("reached")
			})}
			answer := string(r.answer(t.Context(), []byte(url+"\nA: b\n\n[]"), 10))
			refused := strings.HasPrefix(answer, "403\n") && strings.Contains(answer, "own database")
			if reached != want || refused == want {
				t.Errorf("base %q, %s: reached %v, %q, want %v", base, url, reached, answer, want)
			}
		}
	}
}

func loadOdd(t *testing.T) *Guest {
	t.Helper()
	return load(t, Config{Wasm: module(t, "./testdata/odd")})
}

type answer struct {
	verdict Verdict
	err     error
}

// ends waits for a call that must end, and ends the test if it does not.
func ends(t *testing.T, call func() (Verdict, error)) answer {
	t.Helper()
	done := make(chan answer, 1)
	go func() {
		v, err := call()
		done <- answer{v, err}
	}()
	select {
	case a := <-done:
		return a
	case <-time.After(patience):
		t.Fatal("the call outlived its context")
		return answer{}
	}
}

// TestGuestThatSpinsEnds: if a guest never returns, it ends soon after its
// context. The next call gets a working guest.
func TestGuestThatSpinsEnds(t *testing.T) {
	g := loadOdd(t)
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		a := ends(t, func() (Verdict, error) { return g.Seen(ctx, "spin") })
		if !errors.Is(a.err, context.DeadlineExceeded) {
			t.Fatalf("got %v and %v, want the end of the context", a.verdict, a.err)
		}
		wantSeen(t, g, "well", New)
	}
}

// TestWaitingForAnotherCallEnds: if a call waits for another one, it ends with
// its own context.
func TestWaitingForAnotherCallEnds(t *testing.T) {
	held, release := make(chan struct{}), make(chan struct{})
	srv := upstashtest.NewServer(t)
	g := load(t, Config{
		URL: srv.URL, Token: srv.Token,
		Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			close(held)
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return nil, errors.New("over")
		}),
	})
	running, giveUp := context.WithCancel(t.Context())
	first := make(chan struct{})
	go func() {
		defer close(first)
		_, _ = g.Seen(running, "first")
	}()
	<-held
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	a := ends(t, func() (Verdict, error) { return g.Seen(ctx, "second") })
	if !errors.Is(a.err, context.DeadlineExceeded) {
		t.Errorf("got %v and %v, want the end of the context", a.verdict, a.err)
	}
	giveUp()
	close(release)
	<-first
}

// TestOddVerdicts: anything but a verdict is an error, and the guest serves on.
func TestOddVerdicts(t *testing.T) {
	g := loadOdd(t)
	for id, want := range map[string]string{
		"three": "returned 3", "minus two": "returned -2", "panic": "wasi: seen: ",
	} {
		v, err := g.Seen(t.Context(), id)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v and %v, want an error with %q", id, v, err, want)
		}
		wantSeen(t, g, "well", New)
	}
}

// Without a transport, or with that of httptransport.New(nil), a guest gets an error
// with the reason, after one attempt.
func TestNoTransport(t *testing.T) {
	path := filepath.Join(scratch, "notransport.wasm")
	runCmd(t, wasip1(exec.Command(testenv.Need(t, "go", "go"),
		"build", "-ldflags=-s -w", "-o", path, "./testdata/notransport")))
	cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(scratch, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(cache))
	defer runtime.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	var out bytes.Buffer
	_, err = runtime.InstantiateWithConfig(ctx, mustRead(t, path),
		wazero.NewModuleConfig().WithStdout(&out).WithStderr(&out))
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	// errors.Is ErrNoTransport, SafeToRetry, attempts, and the text
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Errorf("the guest printed %q, want a line for each transport", lines)
	}
	for _, got := range lines {
		if !strings.HasPrefix(got, "true true 1 ") || !strings.Contains(got, "WithTransport") {
			t.Errorf("the guest printed %q, want \"true true 1\" and the name of WithTransport", got)
		}
	}
}

// TestLongIDs: a guest refuses an id over 1 MiB, because its memory never
// shrinks.
func TestLongIDs(t *testing.T) {
	const limit = 1 << 20
	srv := upstashtest.NewServer(t)
	g := loadReactor(t, srv)
	longest := strings.Repeat("x", limit)
	for _, want := range []Verdict{New, Seen} {
		wantSeen(t, g, longest, want)
	}
	before := g.module.Memory().Size()
	for _, n := range []int{limit + 1, 64 << 20} {
		v, err := g.Seen(t.Context(), strings.Repeat("x", n))
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint(n)) {
			t.Errorf("%d bytes: %v, %v; want an error with the length", n, v, err)
		}
	}
	if after := g.module.Memory().Size(); after != before {
		t.Errorf("the refused ids left %d bytes of memory, want %d as before them", after, before)
	}
	wantSeen(t, g, "short", New)
}

// TestReactorMemoryIsFlat: the memory of a guest never shrinks. It stays the
// same once Go's heap has reached its size.
func TestReactorMemoryIsFlat(t *testing.T) {
	srv := upstashtest.NewServer(t)
	g := loadReactor(t, srv)
	const warm, calls = 5_000, 10_000
	var before uint32
	for i := range warm + calls {
		if i == warm {
			before = g.module.Memory().Size()
		}
		wantSeen(t, g, fmt.Sprint("event-", i/2), Verdict(i%2))
	}
	after := g.module.Memory().Size()
	t.Logf("%d bytes after %d calls, %d after %d more", before, warm, after, calls)
	if after > before+1<<20 {
		t.Error("the memory grows with the calls, want at most 1 MiB more")
	}
}
