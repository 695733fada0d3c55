// Package readers_test compares the readers in TypeScript and Python with the
// vectors of the format, and with filters written and read by Go.
package readers_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// vectors reads a file of vectors.
func vectors(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../bloom/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

type item struct {
	Item, Seed string
	M          uint64
	K          int
	Positions  []uint64
}

func TestVectors(t *testing.T) {
	var v struct {
		Blocked, XXH3, FNV1a []item
		Header               []struct {
			M            uint64
			K            int
			Kind, Scheme int
			Seed         string
			Word         string `json:"header_u53"`
		}
		Sizing []struct {
			N uint64
			P float64
			M uint64
			K int
		} `json:"blocked_sizing"`
	}
	vectors(t, "v1.json", &v)
	eachReader(t, func(t *testing.T, _ *upstashtest.Server, r *reader) {
		for scheme, items := range map[bloom.Scheme][]item{
			bloom.SchemeBlocked: v.Blocked, bloom.SchemeXXH3: v.XXH3, bloom.SchemeFNV1a: v.FNV1a,
		} {
			if len(items) < 100 {
				t.Fatalf("the vectors have %d items of %v, want 100 or more", len(items), scheme)
			}
			for _, i := range items {
				q := question{"op": "cells", "items": []string{i.Item}, "m": i.M, "k": i.K, "scheme": int(scheme)}
				if i.Seed != "" {
					q["seed"] = i.Seed
				}
				r.want(t, q, i.Positions)
			}
		}
		headers := 0
		for _, h := range v.Header {
			if h.Kind == 0 {
				headers++
				r.want(t, question{"op": "header", "m": h.M, "k": h.K, "scheme": h.Scheme, "seed": h.Seed}, h.Word)
			}
		}
		if headers == 0 || len(v.Sizing) == 0 {
			t.Fatal("the vectors have no headers or no sizes, want both")
		}
		for _, s := range v.Sizing {
			r.want(t, question{"op": "size", "n": s.N, "p": s.P}, map[string]uint64{"m": s.M, "k": uint64(s.K), "rate": rateCode(s.P)})
		}
	})
}

// rateCode is what birth numbers say of the rate p.
func rateCode(p float64) uint64 {
	if p > 0.25 {
		return 0
	}
	return 1 + uint64(math.Round(-32*math.Log2(p)))
}

type part struct{ At, M uint64 }

func TestVectorsOfParts(t *testing.T) {
	var v struct {
		Window []struct {
			M           uint64
			Ring        int
			PaneSeconds uint64   `json:"pane_seconds"`
			PaneOffsets []uint64 `json:"pane_offsets"`
			Times       []struct{ Unix, Epoch uint64 }
		}
		Pairs []struct {
			Panes         int
			E, C          uint64
			CountingPanes []int `json:"counting_panes"`
		} `json:"window_pairs"`
		Scalable []struct {
			M      uint64
			Layers []struct{ Offset, M uint64 }
		}
		Counts []struct {
			M      uint64
			Layers int
		} `json:"layer_counts"`
	}
	vectors(t, "v1-kinds.json", &v)
	if len(v.Window) == 0 || len(v.Pairs) == 0 || len(v.Scalable) == 0 || len(v.Counts) == 0 {
		t.Fatal("vectors of windows, pairs, layers or counts are missing, want all")
	}
	eachReader(t, func(t *testing.T, _ *upstashtest.Server, r *reader) {
		for _, w := range v.Window {
			var want []part
			for _, at := range w.PaneOffsets {
				want = append(want, part{at, w.M})
			}
			r.want(t, question{"op": "parts", "kind": "window", "m": w.M, "panes": w.Ring}, want)
			for _, at := range w.Times {
				r.want(t, question{"op": "epoch", "panes": w.Ring, "seconds": w.PaneSeconds, "now": at.Unix}, at.Epoch)
			}
		}
		for _, p := range v.Pairs {
			r.want(t, question{"op": "counting", "panes": p.Panes + 2, "e": p.E, "c": p.C}, p.CountingPanes)
		}
		for _, l := range v.Scalable {
			var want []part
			for _, at := range l.Layers {
				want = append(want, part{at.Offset, at.M})
			}
			r.want(t, question{"op": "parts", "kind": "scalable", "m": l.M, "panes": 0}, want)
		}
		for _, l := range v.Counts {
			var got []part
			failure := r.ask(t, question{"op": "parts", "kind": "scalable", "m": l.M, "panes": 0}, &got)
			if failure != "" || len(got) != l.Layers {
				t.Errorf("m=%d: %d layers, %s, want %d", l.M, len(got), failure, l.Layers)
			}
		}
	})
}

// A plain filter as it is in a stream, where the second word holds the rate alone.
func TestStreamsOfVectors(t *testing.T) {
	var v struct {
		Streams []struct {
			Seed  string
			Items []string
			Found []string `json:"others_found"`
			Hex   string
		}
	}
	vectors(t, "v1-kinds.json", &v)
	eachReader(t, func(t *testing.T, s *upstashtest.Server, r *reader) {
		for _, v := range v.Streams {
			data, err := hex.DecodeString(v.Hex)
			if err != nil {
				t.Fatal(err)
			}
			bloomtest.Do(t, s, "SET", "k", string(data[24:len(data)-8]))
			items, want := v.Items, times(len(v.Items), true)
			for i := range 100 {
				items = append(items, fmt.Sprint("other ", i))
				want = append(want, slices.Contains(v.Found, items[len(items)-1]))
			}
			r.want(t, question{"op": "exists", "key": "k", "seed": v.Seed, "items": items}, want)
		}
		if len(v.Streams) != 11 {
			t.Errorf("%d streams, want 11", len(v.Streams))
		}
	})
}

// Windows and layers of another program. Shards and cuckoo tables are refused.
func TestStringsOfVectors(t *testing.T) {
	var v struct {
		Strings []struct {
			Kind    uint8 // as in the header
			Seed    string
			Seconds int64 `json:"pane_seconds"`
			Epoch   int64
			Items   []string
			FoundAt map[int64][]string `json:"found_at"`
			Hex     string
		}
	}
	vectors(t, "v1-kinds.json", &v)
	eachReader(t, func(t *testing.T, s *upstashtest.Server, r *reader) {
		kinds := map[bloom.Kind]int{}
		for _, v := range v.Strings {
			kinds[bloom.Kind(v.Kind)]++
			data, err := hex.DecodeString(v.Hex)
			if err != nil {
				t.Fatal(err)
			}
			bloomtest.Do(t, s, "SET", "k", string(data))
			q := question{"op": "exists", "key": "k", "seed": v.Seed, "items": append(v.Items, "stranger")}
			switch bloom.Kind(v.Kind) {
			case bloom.KindScalable:
				r.want(t, q, append(times(len(v.Items), true), false))
			case bloom.KindWindow:
				for after, found := range v.FoundAt {
					want := make([]bool, len(v.Items)+1)
					for i, item := range v.Items {
						want[i] = slices.Contains(found, item)
					}
					q["now"] = (v.Epoch+after)*v.Seconds + v.Seconds/2
					r.want(t, q, want)
				}
			default:
				wantError(t, r, q, "Mismatch")
			}
		}
		if kinds[bloom.KindScalable] == 0 || kinds[bloom.KindWindow] < 2 || kinds[bloom.KindShard] == 0 {
			t.Errorf("the vectors have strings of the kinds %v, want layers, two windows and a shard", kinds)
		}
	})
}

func wantError(t *testing.T, r *reader, q question, want string) {
	t.Helper()
	var got any
	if failure := r.ask(t, q, &got); !strings.HasPrefix(failure, want+":") {
		t.Errorf("%v: %v, %q, want a %s", q["op"], got, failure, want)
	}
}

func numbered(prefix string, n int) []string { return bloomtest.Numbered("ключ-"+prefix, n) }

func times(n int, answer bool) []bool { return slices.Repeat([]bool{answer}, n) }

// Plain filters of every scheme go both ways: one program finds the items of
// the other.
func TestFiltersOfGo(t *testing.T) {
	eachReader(t, func(t *testing.T, s *upstashtest.Server, r *reader) {
		for _, cfg := range []bloom.Config{
			{Bits: 53 * 20_000, Hashes: 10, Seed: 1<<63 + 99},
			{Bits: 1 << 20, Hashes: 20, Scheme: bloom.SchemeXXH3, Seed: 7},
			{Bits: 1<<20 + 1, Hashes: 20, Scheme: bloom.SchemeFNV1a},
		} {
			s.FlushAll()
			f := bloomtest.HandleAt(t, s.Client(), "k", cfg)
			ours, theirs := numbered("ours", 700), numbered("theirs", 700)
			q := question{
				"op": "exists", "key": "k", "seed": fmt.Sprint(cfg.Seed), "items": ours,
				"m": cfg.Bits, "k": cfg.Hashes, "scheme": int(cfg.Scheme),
			}
			wantError(t, r, q, "NotFound")
			bloomtest.MustAdd(t, f, ours...)
			r.want(t, q, times(700, true))
			q["items"] = theirs
			r.want(t, q, times(700, false))
			q["op"] = "add"
			r.want(t, q, times(700, true))
			r.want(t, q, times(700, false))
			found, err := f.ExistsAll(t.Context(), theirs)
			if err != nil || !reflect.DeepEqual(found, times(700, true)) {
				t.Errorf("%v: Go finds %v, %v, want all", cfg, found, err)
			}
			q["k"] = cfg.Hashes - 2
			wantError(t, r, q, "Mismatch")
			q["op"], q["seed"] = "exists", fmt.Sprint(cfg.Seed+1)
			wantError(t, r, q, "Mismatch")

			// A filter they make is Go's too.
			s.FlushAll()
			q["op"], q["seed"], q["k"] = "add", fmt.Sprint(cfg.Seed), cfg.Hashes
			r.want(t, q, times(700, true))
			opened, err := bloom.Open(t.Context(), s.Client(), "k", bloom.Config{Seed: cfg.Seed})
			if err != nil || opened.Geometry() != f.Geometry() {
				t.Fatalf("Open = %v, %v, want %v", opened, err, f)
			}
			if found, err := opened.ExistsAll(t.Context(), theirs); err != nil ||
				!reflect.DeepEqual(found, times(700, true)) {
				t.Errorf("%v: Go finds %v, %v, want all", cfg, found, err)
			}
		}
	})
}

// At the key of a sharded filter there is nothing. The error says where it is,
// and its shards are refused.
func TestShardedFilterOfGo(t *testing.T) {
	eachReader(t, func(t *testing.T, s *upstashtest.Server, r *reader) {
		f, err := bloom.NewSharded([]*upstash.Client{s.Client()}, "k",
			bloom.ShardedConfig{Capacity: 1000, FPRate: 0.01, Shards: 2})
		if err != nil {
			t.Fatal(err)
		}
		bloomtest.Create(t, f, true)
		q := question{"op": "exists", "key": "k", "seed": "0", "items": []string{"a"}, "m": 53, "k": 2}
		says := r.ask(t, q, new(any))
		if !strings.HasPrefix(says, "NotFound: ") || !strings.Contains(says, "a sharded one is at KEY:0, KEY:1") {
			t.Errorf("open says %q, want where the shards are", says)
		}
		for _, q["key"] = range []string{"k:0", "k:1"} {
			wantError(t, r, q, "Mismatch")
		}
	})
}

// A region behind the primary does not hide what others added, unless the token
// may only read, and never what the program itself added.
func TestBesideALaggingRegion(t *testing.T) {
	eachReader(t, func(t *testing.T, s *upstashtest.Server, r *reader) {
		s.SetReplicaLag(math.MaxInt)
		q := question{"key": "k", "seed": "0", "items": []string{"a"}, "m": 53 * 200, "k": 4, "scheme": 0}
		bloomtest.MustAdd(t, bloomtest.HandleAt(t, s.Client(), "k", bloom.Config{Bits: 53 * 200, Hashes: 4}), "a")
		q["op"], q["readOnly"] = "exists", true
		wantError(t, r, q, "NotFound") // the region does not have it yet
		q["readOnly"] = false
		r.want(t, q, times(1, true))
		q["op"], q["items"] = "add", []string{"b"}
		r.want(t, q, times(1, true))
		q["op"], q["readOnly"] = "exists", true
		r.want(t, q, times(1, true))
	})
}

func TestWindowOfGo(t *testing.T) {
	eachReader(t, func(t *testing.T, s *upstashtest.Server, r *reader) {
		w, err := bloom.NewWindow(s.Client(), "k", bloom.WindowConfig{
			Capacity: 10_000, FPRate: 1e-8, Span: 24 * time.Hour, Panes: 2, Seed: 5,
		})
		if err != nil {
			t.Fatal(err)
		}
		items := numbered("seen", 600)
		bloomtest.MustAdd(t, w, items[:300]...)
		q := question{"op": "exists", "key": "k", "seed": "5", "items": items}
		r.want(t, q, append(times(300, true), times(300, false)...))
		q["now"] = time.Now().Add(5 * 24 * time.Hour).Unix()
		r.want(t, q, times(600, false)) // everything is forgotten
	})
}

// A proxy answers with a page of its own.
func TestPages(t *testing.T) {
	eachReader(t, func(t *testing.T, s *upstashtest.Server, r *reader) {
		for want, fault := range map[string]upstashtest.Fault{
			"is the URL right?": upstashtest.NotJSON(upstashtest.BeforeExec),
			"status 502":        upstashtest.BadGateway(upstashtest.BeforeExec),
		} {
			s.Inject(fault)
			var got any
			failure := r.ask(t, question{"op": "exists", "key": "k", "items": []string{"a"}}, &got)
			if !strings.Contains(failure, "BITFIELD: ") || !strings.Contains(failure, want) {
				t.Errorf("%v: %v, %q, want the command and %q", fault, got, failure, want)
			}
		}
	})
}

func TestOneStringIsRefused(t *testing.T) {
	eachReader(t, func(t *testing.T, s *upstashtest.Server, r *reader) {
		r.want(t, question{"op": "add", "key": "k", "items": []string{"id"}, "m": 53 * 32, "k": 4}, []bool{true})
		wantError(t, r, question{"op": "add", "key": "k", "items": "id", "m": 53 * 32, "k": 4}, "TypeError")
		wantError(t, r, question{"op": "exists", "key": "k", "items": "id"}, "TypeError")
	})
}

func TestOtherDataIsRefused(t *testing.T) {
	eachReader(t, func(t *testing.T, s *upstashtest.Server, r *reader) {
		for _, data := range []string{"hello, world", strings.Repeat("\xff", 64), "\xac\xed\x00\x05sr\x00\x11java"} {
			bloomtest.Do(t, s, "SET", "k", data)
			q := question{"op": "exists", "key": "k", "items": []string{"a"}}
			wantError(t, r, q, "Mismatch")
		}
	})
}

// both lets Go and a reader look the items of a question up. They must answer
// alike, and want says what.
func both(t *testing.T, r *reader, q question, want []bool,
	goes func(context.Context, []string) ([]bool, error),
) {
	t.Helper()
	found, err := goes(t.Context(), q["items"].([]string))
	if err != nil || !reflect.DeepEqual(found, want) {
		t.Fatalf("Go finds %v, %v, want %v", runs(found), err, runs(want))
	}
	var reads []bool
	if failure := r.ask(t, q, &reads); failure != "" || !reflect.DeepEqual(reads, want) {
		t.Errorf("the reader finds %v, %s, want %v", runs(reads), failure, runs(want))
	}
}

// runs says which answers are yes: from 0 to below 500, for example.
func runs(answers []bool) (yes [][2]int) {
	for i, found := range answers {
		switch n := len(yes); {
		case !found:
		case n > 0 && yes[n-1][1] == i:
			yes[n-1][1]++
		default:
			yes = append(yes, [2]int{i, i + 1})
		}
	}
	return yes
}

// Layers made by Go while it added: what is in any of them is found.
func TestGrownByGo(t *testing.T) {
	eachReader(t, func(t *testing.T, s *upstashtest.Server, r *reader) {
		f, err := bloom.NewScalable(s.Client(), "k", bloom.ScalableConfig{
			Capacity: 1000, FPRate: 1e-8, Seed: 5,
		})
		if err != nil {
			t.Fatal(err)
		}
		items := numbered("seen", 7000)
		var asked []string // every tenth, and more than one command takes
		for i := 0; i < len(items); i += 10 {
			asked = append(asked, items[i])
		}
		q := question{"op": "exists", "key": "k", "seed": "5", "items": asked}
		for i, layers := 0, 0; layers < 3; i += 500 {
			if i == len(items) {
				t.Fatalf("%d items are in %d layers, want three", i, layers)
			}
			bloomtest.MustAdd(t, f, items[i:i+500]...)
			st, err := f.Stats(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(st.Parts) > layers {
				layers = len(st.Parts)
				in := i/10 + 50
				both(t, r, q, append(times(in, true), times(len(asked)-in, false)...), f.ExistsAll)
			}
		}
	})
}

// A window turned by Go at each epoch. The items of three panes are found.
// Those of the fourth, the oldest, have expired at first, and then Go clears
// it.
func TestTurnedByGo(t *testing.T) {
	eachReader(t, func(t *testing.T, s *upstashtest.Server, r *reader) {
		w, err := bloom.NewWindow(s.Client(), "k", bloom.WindowConfig{
			Capacity: 1000, FPRate: 1e-8, Span: 24 * time.Hour, Panes: 2, Seed: 5,
		})
		if err != nil {
			t.Fatal(err)
		}
		const each = 20
		items := numbered("seen", 7*each)
		q := question{"op": "exists", "key": "k", "seed": "5", "items": items}
		// from asks about all items. It wants the batches from first to last.
		from := func(first, last int) {
			t.Helper()
			want := times(len(items), false)
			for i := max(0, first) * each; i < (last+1)*each; i++ {
				want[i] = true
			}
			q["now"] = now(t, s).Unix()
			both(t, r, q, want, w.ExistsAll)
		}
		const pane = 12*time.Hour + 3*time.Second
		// In the middle of a pane no epoch ends while the test runs.
		s.FastForward(now(t, s).Truncate(pane).Add(pane * 3 / 2).Sub(now(t, s)))
		for e := range 7 {
			if e > 0 {
				from(e-2, e-1) // nobody has turned it yet
			}
			bloomtest.MustAdd(t, w, items[e*each:(e+1)*each]...)
			from(e-2, e)
			st, err := w.Stats(t.Context())
			if err != nil || st.PaneSpan != pane || len(st.Parts) < 3 {
				t.Fatalf("%v, %v, want panes of %v", st, err, pane)
			}
			s.FastForward(pane)
		}
		s.FastForward(pane)
		from(6, 6)
		s.FastForward(pane)
		from(7, 6) // none
	})
}

// now returns the time of the database.
func now(t *testing.T, s *upstashtest.Server) time.Time {
	t.Helper()
	at, err := s.Client().ServerTime(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// A bitmap or a bare filter may begin with zeros, as a missing string does. To
// open it says so, and costs commands for its length and, once more, its header.
func TestZerosAreNoMissingFilter(t *testing.T) {
	eachReader(t, func(t *testing.T, s *upstashtest.Server, r *reader) {
		for _, bit := range []string{"53", "60", "64", "130", "9000"} {
			s.FlushAll()
			bloomtest.Do(t, s, "SETBIT", "k", bit, "1")
			for _, readOnly := range []bool{false, true} {
				s.ResetStats()
				q := question{"op": "exists", "key": "k", "items": []string{"a"}, "readOnly": readOnly}
				wantError(t, r, q, "Mismatch")
				if n := s.Stats().Requests; n != 3 {
					t.Errorf("bit %s: %d requests, want 3", bit, n)
				}
			}
		}
		s.FlushAll()
		s.ResetStats()
		wantError(t, r, question{"op": "exists", "key": "k", "items": []string{"a"}}, "NotFound")
		if n := s.Stats().Requests; n != 2 {
			t.Errorf("a missing filter: %d requests, want 2", n)
		}
	})
}

// eachReaderBehind is eachReader with programs whose requests pass look first.
func eachReaderBehind(t *testing.T, look func(s *upstashtest.Server, body []byte) error,
	test func(t *testing.T, s *upstashtest.Server, r *reader),
) {
	eachProgram(t, func(t *testing.T, s *upstashtest.Server, begin func() *reader) {
		to, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(to)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err == nil {
				err = look(s, body)
			}
			if err != nil {
				t.Error(err)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			proxy.ServeHTTP(w, r)
		}))
		t.Cleanup(front.Close)
		s.URL = front.URL
		test(t, s, begin())
	})
}

// A filter made between open's two questions is found.
func TestAFilterMadeMeanwhile(t *testing.T) {
	made := false
	look := func(s *upstashtest.Server, body []byte) (err error) {
		if bytes.Contains(body, []byte(`"STRLEN"`)) {
			var f *bloom.Filter
			if f, err = bloom.New(s.Client(), "k", bloom.Config{Bits: 53 * 200, Hashes: 4}); err == nil {
				made, err = f.Add(context.Background(), "a")
			}
		}
		return err
	}
	eachReaderBehind(t, look, func(t *testing.T, _ *upstashtest.Server, r *reader) {
		made = false
		r.want(t, question{"op": "exists", "key": "k", "items": []string{"a"}}, []bool{true})
		if !made {
			t.Error("open did not ask for the length, want that it does")
		}
	})
}

// Each command of an add has a birth number of its own: a filter that goes away
// between two of them is not the one that the second makes.
func TestEachCommandMakesAnotherFilter(t *testing.T) {
	var births []any // of the filter before each command, which removes it
	look := func(s *upstashtest.Server, body []byte) error {
		if !bytes.Contains(body, []byte(`"INCRBY"`)) {
			return nil
		}
		answers, err := s.Exec("BITFIELD", "k", "GET", "u53", "64")
		births = append(births, answers)
		s.FlushAll()
		return err
	}
	eachReaderBehind(t, look, func(t *testing.T, _ *upstashtest.Server, r *reader) {
		births = nil
		q := question{"op": "add", "key": "k", "items": numbered("item", 1501), "m": 53 * 1000, "k": 4}
		if failure := r.ask(t, q, new([]bool)); failure != "" {
			t.Fatal(failure)
		}
		if len(births) != 4 || reflect.DeepEqual(births[1], births[2]) || reflect.DeepEqual(births[2], births[3]) {
			t.Errorf("the commands found filters of the birth numbers %v, want none, and another for each", births)
		}
	})
}
