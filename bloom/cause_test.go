package bloom

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// If the caller's context ends with a cause, the calls of many requests say why,
// as those of one request do.
func TestContextCause(t *testing.T) {
	c := upstashtest.NewServer(t).Client()
	f, err := New(c, "f", Config{Capacity: 1000, FPRate: 0.01})
	noError(t, err)
	s, err := NewSharded([]*upstash.Client{c}, "s", ShardedConfig{Capacity: 1000, FPRate: 0.01, Shards: 2})
	noError(t, err)
	if _, err := f.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	reason := errors.New("the file broke off")
	type call = func(context.Context, iter.Seq[string]) error
	for _, n := range []int{1, 10_000} { // Load looks at its context now and then
		for name, call := range map[string]call{
			"Load": func(ctx context.Context, items iter.Seq[string]) error {
				_, err := f.Load(ctx, items)
				return err
			},
			"Sharded.Load": func(ctx context.Context, items iter.Seq[string]) error {
				_, err := s.Load(ctx, items)
				return err
			},
			"Snapshot": func(ctx context.Context, items iter.Seq[string]) error {
				items(func(string) bool { return false })
				_, err := f.Snapshot(ctx)
				return err
			},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			items := func(yield func(string) bool) {
				cancel(reason)
				for i := range n {
					if !yield(fmt.Sprint(i)) {
						return
					}
				}
			}
			err := call(ctx, items)
			if !errors.Is(err, reason) || !errors.Is(err, context.Canceled) {
				t.Fatalf("%s of %d items: %v, want Canceled because of %v", name, n, err, reason)
			}
			if name != "Snapshot" && !upstash.SafeToRetry(err) {
				t.Errorf("%s of %d items changed something: %v", name, n, err)
			}
			if !strings.HasPrefix(err.Error(), "bloom: ") && !strings.HasPrefix(err.Error(), "upstash: ") {
				t.Errorf("%s of %d items: %q does not say what was interrupted", name, n, err)
			}
		}
	}
}

// TestMirrorsContextCause: a caller waits for the refresh of another, or its own
// is under way, when its context ends.
func TestMirrorsContextCause(t *testing.T) {
	reason := errors.New("the handler is shut down")
	ctx, cancel := context.WithCancelCause(t.Context())
	waits := map[string]error{
		"own refresh": engine.EachSpan(ctx, "a span", 1, 0, 3, 1, func(ctx context.Context, _, _ int) error {
			cancel(reason)
			return context.Cause(ctx)
		}),
		"another's refresh": (&refreshRun{done: make(chan struct{})}).wait(ctx),
	}
	for name, err := range waits {
		if !errors.Is(err, reason) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want the cause and that the context was canceled", name, err)
		}
		if !strings.HasPrefix(err.Error(), "bloom: ") {
			t.Errorf("%s: %q does not say what was interrupted", name, err)
		}
	}
	if err := engine.EachSpan(t.Context(), "a span", 2, 0, 3, 1, func(_ context.Context, from, _ int) error {
		if from == 1 {
			return reason
		}
		return nil
	}); err != reason {
		t.Errorf("a span that fails: got %v, want its error alone", err)
	}
}
