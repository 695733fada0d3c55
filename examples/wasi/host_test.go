package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// patience limits calls that must succeed even on a slow machine.
const patience = testenv.Patience

func load(tb testing.TB, url, token string) *Guest {
	tb.Helper()
	wasm := module(tb, "./reactor")
	start := time.Now()
	g, err := Load(tb.Context(), Config{
		Wasm: wasm, CacheDir: filepath.Join(scratch, "cache"),
		URL: url, Token: token,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Logf("loaded in %v", time.Since(start))
	g.grace = patience // this guest returns by itself
	tb.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return g
}

func seen(tb testing.TB, g *Guest, id string) Verdict {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	v, err := g.Seen(ctx, id)
	if err != nil {
		tb.Fatalf("Seen(%q): %v", id, err)
	}
	return v
}

func TestReactorAnswers(t *testing.T) {
	srv := upstashtest.NewServer(t)
	g := load(t, srv.URL, srv.Token)
	// Before any other: the guest has no room yet.
	if got, err := g.Seen(t.Context(), ""); err == nil || !strings.HasPrefix(err.Error(), "the id is empty") {
		t.Errorf("an empty id: %v, %v, want an error", got, err)
	}
	const n = 300
	for i := range n {
		for _, want := range []Verdict{New, Seen} {
			if got := seen(t, g, fmt.Sprint("order-", i)); got != want {
				t.Fatalf("order-%d: %v, want %v", i, got, want)
			}
		}
	}
	long := strings.Repeat("a long id ", 5_000)
	for _, want := range []Verdict{New, Seen} {
		if got := seen(t, g, long); got != want {
			t.Errorf("an id of %d bytes: %v, want %v", len(long), got, want)
		}
	}
	// One more request sets the TTL of the filter made by the first call.
	if got := srv.Stats().Requests; got != 2*n+2+1 {
		t.Errorf("%d requests for %d calls, want one more", got, 2*n+2)
	}
}

// Two guests race for the same ids: each id is new to exactly one.
func TestReactorsShareAFilter(t *testing.T) {
	srv := upstashtest.NewServer(t)
	const n = 50
	var verdicts [2][n]Verdict
	var wg sync.WaitGroup
	for i := range verdicts {
		g := load(t, srv.URL, srv.Token)
		wg.Go(func() {
			for j := range n {
				v, err := g.Seen(t.Context(), fmt.Sprint("job-", j))
				if err != nil {
					t.Error(err)
				}
				verdicts[i][j] = v
			}
		})
	}
	wg.Wait()
	for j := range n {
		if a, b := verdicts[0][j], verdicts[1][j]; a+b != New+Seen {
			t.Errorf("job-%d: %v for one guest and %v for the other, want new once", j, a, b)
		}
	}
}

func TestReactorDeadline(t *testing.T) {
	srv := upstashtest.NewServer(t)
	g := load(t, srv.URL, srv.Token)
	if got := seen(t, g, "before"); got != New {
		t.Errorf("before: %v, want %v", got, New)
	}
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
	if got := seen(t, g, id); got != Seen {
		t.Errorf("after the deadline: %v, want %v: the server had executed it", got, Seen)
	}
	if _, err := g.Seen(ctx, "late"); err == nil {
		t.Error("Seen with a context that has ended: no error, want one")
	}
}

// TestReactorCancel: if a caller gives up, it need not wait, and its request is
// not repeated.
func TestReactorCancel(t *testing.T) {
	srv := upstashtest.NewServer(t)
	g := load(t, srv.URL, srv.Token)
	if got := seen(t, g, "before"); got != New {
		t.Errorf("before: %v, want %v", got, New)
	}
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
	if got := seen(t, g, "late"); got != New {
		t.Errorf("late: %v, want %v", got, New)
	}
}

func TestReactorDatabaseDown(t *testing.T) {
	for _, c := range []struct {
		name string
		warm bool
		// A kept-alive connection breaks during its use. Nobody knows whether
		// the request was read.
		want string
	}{
		{"before the first call", false, "the command did not run"},
		{"between two calls", true, "connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := upstashtest.NewServer(t)
			g := load(t, srv.URL, srv.Token)
			if c.warm && seen(t, g, "a") != New {
				t.Error("Seen(a), the first call, did not say new, want it to")
			}
			srv.Close()
			v, err := g.Seen(t.Context(), "b")
			if err == nil {
				t.Fatalf("Seen without a database: %v, want an error", v)
			}
			for _, want := range []string{"connection refused", "5 attempts", c.want} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), srv.Token) {
				t.Error("the token shows in the error")
			}
		})
	}
}

