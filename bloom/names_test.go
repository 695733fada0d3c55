package bloom_test

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json" // what users marshal our types with
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestNamesInLogs: fmt, encoding/json and both handlers of log/slog write the
// same name for each value in a Config, a Stats or an error.
func TestNamesInLogs(t *testing.T) {
	for want, v := range map[string]any{
		"blocked": bloom.SchemeBlocked, "fnv1a": bloom.SchemeFNV1a, "xxh3": bloom.SchemeXXH3,
		"cuckoo": bloom.SchemeCuckoo, "xxh3/8-bit": bloom.Scheme(3), "Scheme(9)": bloom.Scheme(9),
		"headed": bloom.LayoutHeaded, "bare": bloom.LayoutBare, "Layout(9)": bloom.Layout(9),
		"filter": bloom.KindFilter, "shard": bloom.KindShard, "layers": bloom.KindLayers,
		"window": bloom.KindWindow, "Kind(9)": bloom.Kind(9),
		"primary": bloom.ReadsPrimary, "nearest": bloom.ReadsNearest,
		"nearest first": bloom.ReadsNearestFirst, "Reads(9)": bloom.Reads(9),
		"not done": bloom.ItemNotDone, "done": bloom.ItemDone, "uncertain": bloom.ItemUncertain,
		"unknown": bloom.ItemUnknown, "ItemState(9)": bloom.ItemState(9),
	} {
		if got := fmt.Sprintf("%v", v); got != want {
			t.Errorf("fmt: %T %q, want %q", v, got, want)
		}
		quoted := `"` + want + `"`
		if got, err := json.Marshal(v); string(got) != quoted || err != nil {
			t.Errorf("encoding/json: %T %s, %v, want %s", v, got, err, quoted)
		}
		var lines bytes.Buffer
		slog.New(slog.NewJSONHandler(&lines, nil)).Info("", "v", v)
		if !strings.Contains(lines.String(), `"v":`+quoted) {
			t.Errorf("slog's JSON: %T %s, want %s", v, &lines, quoted)
		}
	}
	states, err := json.Marshal([]bloom.ItemState{bloom.ItemDone, bloom.ItemUnknown})
	if string(states) != `["done","unknown"]` || err != nil {
		t.Errorf("a slice of states: %s, %v, want its words", states, err)
	}
}

// TestStatsInJSON: what Inspect returns can be written and read again.
func TestStatsInJSON(t *testing.T) {
	c := upstashtest.NewServer(t).Client()
	w := window(t, c, bloom.WindowConfig{Capacity: 100, FPRate: 0.01, Span: time.Hour})
	noError(t, errorOf(w.Add(t.Context(), "a")))
	stats, err := bloom.Inspect(t.Context(), c, key)
	noError(t, err)
	text, err := json.Marshal(stats)
	if !strings.Contains(string(text), `"Kind":"window"`) ||
		!strings.Contains(string(text), `"Scheme":"blocked"`) || err != nil {
		t.Errorf("Inspect in JSON: %s, %v, want a window of scheme blocked", text, err)
	}
	var again bloom.Stats
	if err := json.Unmarshal(text, &again); err != nil || again != stats {
		t.Errorf("%s was read as %+v, %v, want %+v", text, again, err, stats)
	}
}

