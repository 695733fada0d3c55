package bloom_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A handle of another size is told which type is at the key, what differs, and
// how that is opened.
func TestMismatchOfSizes(t *testing.T) {
	type lookUp interface {
		Create(ctx context.Context) (bool, error)
		Exists(ctx context.Context, item string) (bool, error)
	}
	for name, c := range map[string]struct {
		of   func(c *upstash.Client, capacity uint64) (lookUp, error)
		open func(ctx context.Context, c *upstash.Client) error
		says []string
	}{
		"Filter": {
			func(c *upstash.Client, capacity uint64) (lookUp, error) {
				return bloom.New(c, key, bloom.Config{Capacity: capacity, FPRate: 0.01})
			},
			func(ctx context.Context, c *upstash.Client) error { _, err := bloom.Open(ctx, c, key); return err },
			[]string{
				"a plain Filter of another size is at this key", "Capacity or FPRate differs",
				"use the Config it was made with, read it with Open,",
			},
		},
		"Window": {
			func(c *upstash.Client, capacity uint64) (lookUp, error) {
				return bloom.NewWindow(c, key, bloom.WindowConfig{Capacity: capacity, FPRate: 0.01, Span: time.Hour})
			},
			func(ctx context.Context, c *upstash.Client) error {
				_, err := bloom.OpenWindow(ctx, c, key)
				return err
			},
			[]string{
				"a Window of another size is at this key", "Capacity, FPRate or Panes differs",
				"use the WindowConfig it was made with, read it with OpenWindow,",
			},
		},
		"Scalable": {
			func(c *upstash.Client, capacity uint64) (lookUp, error) {
				return bloom.NewScalable(c, key, bloom.ScalableConfig{Capacity: capacity, FPRate: 0.01})
			},
			func(ctx context.Context, c *upstash.Client) error {
				_, err := bloom.OpenScalable(ctx, c, key)
				return err
			},
			[]string{
				"a Scalable of another size is at this key", "Capacity or FPRate differs",
				"use the ScalableConfig it was made with, read it with OpenScalable,",
			},
		},
		"Cuckoo": {
			func(c *upstash.Client, capacity uint64) (lookUp, error) {
				return bloom.NewCuckoo(c, key, bloom.CuckooConfig{Capacity: capacity, FPRate: 0.01})
			},
			func(ctx context.Context, c *upstash.Client) error {
				_, err := bloom.OpenCuckoo(ctx, c, key)
				return err
			},
			[]string{
				"a Cuckoo of another size is at this key", "Capacity or FPRate differs",
				"use the CuckooConfig it was made with, read it with OpenCuckoo,",
			},
		},
		"Sharded": {
			func(c *upstash.Client, capacity uint64) (lookUp, error) {
				return bloom.NewSharded([]*upstash.Client{c}, key,
					bloom.ShardedConfig{Capacity: capacity, FPRate: 0.01, Shards: 2})
			},
			func(ctx context.Context, c *upstash.Client) error {
				_, err := bloom.OpenSharded(ctx, []*upstash.Client{c}, key)
				return err
			},
			[]string{
				"a shard of a Sharded of another size is at this key", "Capacity, FPRate or Shards differs",
				"use the ShardedConfig it was made with, read it with OpenSharded,",
			},
		},
	} {
		client := upstashtest.NewServer(t).Client()
		made, err := c.of(client, 5000)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := made.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		other, err := c.of(client, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		_, err = other.Exists(t.Context(), "a")
		if m := (*bloom.MismatchError)(nil); !errors.As(err, &m) {
			t.Errorf("%s: %v, want a MismatchError", name, err)
			continue
		}
		for _, text := range c.says {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q", name, err, text)
			}
		}
		if err := c.open(t.Context(), client); err != nil {
			t.Errorf("%s: the function that the error names: %v", name, err)
		}
	}
}
