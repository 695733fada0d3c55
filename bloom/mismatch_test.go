package bloom_test

import (
	"bytes"
	"context"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A kindString is a complete string of another program, with its Config.
type kindString struct {
	Kind     uint8 // as in the header
	Capacity uint64
	P        float64
	Seed     uint64 `json:"seed,string"`
	Span     int64  `json:"span_seconds"`
	Seconds  int64  `json:"pane_seconds"`
	Panes    int
	Idle     bool
	Epoch    int64
	Items    []string
	FoundAt  map[string][]string `json:"found_at"`
	Shards   int
	Index    int
	// Others are found of "other 0" to "other 1999", none of which was added. A
	// shard's Others belong to it.
	Others []string `json:"others_found"`
	Hex    string
}

type windowTurn struct {
	Panes   int
	C, To   int64
	Steps   int64
	Cleared []int `json:"cleared_panes"`
}

func loadKinds(t *testing.T) (v struct {
	Strings     []kindString
	WindowTurns []windowTurn `json:"window_turns"`
},
) {
	t.Helper()
	data, err := os.ReadFile("testdata/v1-kinds.json")
	noError(t, err)
	noError(t, json.Unmarshal(data, &v))
	if len(v.Strings) != 8 || len(v.WindowTurns) != 144 {
		t.Fatalf("%d strings and %d turns, want 8 and 144", len(v.Strings), len(v.WindowTurns))
	}
	return v
}

func (v kindString) bytes(t *testing.T) string {
	t.Helper()
	data, err := hex.DecodeString(v.Hex)
	noError(t, err)
	return string(data)
}

func (v kindString) windowConfig() bloom.WindowConfig {
	return bloom.WindowConfig{
		Capacity: v.Capacity, FPRate: v.P, Span: time.Duration(v.Span) * time.Second,
		Panes: v.Panes, Seed: v.Seed, ExpireIdle: v.Idle,
	}
}

// at returns a clock in the middle of an epoch.
func (v kindString) at(epoch int64) *serverClock {
	return &serverClock{now: time.Unix(epoch*v.Seconds+v.Seconds/2, 0)}
}

// In a window of another program, Go finds the same items, at every epoch
// around the window's own.
func TestWindowOfAnotherProgram(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		windows := 0
		for _, v := range loadKinds(t).Strings {
			if bloom.Kind(v.Kind) != bloom.KindWindow {
				continue
			}
			windows++
			for after, want := range v.FoundAt {
				do(t, s, "SET", key, v.bytes(t))
				d, err := strconv.ParseInt(after, 10, 64)
				noError(t, err)
				c, _ := timedClient(t, s, v.at(v.Epoch+d))
				opened, err := bloom.OpenWindow(t.Context(), c, key, bloom.WindowConfig{Seed: v.Seed})
				noError(t, err)
				for _, w := range []*bloom.Window{window(t, c, v.windowConfig()), opened} {
					found, err := w.ExistsAll(t.Context(), v.Items)
					noError(t, err)
					for i, item := range v.Items {
						if found[i] != slices.Contains(want, item) {
							t.Errorf("%v, %s epochs after: found %s: %v", w, after, item, found[i])
						}
					}
				}
			}
		}
		if windows != 2 {
			t.Errorf("%d windows, want 2", windows)
		}
	})
}

// A window that Go writes epoch by epoch equals the other program's string.
func TestWindowIsTheFormat(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		compared := 0
		for _, v := range loadKinds(t).Strings {
			if bloom.Kind(v.Kind) != bloom.KindWindow || !v.Idle {
				continue // the other has items in its spare pane, and the next Add clears it
			}
			compared++
			s.FlushAll()
			for d := int64(-v.Panes); d <= 0; d++ {
				c, _ := timedClient(t, s, v.at(v.Epoch+d))
				w := window(t, c, v.windowConfig())
				for _, item := range v.Items {
					if strings.HasPrefix(item, fmt.Sprintf("epoch %d,", d)) {
						noError(t, errorOf(w.Add(t.Context(), item)))
					}
				}
			}
			v.wantSame(t, stored(t, s))
		}
		if compared != 1 {
			t.Errorf("%d windows compared, want 1", compared)
		}
	})
}

// A turn clears exactly the panes named by the format.
func TestWindowTurnClears(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		turned := 0
		for _, v := range loadKinds(t).WindowTurns {
			if v.Steps > 1<<19 {
				continue // to is behind C: no writer turns back
			}
			turned++
			s.FlushAll()
			cfg := bloom.WindowConfig{
				Capacity: 1, FPRate: 0.5, Panes: v.Panes,
				Span: time.Duration(60*v.Panes-5) * time.Second, // 60 s a pane
			}
			at := func(epoch int64) *bloom.Window {
				c, _ := timedClient(t, s, &serverClock{now: time.Unix(60*epoch+30, 0)})
				return window(t, c, cfg)
			}
			w := at(v.C)
			create(t, w, true)
			pane := int(w.Geometry().Bits+7) / 8
			for j := range v.Panes + 2 {
				do(t, s, "SETRANGE", key, strconv.Itoa(24+j*pane), strings.Repeat("\xff", pane))
			}
			noError(t, errorOf(at(v.To).Add(t.Context(), "item")))
			body := stored(t, s)[24:]
			for j := range v.Panes + 2 {
				full := body[j*pane:(j+1)*pane] == strings.Repeat("\xff", pane)
				if want := !slices.Contains(v.Cleared, j); full != want {
					t.Errorf("%+v: pane %d is still full: %v, want %v", v, j, full, want)
				}
			}
		}
		if turned != 128 {
			t.Errorf("%d turns, want 128", turned)
		}
	})
}

