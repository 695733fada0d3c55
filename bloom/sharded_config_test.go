package bloom_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestShardedConfig(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := s.Client()
	for name, tt := range map[string]struct {
		change  func(*bloom.ShardedConfig)
		clients []*upstash.Client
		field   string
	}{
		"no shards":       {func(c *bloom.ShardedConfig) { c.Shards = 0 }, []*upstash.Client{c}, "Shards"},
		"too many shards": {func(c *bloom.ShardedConfig) { c.Shards = 257 }, []*upstash.Client{c}, "Shards"},
		"idle client":     {func(c *bloom.ShardedConfig) { c.Shards = 1 }, []*upstash.Client{c, s.Client()}, "Shards"},
		"no capacity":     {func(c *bloom.ShardedConfig) { c.Capacity = 0 }, []*upstash.Client{c}, "Capacity"},
		"too large":       {func(c *bloom.ShardedConfig) { c.Capacity = 1 << 40 }, []*upstash.Client{c}, "Capacity"},
		"too low a rate for it": {func(c *bloom.ShardedConfig) {
			c.Capacity, c.FPRate = 400_000_000, 1e-9
		}, []*upstash.Client{c}, "Capacity"},
		"the largest": {func(c *bloom.ShardedConfig) { c.Capacity = 1<<64 - 1 }, []*upstash.Client{c}, "Capacity"},
		"no rate":     {func(c *bloom.ShardedConfig) { c.FPRate = 0 }, []*upstash.Client{c}, "FPRate"},
		"low rate":    {func(c *bloom.ShardedConfig) { c.FPRate = 1e-10 }, []*upstash.Client{c}, "FPRate"},
		"no client":   {func(*bloom.ShardedConfig) {}, nil, ""},
		"nil client":  {func(*bloom.ShardedConfig) {}, []*upstash.Client{c, nil}, ""},
	} {
		cfg := shards(4)
		tt.change(&cfg)
		_, err := bloom.NewSharded(tt.clients, key, cfg)
		var config *bloom.ConfigError
		if errors.As(err, &config) != (tt.field != "") || err == nil ||
			tt.field != "" && (config.Field != tt.field || !strings.Contains(err.Error(), "ShardedConfig."+tt.field)) {
			t.Errorf("%s: %v, want a ConfigError of %q", name, err, tt.field)
		}
	}
	// The mean plus three times its square root, rounded up.
	for _, tt := range []struct {
		capacity uint64
		shards   int
		want     uint64
	}{{1, 1, 4}, {1000, 1, 1096}, {4000, 4, 1096}, {3999, 4, 1096}, {4001, 4, 1001 + 96}, {1e9, 16, 62_500_000 + 3*7906}} {
		cfg := bloom.ShardedConfig{Capacity: tt.capacity, FPRate: 0.01, Shards: tt.shards}
		got, err := cfg.Geometry()
		want, _ := bloom.Config{Capacity: tt.want, FPRate: 0.01}.Geometry()
		if err != nil || got != want {
			t.Errorf("%d items in %d shards: %v, %v, want %v", tt.capacity, tt.shards, got, err, want)
		}
	}
}
