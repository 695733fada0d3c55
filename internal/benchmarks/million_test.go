// Package benchmarks compares package bloom with other programs. It is its own
// module, because users of the library need not download those programs.
package benchmarks

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// mirrorOf is the size of a way that asks for all items in one call. A Mirror
// answers them from memory, after one refresh.
const mirrorOf = 1 << 40

// batchOf is the number of items in a request of a command for many.
const batchOf = 1000

// way is one way to answer "have I seen this before?" for many items.
type way struct {
	name string // its first word is the name of its fill
	ask  func(items []string)
	size int    // how many items one call of ask gets
	once func() // before all of them, and not counted; may be nil
}

// users returns n e-mail addresses, numbered from from on.
func users(from, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("user-%d@example.com", from+i)
	}
	return all
}

// million is a database, and its client and filter.
type million struct {
	tb     testing.TB
	ctx    context.Context
	s      *upstashtest.Server
	c      *upstash.Client
	filter *bloom.Filter
}

func newMillion(tb testing.TB, n int) *million {
	s := upstashtest.NewServer(tb, upstashtest.WithRedis(testenv.Redis(tb)))
	m := &million{tb: tb, ctx: context.Background(), s: s, c: s.Client()}
	var err error
	m.filter, err = bloom.New(m.c, "seen:filter", bloom.Config{Capacity: uint64(n), FPRate: 0.01})
	m.check(err)
	return m
}

func (m *million) check(err error) {
	m.tb.Helper()
	if err != nil {
		m.tb.Fatal(err)
	}
}

func (m *million) do(cmd upstash.Command) {
	m.tb.Helper()
	r, err := m.c.Do(m.ctx, cmd)
	m.check(err)
	m.check(r.Err())
}

// each sends one command for each item, in one pipeline.
func (m *million) each(items []string, cmd func(string) upstash.Command) {
	m.tb.Helper()
	cmds := make([]upstash.Command, len(items))
	for i, item := range items {
		cmds[i] = cmd(item)
	}
	replies, err := m.c.Pipeline(m.ctx, cmds...)
	m.check(err)
	for _, r := range replies {
		m.check(r.Err())
	}
}

func (m *million) ways() []way {
	setNX := func(item string) upstash.Command {
		return upstash.Cmd("SET", "seen:"+item, "1", "NX", "EX", "86400")
	}
	mirror, err := bloom.NewMirror(m.filter, bloom.MirrorConfig{MaxStale: time.Hour})
	m.check(err)
	return []way{
		{"filter, Mirror with MaxStale", func(items []string) {
			_, err := mirror.ExistsAll(m.ctx, items)
			m.check(err)
		}, mirrorOf, nil},
		{"filter, Mirror, refreshed", func(items []string) {
			m.check(mirror.Refresh(m.ctx))
			_, err := mirror.ExistsAll(m.ctx, items)
			m.check(err)
		}, mirrorOf, func() {
			_, err := m.filter.Add(m.ctx, "added by another")
			m.check(err)
		}},
		{"filter, ExistsAll", func(items []string) {
			_, err := m.filter.ExistsAll(m.ctx, items)
			m.check(err)
		}, batchOf, nil},
		{"filter, Exists", func(items []string) {
			_, err := m.filter.Exists(m.ctx, items[0])
			m.check(err)
		}, 1, nil},
		{"set, SMISMEMBER", func(items []string) {
			m.do(upstash.Cmd("SMISMEMBER", append([]string{"seen:set"}, items...)...))
		}, batchOf, nil},
		{"keys, SET NX EX", func(items []string) { m.do(setNX(items[0])) }, 1, nil},
	}
}

