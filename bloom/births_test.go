package bloom_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A latecomer delays the first attempt at a command that may create a filter. Its
// retry makes the filter. That goes away, and then the first attempt arrives.
type latecomer struct {
	s    *upstashtest.Server
	next *httptransport.Transport
	held *upstash.Request
	left int // requests until it arrives; never if it is 0
}

func newLatecomer(t *testing.T) (*latecomer, *upstash.Client) {
	l := &latecomer{s: upstashtest.NewServer(t), next: httptransport.New(nil)}
	t.Cleanup(func() { _ = l.next.Close() })
	return l, impatient(l.s, upstash.WithTransport(l), upstash.WithTimeout(0))
}

func (l *latecomer) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	creates := strings.Contains(string(req.Body), `"INCRBY"`) || strings.Contains(string(req.Body), `'EXISTS'`)
	if l.held == nil && creates {
		l.held = &upstash.Request{
			URL: req.URL, Header: slices.Clone(req.Header), Body: slices.Clone(req.Body), MaxResponse: req.MaxResponse,
		}
		return errors.New("no answer yet")
	}
	err := l.next.RoundTrip(ctx, req, resp)
	if l.left > 0 {
		if l.left--; l.left == 0 {
			l.arrive()
		}
	}
	return err
}

// arrive removes all filters, and has the first attempt run.
func (l *latecomer) arrive() {
	l.s.FlushAll()
	if err := l.next.RoundTrip(context.Background(), l.held, new(upstash.Response)); err != nil {
		panic(err)
	}
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
