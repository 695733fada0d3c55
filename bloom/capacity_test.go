package bloom_test

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// isAbout reports whether a Capacity is the wanted one as far as the rate in a
// string says it.
func isAbout(got, want uint64) bool { return math.Abs(float64(got)-float64(want)) <= float64(want)/100 }

// A handle of Open knows the Capacity from the string, and so says when the
// filter is over it, as a configured one does.
func TestOpenedHandleKnowsTheCapacity(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), s.Client()
	configured := handle(t, c, small())
	if r, err := configured.Load(ctx, mails(0, 2000)); err != nil || !r.OverCapacity {
		t.Fatalf("Load: over capacity %t, %v, want true", r.OverCapacity, err)
	}
	opened, err := bloom.Open(ctx, c, key)
	noError(t, err)
	for _, f := range []*bloom.Filter{configured, opened} {
		st, err := f.Stats(ctx)
		if err != nil || !st.OverCapacity() || !isAbout(st.Capacity, small().Capacity) || st.Items < 1900 {
			t.Errorf("Stats: %+v, %v, want about 2,000 items of 1,000", st, err)
		}
		if r, err := f.Load(ctx, mails(0, 1)); err != nil || !r.OverCapacity {
			t.Errorf("Load: over capacity %t, %v, want true", r.OverCapacity, err)
		}
	}
	if st, err := bloom.Inspect(ctx, c, key); err != nil || !st.OverCapacity() || !isAbout(st.Capacity, small().Capacity) {
		t.Errorf("Inspect: %+v, %v, want over capacity", st, err)
	}
}

func TestOpenedWindowKnowsTheCapacity(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), s.Client()
	for _, panes := range []int{1, 3} {
		do(t, s, "DEL", key)
		made := window(t, c, bloom.WindowConfig{Capacity: 1000, FPRate: 0.01, Span: time.Hour, Panes: panes})
		mustAdd(t, made, numbered("item", 5000)...)
		var warned bloom.WindowStats
		reader, err := bloom.OpenWindow(ctx, c, key, bloom.WindowConfig{
			WarnFill: func(s bloom.WindowStats) { warned = s },
		})
		noError(t, err)
		st, err := reader.Stats(ctx)
		if err != nil || !st.OverCapacity() || !isAbout(st.Capacity, 1000) || st.FPRate < 0.0095 || st.FPRate > 0.0105 {
			t.Errorf("%d panes: Stats: %+v, %v, want over a capacity of about 1,000 at 0.01", panes, st, err)
		}
		if st, err := bloom.Inspect(ctx, c, key); err != nil || !isAbout(st.Capacity, 1000) || st.FPRate == 0 {
			t.Errorf("%d panes: Inspect: %+v, %v, want a capacity of about 1,000", panes, st, err)
		}
		for i := range 20 {
			mustAdd(t, reader, numbered("more", 100*(i+1))...)
		}
		if !isAbout(warned.Capacity, 1000) {
			t.Errorf("%d panes: the opened window warned with %+v, want a capacity of about 1,000", panes, warned)
		}
	}
}

// A shard's capacity has its margin, that of the whole has not.
func TestOpenedShardedKnowsTheCapacity(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, clients := t.Context(), []*upstash.Client{s.Client()}
	made := sharded(t, bloom.ShardedConfig{Capacity: 8000, FPRate: 0.01, Shards: 4}, clients...)
	create(t, made, true)
	mustAdd(t, made, numbered("item", 20_000)...)
	opened, err := bloom.OpenSharded(ctx, clients, key)
	noError(t, err)
	st, err := opened.Stats(ctx)
	if err != nil || !isAbout(st.Capacity, 8000) || !st.OverCapacity() || st.FPRate == 0 {
		t.Errorf("Stats: %+v, %v, want over a capacity of about 8,000", st, err)
	}
	margin := uint64(2000 + 3*45)
	if one, err := bloom.Inspect(ctx, clients[0], shardKey(1)); err != nil || !isAbout(one.Capacity, margin) ||
		!isAbout(st.Shards[1].Capacity, margin) {
		t.Errorf("a shard: %+v, %+v, %v, want a capacity of about %d", one, st.Shards[1], err, margin)
	}
}

// codeOf returns the low ten bits of the birth number at a key.
func codeOf(t *testing.T, s *upstashtest.Server, at string) uint64 {
	t.Helper()
	value, _ := do(t, s, "GET", at).(string)
	if len(value) < 24 {
		t.Fatalf("%q holds %d bytes", at, len(value))
	}
	return binary.BigEndian.Uint64([]byte(value[8:])) >> 11 & 1023
}

