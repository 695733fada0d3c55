package bloom_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A latecomer delays the first attempt at a command that may create a filter. Its
// retry makes the filter. That goes away, and then the first attempt arrives.
type latecomer struct {
	t    *testing.T
	s    *upstashtest.Server
	kept *bloomtest.Held
	left int // requests until it arrives; never if it is 0
}

func newLatecomer(t *testing.T) (*latecomer, *upstash.Client) {
	w := bloomtest.NewWire(t)
	l := &latecomer{t: t, s: upstashtest.NewServer(t), kept: w.Keep(`"INCRBY"`, `'EXISTS'`)}
	return l, impatient(l.s, upstash.WithTransport(w), upstash.WithTimeout(0), upstash.WithObserver(
		func(_ context.Context, e upstash.Event) {
			if l.left > 0 && !errors.Is(e.Err, bloomtest.ErrCut) {
				if l.left--; l.left == 0 {
					l.arrive()
				}
			}
		}))
}

// arrive removes all filters, and has the first attempt run.
func (l *latecomer) arrive() {
	l.s.FlushAll()
	l.kept.Arrive(l.t)
}

// A late attempt makes another filter than its retry did. Whoever compares the
// answers to several requests sees that.
func TestLateAttemptMakesAnotherFilter(t *testing.T) {
	items := numbered("item", 2500)
	addAll := func(f bloomtest.Adder) func(context.Context) error {
		return func(ctx context.Context) error { return errorOf(f.AddAll(ctx, items)) }
	}
	for _, tt := range []struct {
		name string
		call func(t *testing.T, c *upstash.Client) func(ctx context.Context) error
	}{
		{"Filter.AddAll", func(t *testing.T, c *upstash.Client) func(context.Context) error {
			return addAll(batched(handle(t, c, middling()), 20_000, 1))
		}},
		{"Filter.AddSeq", func(t *testing.T, c *upstash.Client) func(context.Context) error {
			f := batched(handle(t, c, middling()), 20_000, 1)
			return func(ctx context.Context) error {
				return errorOf(f.AddSeq(ctx, slices.Values(items), bloomtest.Parts(20_000, 1)))
			}
		}},
		{"Window.AddAll", func(t *testing.T, c *upstash.Client) func(context.Context) error {
			return addAll(batched(window(t, c, bloom.WindowConfig{Capacity: 5000, FPRate: 0.01, Span: time.Hour}), 20_000, 1))
		}},
		{"Scalable.AddAll", func(t *testing.T, c *upstash.Client) func(context.Context) error {
			return addAll(batched(scalable(t, c, bloom.ScalableConfig{Capacity: 5000, FPRate: 0.01}), 0, 1))
		}},
		{"Sharded.AddAll", func(t *testing.T, c *upstash.Client) func(context.Context) error {
			f := batched(sharded(t, shards(1), c), 20_000, 1)
			create(t, f, true)
			return addAll(f)
		}},
		{"Snapshot", func(t *testing.T, c *upstash.Client) func(context.Context) error {
			f := handle(t, c, middling())
			add(t, f, "a", true)
			return func(ctx context.Context) error { return errorOf(f.Snapshot(ctx, inParts())) }
		}},
		{"TakeBackup", func(t *testing.T, c *upstash.Client) func(context.Context) error {
			add(t, handle(t, c, middling()), "a", true)
			return func(ctx context.Context) error { return errorOf(bloom.TakeBackup(ctx, c, key, inParts())) }
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, c := newLatecomer(t)
			call := tt.call(t, c)
			l.left = 2
			if err := call(t.Context()); !errors.Is(err, bloom.ErrRecreated) {
				t.Errorf("a call of two filters: %v, want ErrRecreated", err)
			}
		})
	}
}

// A Mirror of another process drops its copy, and sends an item that the late
// filter does not hold.
func TestMirrorNoticesALateAttempt(t *testing.T) {
	l, c := newLatecomer(t)
	add(t, handle(t, c, middling()), "a", true)
	f := handle(t, l.s.Client(), middling())
	add(t, f, "b", true)
	m, _ := mirror(t, f, bloom.MirrorConfig{})
	wantLookUp(t, l.s, m, "b", present, inOneRequest)
	l.arrive()
	wantLookUp(t, l.s, m, "c", absent, inOneRequest)
	if added, err := m.Add(t.Context(), "b"); !added || err != nil {
		t.Errorf("Add = %v, %v; want true, the filter is another", added, err)
	}
}

// Create asks for its own birth number, whichever attempt made the filter.
func TestCreatedByALateAttempt(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			l, c := newLatecomer(t)
			f := k.new(t, c, 1000)
			create(t, f, true)
			create(t, f, false)
			l.arrive()
			create(t, f, k.name == "Sharded") // its other shard did not come
		})
	}
}
