package bloom_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A BatchError covers all items. Those answered by the copy are done.
func TestMirrorBatchError(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, once(s), roomy())
	m, _ := mirror(t, f, bloom.MirrorConfig{})
	if _, err := m.AddAll(t.Context(), []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	s.Inject(upstashtest.Drop(upstashtest.BeforeExec))
	got, err := m.ExistsAll(t.Context(), []string{"x", "a", "y", "b"})
	var batch *bloom.BatchError
	if !errors.As(err, &batch) || len(got) != 4 {
		t.Fatalf("ExistsAll = %v, %v, want 4 answers and a BatchError", got, err)
	}
	done, not := bloom.ItemDone, bloom.ItemNotDone
	for i, want := range []bloom.ItemState{not, done, not, done} {
		if batch.Items[i] != want || got[i] != (want == done) {
			t.Errorf("item %d: %v, %v, want %v", i, got[i], batch.Items[i], want)
		}
	}
}

func TestNewMirrorRefuses(t *testing.T) {
	s := upstashtest.NewServer(t)
	big := bloom.Config{Capacity: 100_000_000, FPRate: 0.01}
	bare := bloom.Config{Bits: 1000, Hashes: 7, Scheme: bloom.SchemeXXH3, Layout: bloom.LayoutBare}
	for name, c := range map[string]struct {
		cfg    bloom.Config
		mirror bloom.MirrorConfig
		want   []string
	}{
		"size":   {big, bloom.MirrorConfig{}, []string{"MirrorConfig.MaxBytes", "64.0 MiB", "128.1 MiB"}},
		"a byte": {roomy(), bloom.MirrorConfig{MaxBytes: 131099}, []string{"131099", "131100"}},
		"bare":   {bare, bloom.MirrorConfig{}, []string{"Config.Layout", "bare"}},
		"trust":  {roomy(), bloom.MirrorConfig{MaxTrust: -1}, []string{"MirrorConfig.MaxTrust", "-1ns"}},
		"stale":  {roomy(), bloom.MirrorConfig{MaxStale: -1}, []string{"MirrorConfig.MaxStale", "-1ns"}},
		"copy": {
			roomy(),
			bloom.MirrorConfig{MaxStale: time.Minute, MaxCopy: time.Second},
			[]string{"MirrorConfig.MaxCopy", "1s", "1m0s"},
		},
		"error": {roomy(), bloom.MirrorConfig{StaleIfError: -1}, []string{"MirrorConfig.StaleIfError", "-1ns"}},
		"bytes": {roomy(), bloom.MirrorConfig{MaxBytes: -1}, []string{"MirrorConfig.MaxBytes", "-1"}},
	} {
		_, err := bloom.NewMirror(handle(t, s.Client(), c.cfg), c.mirror)
		var cerr *bloom.ConfigError
		if !errors.As(err, &cerr) {
			t.Errorf("%s: %v, want a ConfigError", name, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", name, err, part)
			}
		}
	}
	reader := handle(t, s.ReadOnlyClient(), roomy())
	if _, err := bloom.NewMirror(reader, bloom.MirrorConfig{}); !errors.Is(err, upstash.ErrReadOnly) {
		t.Errorf("a read-only client: %v", err)
	}
	if _, err := bloom.NewMirror(nil, bloom.MirrorConfig{}); err == nil {
		t.Error("a nil Filter was mirrored")
	}
	f := handle(t, s.Client(), roomy())
	if _, err := bloom.NewMirror(f, bloom.MirrorConfig{MaxBytes: 131100}); err != nil {
		t.Error(err)
	}
}

func TestMirrorHidesKeyAndSeed(t *testing.T) {
	s := upstashtest.NewServer(t)
	cfg := roomy()
	cfg.Seed = 123456789
	m, _ := mirror(t, handle(t, s.Client(), cfg), bloom.MirrorConfig{})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		text := fmt.Sprintf(verb, m)
		if strings.Contains(text, "123456789") || strings.Contains(text, key) ||
			!strings.Contains(text, "bits") {
			t.Errorf("%s shows %q", verb, text)
		}
	}
}
