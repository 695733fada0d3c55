package bloom_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestScalableConfig(t *testing.T) {
	c := upstashtest.NewServer(t).Client()
	for field, cfg := range map[string]bloom.ScalableConfig{
		"Capacity":      {FPRate: 0.01},
		"FPRate":        {Capacity: 1000, FPRate: 4.9e-9},
		"FPRate ":       {Capacity: 1000, FPRate: 1},
		"MaxBytes":      {Capacity: 1000, FPRate: 0.01, MaxBytes: 1000},
		"BatchBytes":    {Capacity: 1000, FPRate: 0.01, BatchBytes: -1},
		"BatchParallel": {Capacity: 1000, FPRate: 0.01, BatchParallel: -1},
		"TTL":           {Capacity: 1000, FPRate: 0.01, TTL: 1},
		"Reads":         {Capacity: 1000, FPRate: 0.01, Reads: 9},
		"Capacity ":     {Capacity: 1 << 30, FPRate: 0.01},
	} {
		_, err := bloom.NewScalable(c, key, cfg)
		var e *bloom.ConfigError
		if !errors.As(err, &e) || e.Field != strings.TrimSpace(field) ||
			!strings.HasPrefix(err.Error(), "bloom: ScalableConfig."+e.Field) {
			t.Errorf("%v: %v, want a ConfigError of %s", cfg, err, field)
		}
	}
	few, err := bloom.ScalableConfig{Capacity: 1, FPRate: 5e-9, Seed: 7}.Geometry()
	noError(t, err)
	thousand, err := bloom.Config{Capacity: 1000, FPRate: 1e-9, Seed: 7}.Geometry()
	if err != nil || few != thousand {
		t.Errorf("%v, want %v, %v", few, thousand, err)
	}
	cfg := bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01, Seed: 12345678, MaxBytes: 1 << 20}
	f := scalable(t, c, cfg)
	for _, text := range []string{fmt.Sprintf("%v %+v %#v", cfg, cfg, cfg), fmt.Sprintf("%v %+v %#v", f, f, f)} {
		if strings.Contains(text, "12345678") || strings.Contains(text, key) || !strings.Contains(text, "bloom.Scalable") {
			t.Errorf("the text shows seed or key, or not its type: %s", text)
		}
	}
}
