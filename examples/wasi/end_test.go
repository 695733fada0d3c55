package main

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

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
