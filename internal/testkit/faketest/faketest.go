// Package faketest has a testing.TB that is allowed to fail. With it, helpers
// of tests can themselves be tested.
package faketest

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// TB is a test within a test. It is allowed to fail. A method of testing.TB
// that is not defined below panics.
type TB struct {
	testing.TB

	mu sync.Mutex
	// Failures are the texts of Errorf and Fatalf, in order. Read them after
	// Run has returned.
	Failures []string
	// Causes are the errors among the arguments of Errorf and Fatalf.
	Causes []error
	// Logs are the texts of Logf, in order.
	Logs     []string
	cleanups []func()
}

// Run runs f as a test, then its cleanups, and returns the test.
func Run(f func(tb testing.TB)) *TB {
	fake := &TB{}
	over := make(chan struct{})
	go func() { // Fatalf ends its goroutine
		defer close(over)
		defer fake.cleanup()
		f(fake)
	}()
	<-over
	return fake
}

func (f *TB) cleanup() {
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		f.cleanups[i]()
	}
}

func (f *TB) Helper()             {}
func (f *TB) Name() string        { return "TestFake" }
func (f *TB) Skipped() bool       { return false }
func (f *TB) Cleanup(step func()) { f.cleanups = append(f.cleanups, step) }

func (f *TB) Failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.Failures) > 0
}

func (f *TB) Logf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Logs = append(f.Logs, fmt.Sprintf(format, args...))
}

func (f *TB) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Failures = append(f.Failures, fmt.Sprintf(format, args...))
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			f.Causes = append(f.Causes, err)
		}
	}
}

func (f *TB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// Print writes the failures to w, each on a line of its own.
func (f *TB) Print(w io.Writer) {
	for _, text := range f.Failures {
		_, _ = fmt.Fprintln(w, text)
	}
}

// WantFailures checks the number of failures, and the text in each.
func (f *TB) WantFailures(t *testing.T, want ...string) {
	t.Helper()
	if len(f.Failures) != len(want) {
		t.Fatalf("%d failures, want %d:\n%s", len(f.Failures), len(want), strings.Join(f.Failures, "\n"))
	}
	for i, text := range want {
		if !strings.Contains(f.Failures[i], text) {
			t.Errorf("failure %d is\n%s\nwant in it\n%s", i+1, f.Failures[i], text)
		}
	}
}