// Retries need the guest's clock and timers, and the kind of each failure.
func TestReactorRetries(t *testing.T) {
	for _, c := range []struct {
		fault upstashtest.Fault
		want  Verdict
	}{
		{upstashtest.RateLimit(0), New},
		{upstashtest.Drop(upstashtest.BeforeExec), New},
		{upstashtest.Drop(upstashtest.AfterExec), Uncertain},
		{upstashtest.BadGateway(upstashtest.AfterExec), Uncertain},
	} {
		t.Run(fmt.Sprint(c.fault), func(t *testing.T) {
			srv := upstashtest.NewServer(t)
			g := load(t, srv.URL, srv.Token)
			if got := seen(t, g, "warm"); got != New {
				t.Fatalf("first: %v, want %v", got, New)
			}
			srv.Inject(c.fault)
			if got := seen(t, g, "x"); got != c.want {
				t.Errorf("with the fault: %v, want %v", got, c.want)
			}
			if got := seen(t, g, "x"); got != Seen {
				t.Errorf("afterwards: %v, want %v", got, Seen)
			}
		})
	}
}

func TestReactorFailures(t *testing.T) {
	srv := upstashtest.NewServer(t)
	for _, c := range []struct {
		name, url, token string
		fault            upstashtest.Fault
		want             string
	}{
		{name: "no configuration", want: "set UPSTASH_REDIS_REST_URL"},
		{name: "wrong token", url: srv.URL, token: "wrong", want: "401"},
		{
			name: "longer than the first buffer", url: srv.URL, token: srv.Token,
			fault: upstashtest.HugeBody(100_000), want: "unexpected response",
		},
		{
			name: "longer than the limit", url: srv.URL, token: srv.Token,
			fault: upstashtest.HugeBody(33 << 20), want: "larger than the limit",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := load(t, c.url, c.token)
			if c.fault != (upstashtest.Fault{}) {
				srv.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault { return c.fault })
			}
			v, err := g.Seen(t.Context(), "x")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v and %v, want an error with %q", v, err, c.want)
			}
		})
	}
}

// The configured URL may differ in form from the guest's.
func TestReactorURLForms(t *testing.T) {
	srv := upstashtest.NewServer(t)
	host := strings.TrimPrefix(srv.URL, "http://")
	_, port, _ := strings.Cut(host, ":")
	for i, url := range []string{srv.URL + "/", srv.URL + "//", "HTTP://" + host, "http://LocalHost:" + port} {
		if got := seen(t, load(t, url, srv.Token), fmt.Sprint("form-", i)); got != New {
			t.Errorf("%s: %v, want %v", url, got, New)
		}
	}
}

func TestRelayReachesOneDatabaseOnly(t *testing.T) {
	for _, base := range []string{"http://127.0.0.1:1", ""} {
		r := relay{base: baseOf(base)}
		for _, url := range []string{
			"http://127.0.0.2:1/", "http://127.0.0.1:12/", "https://127.0.0.1:1/",
			"http://127.0.0.1:1@127.0.0.3/",
		} {
			answer := string(r.answer(t.Context(), []byte(url+"\nA: b\n\n[]"), 10))
			if !strings.HasPrefix(answer, "403\n") || !strings.Contains(answer, "own database") {
				t.Errorf("base %q, %s: %q, want 403, its own database alone", base, url, answer)
			}
		}
	}
}

