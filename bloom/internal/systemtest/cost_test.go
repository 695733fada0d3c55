package systemtest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// costs are the calls of the table in COSTS.md, in a filter of 1,000,000 items.
var costs = []struct {
	name string
	call func(ctx context.Context, f *bloom.Filter, items []string) error
}{
	{"Add", func(ctx context.Context, f *bloom.Filter, items []string) error {
		_, err := f.Add(ctx, items[0])
		return err
	}},
	{"Exists", func(ctx context.Context, f *bloom.Filter, items []string) error {
		_, err := f.Exists(ctx, items[0])
		return err
	}},
	{"AddAll, 1,000 items", func(ctx context.Context, f *bloom.Filter, items []string) error {
		_, err := f.AddAll(ctx, items)
		return err
	}},
	{"ExistsAll, 1,000 items", func(ctx context.Context, f *bloom.Filter, items []string) error {
		_, err := f.ExistsAll(ctx, items)
		return err
	}},
	{"Stats", func(ctx context.Context, f *bloom.Filter, _ []string) error {
		_, err := f.Stats(ctx)
		return err
	}},
}

// fullFilter makes a filter at its capacity of 1,000,000 items. Its bits are
// random, because adding a million items takes long.
func fullFilter(
	tb testing.TB, s *upstashtest.Server, c *upstash.Client, scheme bloom.Scheme, p float64,
) *bloom.Filter {
	tb.Helper()
	s.FlushAll()
	f, err := bloom.New(c, bloomtest.Key, bloom.Config{Capacity: 1_000_000, FPRate: p, Scheme: scheme})
	if err != nil {
		tb.Fatal(err)
	}
	g, r := f.Geometry(), rand.New(rand.NewPCG(1, 2))
	body := make([]byte, (g.Bits+7)/8)
	for i := range body {
		x := r.Uint32()
		body[i] = byte(x)
		if scheme == bloom.SchemeBlocked { // at capacity 5 bits in 16 are set, of the others half
			body[i] &= byte(x>>8) | byte(x>>16)&byte(x>>24)
		}
	}
	if _, err := s.Exec("SET", bloomtest.Key, bloomtest.HeaderOf(bloom.KindFilter, g)+string(body)); err != nil {
		tb.Fatal(err)
	}
	if _, err := f.AddAll(tb.Context(), bloomtest.Numbered("item", 1000)); err != nil {
		tb.Fatal(err)
	}
	return f
}

var operation = regexp.MustCompile(`"(GET|SET|INCRBY)"`)

// TestCostTable compares the table in COSTS.md with what a server counts:
// requests, commands, operations of BITFIELD, and bytes.
func TestCostTable(t *testing.T) {
	page, err := os.ReadFile("../../COSTS.md")
	if err != nil {
		t.Fatal(err)
	}
	table := strings.Join(strings.Fields(strings.ReplaceAll(string(page), "|", " ")), " ")
	s := upstashtest.NewServer(t)
	items := bloomtest.Numbered("item", 1000)
	c, w := bloomtest.Watch(t, s)
	for _, p := range []float64{0.01, 0.001} {
		counted := make(map[string][]string) // by call, blocked and then xxh3
		for _, scheme := range []bloom.Scheme{bloom.SchemeBlocked, bloom.SchemeXXH3} {
			f := fullFilter(t, s, c, scheme, p)
			for _, cost := range costs {
				s.ResetStats()
				w.Bodies = nil
				if err := cost.call(t.Context(), f, items); err != nil {
					t.Fatalf("%s: %v", cost.name, err)
				}
				n, operations := s.Stats(), len(operation.FindAllString(w.Bodies[0], -1))
				counted[cost.name] = append(counted[cost.name],
					human.Count(uint64(n.Requests)), human.Count(uint64(n.Commands)), human.Count(uint64(operations)),
					human.Count(uint64(n.BytesIn)), human.Count(uint64(n.BytesOut)))
			}
		}
		for _, cost := range costs {
			row := cost.name
			for i, blocked := range counted[cost.name][:5] {
				if xxh3 := counted[cost.name][5+i]; i > 1 {
					row += " " + blocked + " " + xxh3
				} else if row += " " + blocked; xxh3 != blocked {
					t.Errorf("%s: %s for blocked and %s for xxh3", cost.name, blocked, xxh3)
				}
			}
			if !strings.Contains(table, " "+row+" ") {
				t.Errorf("p=%v: COSTS.md has no row %q", p, row)
			}
		}
	}
}

// TestSizingTable compares the sizes in doc.go with the geometries.
func TestSizingTable(t *testing.T) {
	doc, err := os.ReadFile("../../doc.go")
	if err != nil {
		t.Fatal(err)
	}
	table := strings.Join(strings.Fields(string(doc)), " ")
	for _, n := range []uint64{1_000, 100_000, 1_000_000, 10_000_000, 100_000_000} {
		row := human.Count(n)
		for _, p := range []float64{0.01, 0.001, 1e-6} {
			g, err := bloom.Config{Capacity: n, FPRate: p}.Geometry()
			if err != nil {
				t.Fatal(err)
			}
			size, unit := float64(g.Bytes(bloom.LayoutHeaded))/1e3, "KB"
			if size >= 1000 {
				size, unit = size/1e3, "MB"
			}
			digits := 0
			if size < 10 {
				digits = 1
			}
			row += fmt.Sprintf(" %.*f %s", digits, size, unit)
		}
		if !strings.Contains(table, "// "+row+" //") {
			t.Errorf("doc.go has no row %q", row)
		}
	}
}

