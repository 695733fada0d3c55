package systemtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

// A secret seed appears in no text for printing, logging or sending.
func TestSeedIsNotShown(t *testing.T) {
	const seed = 7777777777
	cfg := bloom.Config{Capacity: 1000, FPRate: 0.01, Seed: seed}
	geo, err := cfg.Geometry()
	if err != nil {
		t.Fatal(err)
	}
	window := bloom.WindowConfig{Capacity: 1000, FPRate: 0.01, Span: time.Hour, Seed: seed}
	scalable := bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01, Seed: seed}
	cuckoo := bloom.CuckooConfig{Capacity: 1000, FPRate: 0.01, Seed: seed}
	sharded := bloom.ShardedConfig{Capacity: 1000, FPRate: 0.01, Shards: 4, Seed: seed}
	for _, config := range []fmt.Stringer{cfg, window, scalable, cuckoo, sharded} {
		if text := config.String(); !strings.Contains(text, "Capacity: 1000") || !strings.Contains(text, "Seed: (set)") {
			t.Errorf("%s does not say what is set", text)
		}
	}
	for _, v := range []any{
		cfg, &cfg, geo, &geo, window, &window, scalable, &scalable, cuckoo, &cuckoo, sharded, &sharded,
		bloom.Stats{Geometry: geo},
		&bloom.MismatchError{Want: geo, Got: geo},
	} {
		var out bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		slog.New(slog.NewJSONHandler(&out, nil)).Info("", "v", v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("", "v", v)
		if err := json.NewEncoder(&out).Encode(v); err != nil {
			t.Error(err)
		}
		if strings.Contains(out.String(), "7777777777") || strings.Contains(out.String(), "1cf977871") {
			t.Errorf("%T shows its seed:\n%s", v, out.String())
		}
	}
}