// A host of several databases serves them at different paths.
func TestRelayReachesOnePathOnly(t *testing.T) {
	const base = "http://127.0.0.1:1/db-1"
	var reached bool
	r := relay{base: baseOf(base), transport: roundTripper(func(*http.Request) (*http.Response, error) {
		reached = true
		return nil, errors.New("reached")
	})}
	for path, want := range map[string]bool{
		"": true, "/": true, "/pipeline": true, "//pipeline": true, "/a%2Fb/./...": true,
		"/set/a..b/..c": true, "/%2e%2f/x": true,
		"-2": false, "/../db-2": false, "/..": false, "/%2e%2e/db-2": false,
		"/.%2E/db-2": false, "/x/../../db-2": false, "/..%2fdb-2": false, `/..\db-2`: false,
		"/..%5cdb-2": false, "/%252e%252e/db-2": false, "/pipeline/..": false,
	} {
		reached = false
		_ = r.answer(t.Context(), []byte(base+path+"\nA: b\n\n[]"), 10)
		if reached != want {
			t.Errorf("%s: reached %v, want %v", path, reached, want)
		}
	}
}

// TestReactorTimes logs how long calls take. The log of each test has the time
// of loading: the first test of a run compiles the module, the others use the
// cache.
func TestReactorTimes(t *testing.T) {
	srv := upstashtest.NewServer(t)
	g := load(t, srv.URL, srv.Token)
	start := time.Now()
	if got := seen(t, g, "first"); got != New {
		t.Errorf("first: %v, want %v", got, New)
	}
	t.Logf("first call: %v", time.Since(start))

	const n = 200
	start = time.Now()
	for i := range n {
		if got := seen(t, g, fmt.Sprint("later-", i)); got != New {
			t.Errorf("later-%d: %v, want %v", i, got, New)
		}
	}
	t.Logf("later calls: %v each", time.Since(start)/n)
}

func loadOdd(t *testing.T) *Guest {
	t.Helper()
	g, err := Load(t.Context(), Config{
		Wasm: module(t, "./testdata/odd"), CacheDir: filepath.Join(scratch, "cache"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close(context.Background()) })
	return g
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
		if got := seen(t, g, "well"); got != New {
			t.Errorf("the next call: %v, want %v", got, New)
		}
	}
}

// TestWaitingForAnotherCallEnds: if a call waits for another one, it ends with
// its own context.
func TestWaitingForAnotherCallEnds(t *testing.T) {
	held, release := make(chan struct{}), make(chan struct{})
	srv := upstashtest.NewServer(t)
	g, err := Load(t.Context(), Config{
		Wasm: module(t, "./reactor"), CacheDir: filepath.Join(scratch, "cache"),
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close(context.Background()) })
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
		if got := seen(t, g, "well"); got != New {
			t.Errorf("after %s: %v, want %v", id, got, New)
		}
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
	g := load(t, srv.URL, srv.Token)
	longest := strings.Repeat("x", limit)
	for _, want := range []Verdict{New, Seen} {
		if got := seen(t, g, longest); got != want {
			t.Errorf("the longest id: %v, want %v", got, want)
		}
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
	if got := seen(t, g, "short"); got != New {
		t.Errorf("afterwards: %v, want %v", got, New)
	}
}

// TestReactorMemoryIsFlat: the memory of a guest never shrinks. It stays the
// same once Go's heap has reached its size.
func TestReactorMemoryIsFlat(t *testing.T) {
	srv := upstashtest.NewServer(t)
	g := load(t, srv.URL, srv.Token)
	const warm, calls = 5_000, 10_000
	var before uint32
	for i := range warm + calls {
		if i == warm {
			before = g.module.Memory().Size()
		}
		if got := seen(t, g, fmt.Sprint("event-", i/2)); got != Verdict(i%2) {
			t.Fatalf("call %d: %v, want %v", i, got, Verdict(i%2))
		}
	}
	after := g.module.Memory().Size()
	t.Logf("%d bytes after %d calls, %d after %d more", before, warm, after, calls)
	if after > before+1<<20 {
		t.Error("the memory grows with the calls, want at most 1 MiB more")
	}
}