// fill puts all items into each structure and returns how many bytes each
// takes.
func (m *million) fill(n int) map[string]int64 {
	memory := map[string]int64{}
	weigh := func(name string, do func()) {
		before := m.used()
		do()
		memory[name] = m.used() - before
	}
	all := users(0, n)
	// What Redis and its connection keep from the first large command is no
	// part of the filter.
	_, err := m.filter.Load(m.ctx, slices.Values(all))
	m.check(err)
	_, err = m.filter.Delete(m.ctx)
	m.check(err)
	weigh("filter", func() {
		r, err := m.filter.Load(m.ctx, slices.Values(all))
		m.check(err)
		size := float64(m.filter.Geometry().Bytes(bloom.LayoutHeaded))
		m.tb.Logf("Load of %d: %d requests, %d commands, %d bytes (%.4f of the string), %v",
			n, r.Requests, r.Commands, r.Bytes, float64(r.Bytes)/size, r.Duration)
		if r.Requests > 12 || float64(r.Bytes) > 1.05*size {
			m.tb.Errorf("Load took %d requests and %d bytes", r.Requests, r.Bytes)
		}
	})
	weigh("set", func() {
		for part := range slices.Chunk(all, 10_000) {
			m.do(upstash.Cmd("SADD", append([]string{"seen:set"}, part...)...))
		}
	})
	weigh("keys", func() {
		for part := range slices.Chunk(all, 10_000) {
			m.each(part, func(item string) upstash.Command {
				return upstash.Cmd("SET", "seen:"+item, "1", "EX", "86400")
			})
		}
	})
	return memory
}

// used returns how many bytes Redis uses, without the buffers of its clients.
// Redis counts the buffers ten times a second, so the sum is asked for until it
// stays the same.
func (m *million) used() int64 {
	last := m.usedNow()
	for range 100 {
		time.Sleep(250 * time.Millisecond)
		now := m.usedNow()
		if now == last {
			break
		}
		last = now
	}
	return last
}

func (m *million) usedNow() int64 {
	v, err := m.s.Exec("INFO", "memory")
	m.check(err)
	field := func(name string) int64 {
		_, rest, _ := strings.Cut(fmt.Sprint(v), "\n"+name+":")
		line, _, _ := strings.Cut(rest, "\r")
		n, err := strconv.ParseInt(line, 10, 64)
		m.check(err)
		return n
	}
	return field("used_memory") - field("mem_clients_normal")
}

// howMany returns UPBLOOM_MILLION, or else usual.
func howMany(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("UPBLOOM_MILLION")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1000 {
		t.Fatalf("UPBLOOM_MILLION=%q: use a number from 1000 up", text)
	}
	return n
}

// TestMillionChecks measures the cost of a million checks in each way, through
// the same client and server. UPBLOOM_MILLION sets the number of items; the
// default is 20,000. A way that sends one item at a time gets a fiftieth of
// them. Counts and bytes are scaled to a million.
func TestMillionChecks(t *testing.T) {
	n := howMany(t, 20_000)
	m := newMillion(t, n)
	memory := m.fill(n)
	asked := users(n/2, n) // half of them are in
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "a million checks\trequests\tbilled commands\tMB out\tMB in\tseconds\tmemory, MB\t")
	for _, way := range m.ways() {
		some := asked
		if way.size == 1 {
			some = asked[n/2-n/100 : n/2+n/100] // half of these are in too
		}
		if way.once != nil {
			way.once()
		}
		m.s.ResetStats()
		start := time.Now()
		for part := range slices.Chunk(some, min(way.size, len(some))) {
			way.ask(part)
		}
		took := time.Since(start)
		st := m.s.Stats()
		scale := 1e6 / float64(len(some))
		if way.size == mirrorOf {
			scale = 1 // one refresh, however many look-ups there are
		}
		kind := strings.FieldsFunc(way.name, func(r rune) bool { return r == ',' || r == ' ' })[0]
		fmt.Fprintf(w, "%s\t%s\t%s\t%.3g\t%.3g\t%.3g\t%.3g\t\n", way.name,
			human.Count(uint64(math.Round(float64(st.Requests)*scale))),
			human.Count(uint64(math.Round(float64(st.Billed)*scale))), float64(st.BytesIn)*scale/1e6,
			float64(st.BytesOut)*scale/1e6, took.Seconds()*scale, float64(memory[kind])*1e6/float64(n)/1e6)
		if want := int64(len(some) / way.size); way.size != mirrorOf && st.Requests != want {
			t.Errorf("%s: %d requests for %d items, want %d", way.name, st.Requests, len(some), want)
		}
	}
	_ = w.Flush()
	t.Logf("%d items\n%s", n, &table)
}
