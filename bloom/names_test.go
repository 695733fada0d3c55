package bloom_test

import (
	"bytes"
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
	wantText := func(what string, err, want error) {
		t.Helper()
		wantError(t, err, want)
		text := err.Error()
		if n := strings.Count(text, "bloom: ") + strings.Count(text, "upstash: "); n != 1 ||
			!strings.HasPrefix(text, "bloom: ") && !strings.HasPrefix(text, "upstash: ") {
			t.Errorf("%s: %q names a package %d times, want once, at its beginning", what, text, n)
		}
	}
	wantText("a short TTL", errorOf(f.Expire(ctx, time.Microsecond)), upstash.ErrArgument)
	wantText("a nil source", bloom.Union(ctx, f, nil), upstash.ErrArgument)
	wantText("many sources", bloom.Union(ctx, f, slices.Repeat([]*bloom.Filter{f}, 1001)...), upstash.ErrArgument)
	wantText("two clients", errorOf(bloom.ExistsIn(ctx, "a", f, elsewhere)), upstash.ErrArgument)
	wantText("no clients", errorOf(bloom.NewSharded(nil, key, shards(2))), upstash.ErrArgument)
	wantText("a Mirror of a read-only client",
		errorOf(bloom.NewMirror(handle(t, s.ReadOnlyClient(), small()), bloom.MirrorConfig{})), upstash.ErrReadOnly)
	wantText("no filter, in a batch",
		errorOf(handle(t, c, must(small())).AddAll(ctx, []string{"a", "b"})), bloom.ErrNotFound)

	s.Inject(upstashtest.ErrorObject("NOPERM no"))
	wantText("no permission, in a batch", adds["AddAll"](ctx, f), upstash.ErrNoPermission)
	s.Inject(upstashtest.ErrorObject("NOPERM no"))
	wantText("no permission, in one of several filters", adds["AddIn"](ctx, f), upstash.ErrNoPermission)
	s.Inject(upstashtest.ErrorObject("ERR max single record size exceeded"))
	wantText("a record too large", adds["Add"](ctx, f), upstash.ErrRecordTooLarge)
	s.Inject(upstashtest.ErrorObject("OOM command not allowed"))
	wantText("a full database, asked", reads["Exists"](ctx, f), upstash.ErrOutOfMemory)
}