// wantAnswers looks up all items, and others that were never added.
func (v kindString) wantAnswers(t *testing.T, f bloomtest.Adder, others []string) {
	t.Helper()
	found, err := f.ExistsAll(t.Context(), append(slices.Clone(v.Items), others...))
	noError(t, err)
	if n := count(found[:len(v.Items)]); n != len(v.Items) {
		t.Errorf("%v: %d of %d items found", f, n, len(v.Items))
	}
	for i, item := range others {
		if got, want := found[len(v.Items)+i], slices.Contains(v.Others, item); got != want {
			t.Errorf("%v: %s: %v, want %v", f, item, got, want)
		}
	}
}

func others() (items []string) {
	for i := range 2000 {
		items = append(items, fmt.Sprint("other ", i))
	}
	return items
}

// wantSame compares Go's string with the other program's, apart from the birth
// number and trailing zeros.
func (v kindString) wantSame(t *testing.T, got string) {
	t.Helper()
	want := v.bytes(t)
	if len(got) < 24 {
		t.Fatalf("stored %x", got)
	}
	got = strings.TrimRight(got[:8]+want[8:16]+got[16:], "\x00")
	if got != strings.TrimRight(want, "\x00") {
		t.Errorf("stored\n%x, want\n%x", got, want)
	}
}

// stringsOf returns the n strings of a kind.
func stringsOf(t *testing.T, kind bloom.Kind, n int) (out []kindString) {
	t.Helper()
	for _, v := range loadKinds(t).Strings {
		if bloom.Kind(v.Kind) == kind {
			out = append(out, v)
		}
	}
	if len(out) != n {
		t.Fatalf("%d strings of kind %v, want %d", len(out), kind, n)
	}
	return out
}

// Another program's layers give the same answers in Go. Written by Go, layer by
// layer, they are the same string.
func TestLayersOfAnotherProgram(t *testing.T) {
	v := stringsOf(t, bloom.KindLayers, 1)[0]
	cfg := bloom.ScalableConfig{Capacity: v.Capacity, FPRate: v.P, Seed: v.Seed}
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		do(t, s, "SET", key, v.bytes(t))
		opened, err := bloom.OpenScalable(t.Context(), s.Client(), key, bloom.ScalableConfig{Seed: v.Seed})
		noError(t, err)
		for _, f := range []*bloom.Scalable{scalable(t, s.Client(), cfg), opened} {
			v.wantAnswers(t, f, others())
			st, err := f.Stats(t.Context())
			if err != nil || len(st.Layers) != 3 {
				t.Fatalf("Stats: %d layers, %v, want 3", len(st.Layers), err)
			}
		}
		s.FlushAll()
		for layer := range 3 {
			if layer > 0 { // as if the layer before were full
				do(t, s, "BITFIELD", key, "SET", "u32", "149", strconv.FormatUint(1000<<(2*(layer-1)), 10))
			}
			f := scalable(t, s.Client(), cfg)
			for _, item := range v.Items[30*layer : 30*layer+30] {
				if added, err := f.Add(t.Context(), item); !added || err != nil {
					t.Fatalf("Add of %s = %v, %v", item, added, err)
				}
			}
		}
		v.wantSame(t, stored(t, s))
	})
}

// Another program's shard gives the same answers in Go. Written by Go it is the
// same string.
func TestShardOfAnotherProgram(t *testing.T) {
	v := stringsOf(t, bloom.KindShard, 1)[0]
	cfg := bloom.ShardedConfig{Capacity: v.Capacity, FPRate: v.P, Shards: v.Shards, Seed: v.Seed}
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := sharded(t, cfg, s.Client())
		create(t, f, true)
		if added, err := f.AddAll(t.Context(), v.Items); err != nil || count(added) != len(v.Items) {
			t.Fatalf("AddAll: %d new, %v", count(added), err)
		}
		v.wantSame(t, storedAt(t, s, shardKey(v.Index)))

		do(t, s, "SET", shardKey(v.Index), v.bytes(t))
		opened, err := bloom.OpenSharded(t.Context(), []*upstash.Client{s.Client()}, key, bloom.ShardedConfig{Seed: v.Seed})
		noError(t, err)
		mine := slices.DeleteFunc(others(), func(item string) bool { return f.ShardOf(item) != v.Index })
		for _, f := range []*bloom.Sharded{sharded(t, cfg, s.Client()), opened} {
			v.wantAnswers(t, f, mine)
		}
	})
}

// A cuckoo table of another program gives the same answers in Go, has as many
// copies, and is empty once all of them are removed.
func TestCuckooOfAnotherProgram(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, v := range stringsOf(t, bloom.KindFilter, 4) {
			do(t, s, "SET", key, v.bytes(t))
			opened, err := bloom.OpenCuckoo(t.Context(), s.Client(), key, bloom.CuckooConfig{Seed: v.Seed})
			noError(t, err)
			made := cuckoo(t, s.Client(), bloom.CuckooConfig{Capacity: v.Capacity, FPRate: v.P, Seed: v.Seed})
			for _, f := range []*bloom.Cuckoo{made, opened} {
				v.wantAnswers(t, f, others())
				st, err := f.Stats(t.Context())
				if err != nil || st.Damaged || st.Items != uint64(len(v.Items)) {
					t.Errorf("%v: %d copies, damaged %v, %v", f, st.Items, st.Damaged, err)
				}
			}
			removed, err := made.RemoveAll(t.Context(), v.Items)
			if err != nil || count(removed) != len(v.Items) {
				t.Fatalf("RemoveAll: %d of %d, %v", count(removed), len(v.Items), err)
			}
			// Of the third word and the buckets, only the first bit remains.
			if got := strings.TrimRight(stored(t, s)[16:], "\x00"); got != "\x80" {
				t.Errorf("%v: after RemoveAll %x", made, got)
			}
		}
	})
}

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
