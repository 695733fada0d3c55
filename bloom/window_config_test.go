package bloom_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

func TestWindowConfigRefuses(t *testing.T) {
	good := bloom.WindowConfig{Capacity: 1000, FPRate: 0.01, Span: time.Hour}
	for field, changes := range map[string][]func(*bloom.WindowConfig){
		"Capacity": {
			func(c *bloom.WindowConfig) { c.Capacity = 0 },
			func(c *bloom.WindowConfig) { c.Capacity = 200_000_000 },
			func(c *bloom.WindowConfig) { c.Capacity = math.MaxUint64 },
		},
		"FPRate": {
			func(c *bloom.WindowConfig) { c.FPRate = 0 },
			func(c *bloom.WindowConfig) { c.FPRate = 1 },
			func(c *bloom.WindowConfig) { c.FPRate = math.NaN() },
			func(c *bloom.WindowConfig) { c.FPRate = 1.9e-9 },
		},
		"Span": {
			func(c *bloom.WindowConfig) { c.Span = 0 },
			func(c *bloom.WindowConfig) { c.Span = 10*time.Second - 1 },
			func(c *bloom.WindowConfig) { c.Span, c.Panes = 39*time.Second, 4 },
			func(c *bloom.WindowConfig) { c.Span = 98 * 24 * time.Hour },
			func(c *bloom.WindowConfig) { c.Span = math.MaxInt64 },
		},
		"Panes": {
			func(c *bloom.WindowConfig) { c.Panes = -1 },
			func(c *bloom.WindowConfig) { c.Panes = 5 },
		},
		"MustExist":  {func(c *bloom.WindowConfig) { c.MustExist, c.ExpireIdle = true, true }},
		"BatchBytes": {func(c *bloom.WindowConfig) { c.BatchBytes = -1 }},
	} {
		for i, change := range changes {
			cfg := good
			change(&cfg)
			_, err := cfg.Geometry()
			var e *bloom.ConfigError
			if !errors.As(err, &e) || e.Field != field {
				t.Errorf("%s, %d: %v, want a ConfigError of this field", field, i, err)
			}
		}
	}
	for _, cfg := range []bloom.WindowConfig{
		good,
		{Capacity: 1, FPRate: 0.5, Span: 10 * time.Second},
		{Capacity: 1000, FPRate: 5e-9, Span: 388 * 24 * time.Hour, Panes: 4},
		{Capacity: 50_000_000, FPRate: 0.01, Span: 97 * 24 * time.Hour},
	} {
		if _, err := cfg.Geometry(); err != nil {
			t.Errorf("%v: %v", cfg, err)
		}
	}
}
