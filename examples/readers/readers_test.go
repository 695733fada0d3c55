// Package readers_test compares the readers in TypeScript and Python with the
// vectors of the format, and with filters written and read by Go.
package readers_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/bloom"
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
			r.want(t, question{"op": "parts", "kind": "layers", "m": l.M, "panes": 0}, want)
		}
		for _, l := range v.Counts {
			var got []part
			failure := r.ask(t, question{"op": "parts", "kind": "layers", "m": l.M, "panes": 0}, &got)
			if failure != "" || len(got) != l.Layers {
				t.Errorf("m=%d: %d layers, %s, want %d", l.M, len(got), failure, l.Layers)
			}
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
			if _, err := s.Exec("SET", "k", string(data)); err != nil {
				t.Fatal(err)
			}
			q := question{"op": "exists", "key": "k", "seed": v.Seed, "items": append(v.Items, "stranger")}
			switch bloom.Kind(v.Kind) {
			case bloom.KindLayers:
				want := make([]bool, len(v.Items)+1)
				for i := range v.Items {
					want[i] = true
				}
				r.want(t, q, want)
			case bloom.KindWindow:
				for after, found := range v.FoundAt {
					in := map[string]bool{}
					for _, item := range found {
						in[item] = true
					}
					want := make([]bool, len(v.Items)+1)
					for i, item := range v.Items {
						want[i] = in[item]
					}
					q["now"] = (v.Epoch+after)*v.Seconds + v.Seconds/2
					r.want(t, q, want)
				}
			default:
				wantError(t, r, q, "Mismatch")
			}
		}
		if kinds[bloom.KindLayers] == 0 || kinds[bloom.KindWindow] < 2 || kinds[bloom.KindShard] == 0 {
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

func numbered(prefix string, n int) []string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf("%s-%d-ключ", prefix, i)
	}
	return items
}

func times(n int, answer bool) []bool {
	answers := make([]bool, n)
	for i := range answers {
		answers[i] = answer
	}
	return answers
}

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
			f, err := bloom.New(s.Client(), "k", cfg)
			if err != nil {
				t.Fatal(err)
			}
			ours, theirs := numbered("ours", 700), numbered("theirs", 700)
			q := question{
				"op": "exists", "key": "k", "seed": fmt.Sprint(cfg.Seed), "items": ours,
				"m": cfg.Bits, "k": cfg.Hashes, "scheme": int(cfg.Scheme),
			}
			wantError(t, r, q, "NotFound")
			if _, err := f.AddAll(t.Context(), ours); err != nil {
				t.Fatal(err)
			}
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
		if _, err := f.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
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
		f, err := bloom.New(s.Client(), "k", bloom.Config{Bits: 53 * 200, Hashes: 4})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Add(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
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
		if _, err := w.AddAll(t.Context(), items[:300]); err != nil {
			t.Fatal(err)
		}
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
			if _, err := s.Exec("SET", "k", data); err != nil {
				t.Fatal(err)
			}
			q := question{"op": "exists", "key": "k", "items": []string{"a"}}
			wantError(t, r, q, "Mismatch")
		}
	})
}