// At 1 in 100 an AddAll sends less than a Load if its items are fewer than a 70th
// of the capacity, and more if they are more.
func TestLoadOrAddAll(t *testing.T) {
	s := upstashtest.NewServer(t)
	for _, capacity := range []int{100_000, 1_000_000} {
		f, err := bloom.New(s.Client(), fmt.Sprint(capacity), bloom.Config{Capacity: uint64(capacity), FPRate: 0.01})
		if err == nil {
			_, err = f.Create(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		sends := func(call func() error) int64 {
			s.ResetStats()
			if err := call(); err != nil {
				t.Fatal(err)
			}
			return s.Stats().BytesIn
		}
		load := sends(func() error {
			_, err := f.Load(t.Context(), slices.Values([]string{"one"}))
			return err
		})
		for share, less := range map[int]bool{80: true, 60: false} {
			n := capacity / share
			all := sends(func() error {
				_, err := f.AddAll(t.Context(), bloomtest.Numbered("item", n))
				return err
			})
			if all < load != less {
				t.Errorf("for %d items: AddAll of %d sends %d bytes, and Load %d", capacity, n, all, load)
			}
		}
	}
}

// What an item of a Window or a Scalable takes in a request, in bytes a hash.
func TestBytesAHash(t *testing.T) {
	// The pane of the moment may be the last one, which ends behind 100 MB.
	s := upstashtest.NewServer(t, upstashtest.WithMaxRecord(200<<20))
	items := bloomtest.Numbered("item", 1000)
	var window, scalable costOfHashes
	for _, capacity := range []uint64{1000, 146_628, 1_000_000, 10_000_000} {
		for _, panes := range []int{1, 4} {
			w, err := bloom.NewWindow(s.Client(), fmt.Sprint("window", panes, capacity),
				bloom.WindowConfig{Capacity: capacity, FPRate: 0.01, Span: 24 * time.Hour, Panes: panes})
			if err != nil {
				t.Fatal(err)
			}
			window.take(t, s, w, w.Geometry().Hashes, items)
		}
		l, err := bloom.NewScalable(s.Client(), fmt.Sprint("layers", capacity),
			bloom.ScalableConfig{Capacity: capacity, FPRate: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		scalable.take(t, s, l, l.Geometry().Hashes, items)
	}
	if says := (costOfHashes{add: [2]int{40, 85}, look: [2]int{29, 72}}); !window.isAbout(says) {
		t.Errorf("Window: %+v, and WindowConfig says about %+v", window, says)
	}
	if says := (costOfHashes{add: [2]int{20, 32}, look: [2]int{36, 58}}); !scalable.isAbout(says) {
		t.Errorf("Scalable: %+v, and ScalableConfig says about %+v", scalable, says)
	}
}

// costOfHashes has the fewest bytes a hash, rounded down, and the most, rounded
// up.
type costOfHashes struct{ add, look [2]int }

// isAbout reports whether no end of a range is more than 5 bytes away: offsets in
// the pane of the moment may have a digit more or less.
func (c costOfHashes) isAbout(says costOfHashes) bool {
	near := func(a, b int) bool { return max(a, b)-min(a, b) <= 5 }
	return near(c.add[0], says.add[0]) && near(c.add[1], says.add[1]) &&
		near(c.look[0], says.look[0]) && near(c.look[1], says.look[1])
}

func (c *costOfHashes) take(t *testing.T, s *upstashtest.Server, f interface {
	AddAll(ctx context.Context, items []string) ([]bool, error)
	ExistsAll(ctx context.Context, items []string) ([]bool, error)
}, hashes int, items []string,
) {
	t.Helper()
	first, rest := items[:len(items)*9/10], items[len(items)*9/10:]
	if _, err := f.AddAll(t.Context(), first); err != nil { // what is sent once for each filter
		t.Fatal(err)
	}
	for _, call := range []struct {
		of     func(context.Context, []string) ([]bool, error)
		within *[2]int
	}{{f.AddAll, &c.add}, {f.ExistsAll, &c.look}} {
		s.ResetStats()
		if _, err := call.of(t.Context(), rest); err != nil {
			t.Fatal(err)
		}
		each := float64(s.Stats().BytesIn) / float64(len(rest)*hashes)
		if low := int(each); call.within[0] == 0 || low < call.within[0] {
			call.within[0] = low
		}
		call.within[1] = max(call.within[1], int(math.Ceil(each)))
	}
}

// BenchmarkCost measures the table's calls over HTTP on loopback. The REST
// server of this process and the Redis behind it are part of the figures.
func BenchmarkCost(b *testing.B) {
	s := upstashtest.NewServer(b, upstashtest.WithRedis(testenv.Redis(b)))
	items := bloomtest.Numbered("item", 1000)
	c := s.Client()
	for _, p := range []float64{0.01, 0.001} {
		for _, cost := range costs {
			for _, scheme := range []bloom.Scheme{bloom.SchemeBlocked, bloom.SchemeXXH3} {
				call, _, _ := strings.Cut(cost.name, ",")
				b.Run(fmt.Sprintf("p=%v/call=%s/scheme=%v", p, call, scheme), func(b *testing.B) {
					f := fullFilter(b, s, c, scheme, p)
					b.ReportAllocs()
					s.ResetStats()
					for b.Loop() {
						if err := cost.call(b.Context(), f, items); err != nil {
							b.Fatal(err)
						}
					}
					n := s.Stats()
					b.ReportMetric(float64(n.BytesIn)/float64(b.N), "bytes-out/op")
					b.ReportMetric(float64(n.BytesOut)/float64(b.N), "bytes-in/op")
				})
			}
		}
	}
}
