package jstest

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall/js"
	"testing"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

const (
	token   = "very-secret-token"
	maxBody = 1 << 20
)

// client returns a client whose URL is a path of the native server.
func client(t *testing.T, path string, opts ...upstash.Option) *upstash.Client {
	t.Helper()
	base := os.Getenv("UPBLOOM_JSTEST_URL")
	if base == "" {
		t.Skip("no server: run the native tests of this package")
	}
	return clientAt(t, base+path, opts...)
}

func clientAt(t *testing.T, url string, opts ...upstash.Option) *upstash.Client {
	t.Helper()
	opts = append([]upstash.Option{
		upstash.WithRetry(0), upstash.WithMaxResponse(maxBody),
		upstash.WithTimeout(5 * time.Minute), // on a busy machine a user's would end what is only slow
	}, opts...)
	c, err := upstash.New(url, token, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fails runs a command that must fail, and looks for secrets in the error.
func fails(t *testing.T, ctx context.Context, c *upstash.Client) error {
	t.Helper()
	_, err := c.Do(ctx, upstash.Cmd("SET", "secret-key", "secret-value"))
	if err == nil {
		t.Fatal("SET: no error, want one")
	}
	for _, secret := range []string{token, "secret-key", "secret-value"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows %q: %v", secret, err)
		}
	}
	return err
}

// TestGuestProxy: New asks for Node's proxies. Package conn has the table.
func TestGuestProxy(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "proxy.test")
	for url, want := range map[string]error{
		"https://db.example.test": upstash.ErrProxy, "http://db.example.test": nil, "https://127.0.0.1": nil,
	} {
		if _, err := upstash.New(url, token, upstash.WithInsecureHTTP()); err != want {
			t.Errorf("%s: got %v, want %v", url, err, want)
		}
	}
}

func TestGuestBodies(t *testing.T) {
	r, err := client(t, "/gzip").Do(context.Background(), upstash.Cmd("GET", "k"))
	if s, _ := r.Text(); err != nil || s != strings.Repeat("y", 10_000) {
		t.Errorf("a compressed body: got %d bytes, %v, want 10,000 of y", len(s), err)
	}
	for _, path := range []string{"/announced", "/endless", "/bomb"} {
		if err := fails(t, context.Background(), client(t, path)); !errors.Is(err, upstash.ErrResponseTooLarge) {
			t.Errorf("%s: %v, want ErrResponseTooLarge", path, err)
		}
		if path != "/bomb" { // its body fits into the buffers on the way
			noticed(t) // the server sees the guest drop the rest
		}
	}
}

// TestGuestContext ends three stalled requests. TestFetch, on the native side,
// counts the connections dropped by the guest.
func TestGuestContext(t *testing.T) {
	quiet := noConsoleErrors(t)
	// The client's own limit for an attempt. Its timer goes off once the server has
	// the request.
	const limit = 2 * time.Hour
	goOff := heldTimer(limit)
	timeout := make(chan error)
	go func() { timeout <- fails(t, context.Background(), client(t, "/stall", upstash.WithTimeout(limit))) }()
	noticed(t)
	goOff()
	if err := <-timeout; !errors.Is(err, context.DeadlineExceeded) || upstash.SafeToRetry(err) {
		t.Errorf("timeout: %v, want DeadlineExceeded, and not safe to retry", err)
	}
	// The caller cancels, before the header and in the middle of the body.
	for _, path := range []string{"/stall", "/half"} {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- fails(t, ctx, client(t, path)) }()
		noticed(t)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || upstash.SafeToRetry(err) {
			t.Errorf("%s: %v, want Canceled, and not safe to retry", path, err)
		}
		if err := fails(t, ctx, client(t, path)); !upstash.SafeToRetry(err) {
			t.Errorf("%s, canceled before: %v, want safe to retry", path, err)
		}
	}
	quiet()
}

// heldTimer keeps the host's next timer for d from going off before goOff.
func heldTimer(d time.Duration) (goOff func()) {
	before := js.Global().Get("setTimeout")
	hold := js.Global().Get("Function").New("before", "millis", `
		const hold = (f, ms, ...args) => {
			if (ms !== millis) return before(f, ms, ...args);
			hold.goOff = () => f(...args);
			return 0;
		};
		return hold`).Invoke(before, d.Milliseconds())
	js.Global().Set("setTimeout", hold)
	return func() {
		js.Global().Set("setTimeout", before)
		hold.Call("goOff")
	}
}

// noticed returns once the server has seen a request stall or its client leave.
func noticed(t *testing.T) {
	t.Helper()
	if _, err := client(t, "/noticed").Do(context.Background(), upstash.Cmd("PING")); err != nil {
		t.Fatal(err)
	}
}

// noConsoleErrors watches the console. There syscall/js reports a callback to a
// released function.
func noConsoleErrors(t *testing.T) (check func()) {
	console := js.Global().Get("console")
	before := console.Get("error")
	log := js.Global().Get("Array").New()
	console.Set("error", js.Global().Get("Function").New("log",
		"return (...a) => log.push(a.join(' '))").Invoke(log))
	return func() {
		console.Set("error", before)
		if log.Length() != 0 {
			t.Errorf("console.error got %v, want nothing", log.Call("join", "; "))
		}
	}
}
