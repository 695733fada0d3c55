package bloom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// readers returns each call that only reads.
func readers(t *testing.T, c *upstash.Client) map[string]func(context.Context) error {
	f := handle(t, c, small())
	other, err := bloom.New(c, "another key", small())
	if err != nil {
		t.Fatal(err)
	}
	m, err := bloom.NewMirror(f, bloom.MirrorConfig{MaxStale: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	w := window(t, c, bloom.WindowConfig{Capacity: 100, FPRate: 0.01, Span: time.Hour})
	g := scalable(t, c, bloom.ScalableConfig{Capacity: 100, FPRate: 0.01})
	k := cuckoo(t, c, bloom.CuckooConfig{Capacity: 100, FPRate: 0.01})
	d := sharded(t, bloom.ShardedConfig{Capacity: 100, FPRate: 0.01, Shards: 2}, c)
	shards, items := []*upstash.Client{c}, []string{"a", "b"}
	return map[string]func(context.Context) error{
		"Filter.Exists":        func(ctx context.Context) error { _, err := f.Exists(ctx, "a"); return err },
		"Filter.ExistsAll":     func(ctx context.Context) error { _, err := f.ExistsAll(ctx, items); return err },
		"Filter.Cardinality":   func(ctx context.Context) error { _, err := f.Cardinality(ctx); return err },
		"Filter.Stats":         func(ctx context.Context) error { _, err := f.Stats(ctx); return err },
		"Filter.Snapshot":      func(ctx context.Context) error { _, err := f.Snapshot(ctx); return err },
		"Mirror.Exists":        func(ctx context.Context) error { _, err := m.Exists(ctx, "a"); return err },
		"Mirror.ExistsAll":     func(ctx context.Context) error { _, err := m.ExistsAll(ctx, items); return err },
		"Mirror.Refresh":       m.Refresh,
		"Window.Exists":        func(ctx context.Context) error { _, err := w.Exists(ctx, "a"); return err },
		"Window.ExistsAll":     func(ctx context.Context) error { _, err := w.ExistsAll(ctx, items); return err },
		"Window.Stats":         func(ctx context.Context) error { _, err := w.Stats(ctx); return err },
		"Scalable.Exists":      func(ctx context.Context) error { _, err := g.Exists(ctx, "a"); return err },
		"Scalable.ExistsAll":   func(ctx context.Context) error { _, err := g.ExistsAll(ctx, items); return err },
		"Scalable.Stats":       func(ctx context.Context) error { _, err := g.Stats(ctx); return err },
		"Scalable.Cardinality": func(ctx context.Context) error { _, err := g.Cardinality(ctx); return err },
		"Cuckoo.Exists":        func(ctx context.Context) error { _, err := k.Exists(ctx, "a"); return err },
		"Cuckoo.ExistsAll":     func(ctx context.Context) error { _, err := k.ExistsAll(ctx, items); return err },
		"Cuckoo.Count":         func(ctx context.Context) error { _, err := k.Count(ctx); return err },
		"Cuckoo.Stats":         func(ctx context.Context) error { _, err := k.Stats(ctx); return err },
		"Sharded.Exists":       func(ctx context.Context) error { _, err := d.Exists(ctx, "a"); return err },
		"Sharded.ExistsAll":    func(ctx context.Context) error { _, err := d.ExistsAll(ctx, items); return err },
		"Sharded.Stats":        func(ctx context.Context) error { _, err := d.Stats(ctx); return err },
		"Sharded.Cardinality":  func(ctx context.Context) error { _, err := d.Cardinality(ctx); return err },
		"Open":                 func(ctx context.Context) error { _, err := bloom.Open(ctx, c, key); return err },
		"OpenWindow":           func(ctx context.Context) error { _, err := bloom.OpenWindow(ctx, c, key); return err },
		"OpenScalable":         func(ctx context.Context) error { _, err := bloom.OpenScalable(ctx, c, key); return err },
		"OpenCuckoo":           func(ctx context.Context) error { _, err := bloom.OpenCuckoo(ctx, c, key); return err },
		"OpenSharded":          func(ctx context.Context) error { _, err := bloom.OpenSharded(ctx, shards, key); return err },
		"Inspect":              func(ctx context.Context) error { _, err := bloom.Inspect(ctx, c, key); return err },
		"EstimateIntersection": func(ctx context.Context) error {
			_, err := bloom.EstimateIntersection(ctx, f, other)
			return err
		},
		"ExistsIn": func(ctx context.Context) error {
			answers, err := bloom.ExistsIn(ctx, "a", f, f)
			if err != nil && !upstash.SafeToRetry(answers[0].Err) {
				t.Errorf("ExistsIn: the first answer's %v is not safe to retry", answers[0].Err)
			}
			return err
		},
		"InspectAll": func(ctx context.Context) error {
			found, err := bloom.InspectAll(ctx, c, []string{key})
			if err != nil {
				return err
			}
			return found[0].Err
		},
	}
}

// A call that only reads has changed nothing, whatever its error.
func TestReadsAreSafeToRetry(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := impatient(s)
	always := func(f upstashtest.Fault) {
		s.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault { return f })
	}
	list := func() {
		for _, key := range []string{key, key + ":0", key + ":1", "another key"} {
			do(t, s, "RPUSH", key, "an element")
		}
	}
	text := func() {
		for _, key := range []string{key, key + ":0", key + ":1", "another key"} {
			do(t, s, "SET", key, "a text that is long enough for a header and some cells")
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx context.Context
		set func()
	}{
		"no filter":       {t.Context(), func() {}},
		"another type":    {t.Context(), list},
		"other data":      {t.Context(), text},
		"a short answer":  {t.Context(), func() { always(upstashtest.ShortResult()) }},
		"a lost answer":   {t.Context(), func() { always(upstashtest.Drop(upstashtest.AfterExec)) }},
		"an ended call":   {ended, func() {}},
		"a cut answer":    {t.Context(), func() { always(upstashtest.CutBody(5)) }},
		"other words":     {t.Context(), func() { always(upstashtest.ErrorObject("ERR injected")) }},
		"no JSON, and ok": {t.Context(), func() { always(upstashtest.NotJSON(upstashtest.AfterExec)) }},
	} {
		s.FlushAll()
		tt.set()
		for call, read := range readers(t, c) {
			err := read(tt.ctx)
			var batch *bloom.BatchError
			switch {
			case err == nil:
				t.Errorf("%s, %s: no error", name, call)
			case !upstash.SafeToRetry(err):
				t.Errorf("%s, %s: %v is not safe to retry", name, call, err)
			case errors.As(err, &batch) && !batch.SafeToRetry():
				t.Errorf("%s, %s: the BatchError of %v is not safe to retry", name, call, err)
			}
		}
		s.InjectFunc(nil)
	}
}
