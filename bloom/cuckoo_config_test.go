package bloom_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestCuckooConfigErrors(t *testing.T) {
	c := upstashtest.NewServer(t).Client()
	for _, test := range []struct {
		cfg   bloom.CuckooConfig
		field string
	}{
		{bloom.CuckooConfig{FPRate: 0.01}, "Capacity"},
		{bloom.CuckooConfig{Capacity: 1 << 40, FPRate: 0.01}, "Capacity"},
		{bloom.CuckooConfig{Capacity: math.MaxUint64, FPRate: 0.01}, "Capacity"},
		{bloom.CuckooConfig{Capacity: 10}, "FPRate"},
		{bloom.CuckooConfig{Capacity: 10, FPRate: 1}, "FPRate"},
		{bloom.CuckooConfig{Capacity: 10, FPRate: math.NaN()}, "FPRate"},
		{bloom.CuckooConfig{Capacity: 10, FPRate: 5e-8}, "FPRate"},
		{bloom.CuckooConfig{Capacity: 10, FPRate: 0.01, BatchBytes: -1}, "BatchBytes"},
		{bloom.CuckooConfig{Capacity: 10, FPRate: 0.01, BatchParallel: -1}, "BatchParallel"},
		{bloom.CuckooConfig{Capacity: 10, FPRate: 0.01, Reads: 9}, "Reads"},
	} {
		_, err := bloom.NewCuckoo(c, key, test.cfg)
		var config *bloom.ConfigError
		if !errors.As(err, &config) || config.Field != test.field ||
			!strings.HasPrefix(err.Error(), "bloom: CuckooConfig."+test.field+" ") {
			t.Errorf("%v: %v, want a ConfigError of %s", test.cfg, err, test.field)
		}
	}
	if _, err := bloom.NewCuckoo(nil, key, table1000()); err == nil {
		t.Error("a nil client is accepted")
	}
	if _, err := bloom.NewCuckoo(c, "", table1000()); err == nil {
		t.Error("an empty key is accepted")
	}
	largest := bloom.CuckooConfig{Capacity: 81_037_099 * 5 * 95 / 100, FPRate: 0.01}
	if g, err := largest.Geometry(); err != nil || g.Bits > 1<<32-192 || g.Bits < 1<<32-1000 {
		t.Errorf("the largest: %v, %v, want 2^32-1000 to 2^32-192 bits", g, err)
	}
}

func TestCuckooHidesSecrets(t *testing.T) {
	cfg := table1000()
	cfg.Seed = 987654321
	f := cuckoo(t, upstashtest.NewServer(t).Client(), cfg)
	for _, verb := range []string{"%v", "%+v", "%#v", "%d", "%s"} {
		for _, v := range []any{f, cfg, f.Geometry()} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, "987654321") || strings.Contains(text, key) {
				t.Errorf("%s shows %q", verb, text)
			}
		}
	}
}
