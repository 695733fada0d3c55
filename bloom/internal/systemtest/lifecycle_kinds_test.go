package systemtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Delete, Rename, Expire and Persist of each kind leave filters of other kinds,
// and of another Config, alone.
func TestOrdersOfOtherKinds(t *testing.T) {
	const key = "k"
	type kind interface {
		Create(context.Context) (bool, error)
		Delete(context.Context) (bool, error)
		Rename(context.Context, string) error
	}
	window := func(span time.Duration, panes int, idle bool) func(*upstash.Client) (kind, error) {
		return func(c *upstash.Client) (kind, error) {
			return bloom.NewWindow(c, key, bloom.WindowConfig{
				Capacity: 100, FPRate: 0.01 * float64(panes+1), Span: span, Panes: panes, ExpireIdle: idle,
			})
		}
	}
	kinds := []struct {
		name string
		open func(*upstash.Client) (kind, error)
	}{
		{"Filter", func(c *upstash.Client) (kind, error) {
			return bloom.New(c, key, bloom.Config{Capacity: 100, FPRate: 0.01})
		}},
		{"Cuckoo", func(c *upstash.Client) (kind, error) {
			return bloom.NewCuckoo(c, key, bloom.CuckooConfig{Capacity: 100, FPRate: 0.01})
		}},
		{"Scalable", func(c *upstash.Client) (kind, error) {
			return bloom.NewScalable(c, key, bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01})
		}},
		{"Window", window(time.Hour, 1, false)},
		{"Window of another Span", window(2*time.Hour, 1, false)},
		{"Window of other Panes", window(2*time.Hour+4*time.Second, 2, false)},
		{"Window that expires", window(time.Hour, 1, true)},
	}
	s := upstashtest.NewServer(t)
	for _, there := range kinds {
		for _, ours := range kinds {
			if ours.name == there.name {
				continue
			}
			orders := map[string]func(kind) error{
				"Delete": func(k kind) error { _, err := k.Delete(t.Context()); return err },
				"Rename": func(k kind) error { return k.Rename(t.Context(), "elsewhere") },
				"Expire": func(k kind) error {
					if e, ok := k.(interface {
						Expire(context.Context, time.Duration) (bool, error)
					}); ok {
						_, err := e.Expire(t.Context(), time.Hour)
						return err
					}
					return new(bloom.MismatchError) // this kind has none
				},
				"Persist": func(k kind) error {
					if p, ok := k.(interface {
						Persist(context.Context) (bool, error)
					}); ok {
						_, err := p.Persist(t.Context())
						return err
					}
					return new(bloom.MismatchError)
				},
			}
			for name, order := range orders {
				s.FlushAll()
				theirs, err := there.open(s.Client())
				if err != nil {
					t.Fatal(err)
				}
				if made, err := theirs.Create(t.Context()); !made || err != nil {
					t.Fatalf("Create of a %s = %v, %v", there.name, made, err)
				}
				before, ttl := stringAt(t, s, key)
				mine, err := ours.open(s.Client())
				if err != nil {
					t.Fatal(err)
				}
				var other *bloom.MismatchError
				if err := order(mine); !errors.As(err, &other) {
					t.Errorf("%s of a %s at the key of a %s: %v, want a MismatchError",
						name, ours.name, there.name, err)
				}
				if after, left := stringAt(t, s, key); after != before || (left < 0) != (ttl < 0) {
					t.Errorf("%s of a %s changed a %s", name, ours.name, there.name)
				}
			}
		}
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
