package systemtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
)

// A secret seed appears in no text that a program may print, log or send.
func TestSeedIsNotShown(t *testing.T) {
	const seed = 7777777777
	cfg := bloom.Config{Capacity: 1000, FPRate: 0.01, Seed: seed}
	geo, err := cfg.Geometry()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{
		cfg, &cfg, geo, &geo,
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
