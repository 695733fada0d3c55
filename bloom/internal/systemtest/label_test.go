package systemtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// An observer learns the operation of each request, after the caller's own
// label.
func TestObserverLearnsTheOperation(t *testing.T) {
	s := upstashtest.NewServer(t)
	var labels []string
	c := s.Client(upstash.WithObserver(func(_ context.Context, e upstash.Event) {
		labels = append(labels, e.Label)
	}))
	f := bloomtest.Handle(t, c, bloomtest.Small())
	ctx := upstash.WithLabel(t.Context(), "crawler")
	bloomtest.Add(t, f, "a", true)
	for name, call := range map[string]func() error{
		"bloom.Exists":    func() error { _, err := f.Exists(ctx, "a"); return err },
		"bloom.AddAll":    func() error { _, err := f.AddAll(ctx, []string{"a"}); return err },
		"bloom.ExistsAll": func() error { _, err := f.ExistsAll(ctx, []string{"a"}); return err },
		"bloom.Stats":     func() error { _, err := f.Stats(ctx); return err },
		"bloom.Create":    func() error { _, err := f.Create(ctx); return err },
		"bloom.ExistsIn":  func() error { _, err := bloom.ExistsIn(ctx, "a", f); return err },
		"bloom.AddIn":     func() error { _, err := bloom.AddIn(ctx, "a", f); return err },
		"bloom.AddSeq": func() error {
			_, err := f.AddSeq(ctx, slices.Values([]string{"a"}))
			return err
		},
		"bloom.Cardinality": func() error { _, err := f.Cardinality(ctx); return err },
		"bloom.Expire":      func() error { _, err := f.Expire(ctx, time.Hour); return err },
		"bloom.Persist":     func() error { _, err := f.Persist(ctx); return err },
	} {
		if err := call(); err != nil {
			t.Fatal(err)
		}
		if last := labels[len(labels)-1]; last != "crawler "+name {
			t.Errorf("%s has the label %q", name, last)
		}
	}
	if !slices.Contains(labels, "bloom.Add") {
		t.Errorf("Add without a label of the caller's: %q", labels[0])
	}
}
