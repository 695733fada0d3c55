package systemtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Delete, Rename, Expire and Persist of each kind leave filters of other kinds,
// and of another Config, alone.
func TestOrdersOfOtherKinds(t *testing.T) {
	s := upstashtest.NewServer(t)
	for _, there := range orderedKinds() {
		for _, ours := range orderedKinds() {
			if ours.name == there.name {
				continue
			}
			for name, order := range ordersOf(t.Context()) {
				s.FlushAll()
				theirs := there.open(t, s)
				if made, err := theirs.Create(t.Context()); !made || err != nil {
					t.Fatalf("Create of a %s = %v, %v", there.name, made, err)
				}
				before, ttl := stringAt(t, s, bloomtest.Key)
				var other *bloom.MismatchError
				if err := order(ours.open(t, s)); !errors.As(err, &other) {
					t.Errorf("%s of a %s at the key of a %s: %v, want a MismatchError",
						name, ours.name, there.name, err)
				}
				if after, left := stringAt(t, s, bloomtest.Key); after != before || (left < 0) != (ttl < 0) {
					t.Errorf("%s of a %s changed a %s", name, ours.name, there.name)
				}
			}
		}
	}
}

// An orderedKind is a kind, or one of its Configs. make makes a handle of it.
type orderedKind struct {
	name string
	make func(c *upstash.Client, key string) (ordered, error)
}

// ordered has the orders of all kinds. Some have Expire and Persist too.
type ordered interface {
	Create(context.Context) (bool, error)
	Delete(context.Context) (bool, error)
	Rename(context.Context, string) error
}

func (k orderedKind) open(t *testing.T, s *upstashtest.Server) ordered {
	t.Helper()
	handle, err := k.make(s.Client(), bloomtest.Key)
	if err != nil {
		t.Fatal(err)
	}
	return handle
}

func orderedKinds() []orderedKind {
	window := func(span time.Duration, panes int, idle bool) func(*upstash.Client, string) (ordered, error) {
		return func(c *upstash.Client, key string) (ordered, error) {
			return bloom.NewWindow(c, key, bloom.WindowConfig{
				Capacity: 100, FPRate: 0.01 * float64(panes+1), Span: span, Panes: panes, ExpireIdle: idle,
			})
		}
	}
	return []orderedKind{
		{"Filter", func(c *upstash.Client, key string) (ordered, error) {
			return bloom.New(c, key, bloom.Config{Capacity: 100, FPRate: 0.01})
		}},
		{"Cuckoo", func(c *upstash.Client, key string) (ordered, error) {
			return bloom.NewCuckoo(c, key, bloom.CuckooConfig{Capacity: 100, FPRate: 0.01})
		}},
		{"Scalable", func(c *upstash.Client, key string) (ordered, error) {
			return bloom.NewScalable(c, key, bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01})
		}},
		{"Window", window(time.Hour, 1, false)},
		{"Window of another Span", window(2*time.Hour, 1, false)},
		{"Window of other Panes", window(2*time.Hour+5*time.Second, 2, false)},
		{"Window that expires", window(time.Hour, 1, true)},
	}
}

// ordersOf returns the orders. For a kind without one it returns the error of a
// refusal.
func ordersOf(ctx context.Context) map[string]func(ordered) error {
	return map[string]func(ordered) error{
		"Delete": func(k ordered) error { _, err := k.Delete(ctx); return err },
		"Rename": func(k ordered) error { return k.Rename(ctx, "elsewhere") },
		"Expire": func(k ordered) error {
			if e, ok := k.(interface {
				Expire(context.Context, time.Duration) (bool, error)
			}); ok {
				_, err := e.Expire(ctx, time.Hour)
				return err
			}
			return new(bloom.MismatchError)
		},
		"Persist": func(k ordered) error {
			if p, ok := k.(interface {
				Persist(context.Context) (bool, error)
			}); ok {
				_, err := p.Persist(ctx)
				return err
			}
			return new(bloom.MismatchError)
		},
	}
}

// stringAt returns what a key holds, and its PTTL.
func stringAt(t *testing.T, s *upstashtest.Server, key string) (text string, ttl int64) {
	t.Helper()
	reply, err := s.Exec("GET", key)
	if err != nil {
		t.Fatal(err)
	}
	text, _ = reply.(string)
	left, err := s.Exec("PTTL", key)
	if err != nil {
		t.Fatal(err)
	}
	ttl, _ = left.(int64)
	return text, ttl
}