// TestReadNames reads each name as a file of settings may have it.
func TestReadNames(t *testing.T) {
	for _, tt := range []struct {
		to    encoding.TextUnmarshaler
		names []fmt.Stringer
		other string
	}{
		{new(bloom.Scheme), []fmt.Stringer{
			bloom.SchemeBlocked, bloom.SchemeXXH3, bloom.SchemeFNV1a, bloom.SchemeCuckoo,
		}, `bloom: bad argument: no Scheme is called "Blocked": use one of blocked, xxh3, fnv1a, cuckoo`},
		{new(bloom.Layout), []fmt.Stringer{bloom.LayoutHeaded, bloom.LayoutBare}, "use one of headed, bare"},
		{new(bloom.Kind), []fmt.Stringer{
			bloom.KindFilter, bloom.KindShard, bloom.KindLayers, bloom.KindWindow,
		}, "use one of filter, shard, layers, window"},
		{new(bloom.Reads), []fmt.Stringer{
			bloom.ReadsPrimary, bloom.ReadsNearest, bloom.ReadsNearestFirst,
		}, "use one of primary, nearest, nearest first"},
	} {
		for _, want := range tt.names {
			err := tt.to.UnmarshalText([]byte(want.String()))
			if got := fmt.Sprint(tt.to); got != want.String() || err != nil {
				t.Errorf("%T of %q is %s, %v", tt.to, want, got, err)
			}
		}
		err := tt.to.UnmarshalText([]byte("Blocked"))
		if !errors.Is(err, upstash.ErrArgument) || !strings.Contains(err.Error(), tt.other) {
			t.Errorf("%T of another text: %v, want ErrArgument: %s", tt.to, err, tt.other)
		}
		if got := fmt.Sprint(tt.to); got != tt.names[len(tt.names)-1].String() {
			t.Errorf("%T is %s after an error, want it as it was", tt.to, got)
		}
	}
}

// TestErrorsNameOnePackage: an error's text names a package once, at its
// beginning, however many errors it is made of. errors.Is finds each.
func TestErrorsNameOnePackage(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), once(s)
	f, elsewhere := handle(t, c, small()), handleAt(t, s.Client(), "b", small())
	mustExist := small()
	mustExist.MustExist = true
	for name, tt := range map[string]struct {
		reply string // of the server, instead of its own
		call  func(context.Context) error
		want  error
	}{
		"a short TTL": {"", func(ctx context.Context) error {
			_, err := f.Expire(ctx, time.Microsecond)
			return err
		}, upstash.ErrArgument},
		"a nil source": {"", func(ctx context.Context) error { return bloom.Union(ctx, f, nil) }, upstash.ErrArgument},
		"many sources": {"", func(ctx context.Context) error {
			return bloom.Union(ctx, f, slices.Repeat([]*bloom.Filter{f}, 1001)...)
		}, upstash.ErrArgument},
		"two clients": {"", func(ctx context.Context) error {
			_, err := bloom.ExistsIn(ctx, "a", f, elsewhere)
			return err
		}, upstash.ErrArgument},
		"no clients": {"", func(context.Context) error {
			_, err := bloom.NewSharded(nil, key, bloom.ShardedConfig{Capacity: 100, FPRate: 0.01, Shards: 2})
			return err
		}, upstash.ErrArgument},
		"a Mirror of a read-only client": {"", func(context.Context) error {
			_, err := bloom.NewMirror(handle(t, s.ReadOnlyClient(), small()), bloom.MirrorConfig{})
			return err
		}, upstash.ErrReadOnly},
		"no filter, in a batch": {"", func(ctx context.Context) error {
			_, err := handle(t, c, mustExist).AddAll(ctx, []string{"a", "b"})
			return err
		}, bloom.ErrNotFound},
		"no permission, in a batch": {"NOPERM no", func(ctx context.Context) error {
			_, err := f.AddAll(ctx, []string{"a", "b"})
			return err
		}, upstash.ErrNoPermission},
		"no permission, in one of several filters": {"NOPERM no", func(ctx context.Context) error {
			_, err := bloom.AddIn(ctx, "a", f)
			return err
		}, upstash.ErrNoPermission},
		"a record too large": {"ERR max single record size exceeded", func(ctx context.Context) error {
			_, err := f.Add(ctx, "a")
			return err
		}, upstash.ErrRecordTooLarge},
		"a full database, asked": {"OOM command not allowed", func(ctx context.Context) error {
			_, err := f.Exists(ctx, "a")
			return err
		}, upstash.ErrOutOfMemory},
	} {
		if tt.reply != "" {
			s.Inject(upstashtest.ErrorObject(tt.reply))
		}
		err := tt.call(ctx)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want an error that is %q", name, err, tt.want)
			continue
		}
		text := err.Error()
		if n := strings.Count(text, "bloom: ") + strings.Count(text, "upstash: "); n != 1 ||
			!strings.HasPrefix(text, "bloom: ") && !strings.HasPrefix(text, "upstash: ") {
			t.Errorf("%s: %q names a package %d times, want once, at its beginning", name, text, n)
		}
	}
}