// Whatever makes a filter writes the rate of its handle.
func TestEveryWriterWritesTheRate(t *testing.T) {
	const percent, perMille = 214, 320
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		f := handle(t, c, small())
		local := bloom.NewLocal(f.Geometry())
		local.Add("a")
		mirror, err := bloom.NewMirror(f, bloom.MirrorConfig{})
		noError(t, err)
		anHour := bloom.WindowConfig{Capacity: 100, FPRate: 0.001, Span: time.Hour, Panes: 2}
		for name, write := range map[string]func(context.Context) error{
			"Create":     func(ctx context.Context) error { return errorOf(f.Create(ctx)) },
			"Add":        func(ctx context.Context) error { return errorOf(f.Add(ctx, "a")) },
			"AddAll":     func(ctx context.Context) error { return errorOf(f.AddAll(ctx, []string{"a", "b"})) },
			"AddSeq":     func(ctx context.Context) error { return errorOf(f.AddSeq(ctx, slices.Values([]string{"a"}))) },
			"AddIn":      func(ctx context.Context) error { return errorOf(bloom.AddIn(ctx, "a", f)) },
			"Load":       func(ctx context.Context) error { return errorOf(f.Load(ctx, mails(0, 5))) },
			"Merge":      func(ctx context.Context) error { return errorOf(f.Merge(ctx, local)) },
			"Replace":    func(ctx context.Context) error { return f.Replace(ctx, local) },
			"Union":      func(ctx context.Context) error { return bloom.Union(ctx, f, handleAt(t, c, "other", small())) },
			"Mirror.Add": func(ctx context.Context) error { return errorOf(mirror.Add(ctx, "a")) },
			"Window.Add": func(ctx context.Context) error { return errorOf(window(t, c, anHour).Add(ctx, "a")) },
			"Window.Create": func(ctx context.Context) error {
				return errorOf(window(t, c, anHour).Create(ctx))
			},
			"Scalable.Add": func(ctx context.Context) error { return errorOf(scalable(t, c, growing()).Add(ctx, "a")) },
			"Cuckoo.Add":   func(ctx context.Context) error { return errorOf(cuckoo(t, c, table1000()).Add(ctx, "a")) },
		} {
			s.FlushAll()
			add(t, handleAt(t, c, "other", small()), "b", true)
			if err := write(ctx); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want := uint64(percent)
			switch name {
			case "Window.Add", "Window.Create":
				want = perMille
			case "Scalable.Add":
				want = rateOf(growing().FPRate)
			case "Cuckoo.Add":
				want = rateOf(table1000().FPRate)
			}
			if got := codeOf(t, s, key); got != want {
				t.Errorf("%s: the string says rate %d, want %d", name, got, want)
			}
		}
		s.FlushAll()
		create(t, sharded(t, bloom.ShardedConfig{Capacity: 100, FPRate: 0.01, Shards: 2}, c), true)
		if a, b := codeOf(t, s, shardKey(0)), codeOf(t, s, shardKey(1)); a != percent || b != percent {
			t.Errorf("the shards say rates %d and %d, want %d", a, b, percent)
		}
	})
}

// rateOf is the code by the documentation of the format.
func rateOf(p float64) uint64 { return 1 + uint64(math.Round(-32*math.Log2(p))) }

// The rate is set with the birth number and stays. A handle of another rate, or
// of none, is not refused.
func TestRatesAreNotCompared(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), s.Client()
	cfg := small()
	geo := handle(t, c, cfg).Geometry()
	given := bloom.Config{Bits: geo.Bits, Hashes: geo.Hashes}
	add(t, handle(t, c, given), "a", true)
	add(t, handle(t, c, cfg), "b", true)
	noError(t, errorOf(handle(t, c, cfg).Load(ctx, mails(0, 10))))
	if got := codeOf(t, s, key); got != 0 {
		t.Errorf("the string was made with Bits and Hashes, and says rate %d", got)
	}
	if st, err := bloom.Inspect(ctx, c, key); err != nil || st.Capacity != 0 || st.OverCapacity() {
		t.Errorf("Inspect: %+v, %v, want no Capacity", st, err)
	}

	do(t, s, "DEL", key)
	add(t, handle(t, c, cfg), "a", true)
	add(t, handle(t, c, given), "b", true)
	exists(t, handle(t, c, given), "a", true)
	if st, err := handle(t, c, given).Stats(ctx); err != nil || !isAbout(st.Capacity, cfg.Capacity) {
		t.Errorf("Stats with Bits and Hashes: %+v, %v, want the Capacity that the string says", st, err)
	}
}

// A handle of Open that makes the filter again passes the rate on.
func TestOpenedHandleKeepsTheRate(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), s.Client()
	add(t, handle(t, c, small()), "a", true)
	opened, err := bloom.Open(ctx, c, key)
	noError(t, err)
	want := codeOf(t, s, key)
	do(t, s, "DEL", key)
	add(t, opened, "a", true)
	if got := codeOf(t, s, key); got != want || got == 0 {
		t.Errorf("the new string says rate %d, want %d", got, want)
	}
}
