package upstashtest_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// fakeTB is a test within a test: one that may fail. testing.TB cannot be
// implemented, only embedded; what is not overridden panics.
type fakeTB struct {
	testing.TB

	mu       sync.Mutex
	failures []string
	logs     []string
	cleanups []func()
}

// runFake runs f as a test, with its cleanups, and returns what came of it.
func runFake(f func(tb testing.TB)) *fakeTB {
	fake := &fakeTB{}
	over := make(chan struct{})
	go func() { // Fatalf ends a goroutine
		defer close(over)
		defer fake.cleanup()
		f(fake)
	}()
	<-over
	return fake
}

func (f *fakeTB) cleanup() {
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		f.cleanups[i]()
	}
}

func (f *fakeTB) Helper()             {}
func (f *fakeTB) Skipped() bool       { return false }
func (f *fakeTB) Cleanup(step func()) { f.cleanups = append(f.cleanups, step) }

func (f *fakeTB) Failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.failures) > 0
}

func (f *fakeTB) Logf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logs = append(f.logs, fmt.Sprintf(format, args...))
}

func (f *fakeTB) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = append(f.failures, fmt.Sprintf(format, args...))
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// print writes the failures for an Example.
func (f *fakeTB) print(w io.Writer) {
	for _, text := range f.failures {
		_, _ = fmt.Fprintln(w, text)
	}
}

// wantFailures checks how many there are, and that they say want, in order.
func (f *fakeTB) wantFailures(t *testing.T, want ...string) {
	t.Helper()
	if len(f.failures) != len(want) {
		t.Fatalf("%d failures, want %d:\n%s", len(f.failures), len(want), strings.Join(f.failures, "\n"))
	}
	for i, text := range want {
		if !strings.Contains(f.failures[i], text) {
			t.Errorf("failure %d is\n%s\nwant in it\n%s", i+1, f.failures[i], text)
		}
	}
}
