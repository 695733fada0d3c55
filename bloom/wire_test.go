package bloom

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

// wireSchemes are the schemes of plain filters.
var wireSchemes = []Scheme{SchemeBlocked, SchemeXXH3, SchemeFNV1a}

// newWireFilter makes a handle whose requests are all answered by answer. If
// answer is nil, the handle must send nothing.
func newWireFilter(tb testing.TB, scheme Scheme, answer upstash.Transport) *Filter {
	tb.Helper()
	c, err := upstash.New("https://db.example.com", "token",
		upstash.WithTransport(answer), upstash.WithRetry(0))
	noError(tb, err)
	f, err := New(c, "seen:webhooks", Config{Capacity: 1_000_000, FPRate: 0.01, Scheme: scheme})
	noError(tb, err)
	return f
}

type always string

func (a always) RoundTrip(_ context.Context, _ *upstash.Request, resp *upstash.Response) error {
	resp.StatusCode = 200
	resp.Body = append(resp.Body, a...)
	return nil
}

// testWrite and testRead build the command of n equal items.
func testWrite(r *engine.Record, n int) *engine.Request {
	q := r.BeginWrite(context.Background(), engine.Options{})
	for range n {
		q.AppendWrite("user-123@example.com")
	}
	return q
}

func testRead(r *engine.Record, n int) *engine.Request {
	q := r.BeginRead(context.Background(), engine.Options{})
	for range n {
		q.AppendRead("user-123@example.com")
	}
	return q
}

// answered sets a reply of zeros for all bits.
func answered(q *engine.Request, tb testing.TB, write bool) *engine.Request {
	tb.Helper()
	head := fmt.Sprintf("%d", q.Rec.Header)
	fields := 1
	if write {
		head, fields = fmt.Sprintf("null,%d,null", q.Rec.Header), 3
	}
	body := `{"result":[` + head + strings.Repeat(",0", q.Cmd.Len()-fields) + `]}`
	f := newWireFilter(tb, q.Rec.Items.(*plain).geo.Scheme, always(body))
	var err error
	if q.Reply, err = f.rec.Client.Do(tb.Context(), upstash.Cmd("PING")); err != nil {
		tb.Fatal(err)
	}
	return q
}

// A look-up of a blocked filter reads one word for two positions, an Add writes
// each position, and no item takes more bytes than a batch reserves for it.
func TestOperationsAnItem(t *testing.T) {
	for _, c := range []struct {
		scheme       Scheme
		reads, write int
	}{{SchemeBlocked, 2, 4}, {SchemeXXH3, 7, 7}, {SchemeFNV1a, 7, 7}} {
		f := newWireFilter(t, c.scheme, nil)
		r := &f.rec.Record
		if n := testRead(r, 1).Cmd.Len() - 1; n != c.reads {
			t.Errorf("%v: a look-up is %d operations, want %d", c.scheme, n, c.reads)
		}
		if n := testWrite(r, 1).Cmd.Len() - 3; n != c.write {
			t.Errorf("%v: an Add is %d operations, want %d", c.scheme, n, c.write)
		}
		one, ten := testWrite(r, 1).Size(), testWrite(r, 10).Size()
		if most := 9 * f.rec.Items.ItemBytes(true); ten-one > most {
			t.Errorf("%v: 9 items take %d bytes, and %d are allowed for", c.scheme, ten-one, most)
		}
	}
}

// BenchmarkEncode measures what building a request costs, which allocates
// nothing but the texts of a Cuckoo's items.
func BenchmarkEncode(b *testing.B) {
	recs := newWireKinds(b)
	for _, scheme := range wireSchemes {
		recs["Filter/scheme="+scheme.String()] = &newWireFilter(b, scheme, nil).rec.Record
	}
	for kind, rec := range recs {
		for op, build := range map[string]func(*engine.Record, int) *engine.Request{"Add": testWrite, "Exists": testRead} {
			for _, n := range []int{1, 1000} {
				b.Run(fmt.Sprintf("kind=%s/call=%s/items=%d", kind, op, n), func(b *testing.B) {
					build(rec, n).Free() // the request grows once
					b.ReportAllocs()
					size := 0
					for b.Loop() {
						q := build(rec, n)
						size = q.Size()
						q.Free()
					}
					b.ReportMetric(float64(size), "body-bytes")
					perItem(b, n)
				})
			}
		}
	}
}

// BenchmarkDecode measures what judging an answer costs, which allocates nothing.
func BenchmarkDecode(b *testing.B) {
	for _, scheme := range wireSchemes {
		rec := &newWireFilter(b, scheme, nil).rec.Record
		for _, n := range []int{1, 1000} {
			b.Run(fmt.Sprintf("call=Add/scheme=%v/items=%d", scheme, n), func(b *testing.B) {
				b.ReportAllocs()
				q := answered(testWrite(rec, n), b, true)
				for b.Loop() {
					if err := q.JudgeWrite(); err != nil {
						b.Fatal(err)
					}
				}
				perItem(b, n)
			})
			b.Run(fmt.Sprintf("call=Exists/scheme=%v/items=%d", scheme, n), func(b *testing.B) {
				b.ReportAllocs()
				q := answered(testRead(rec, n), b, false)
				for b.Loop() {
					q.Found = q.Found[:0]
					if err := q.JudgeRead(true); err != nil {
						b.Fatal(err)
					}
				}
				perItem(b, n)
			})
		}
	}
}

func perItem(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/item")
}

// newWireKinds makes handles that ask for the time at most.
func newWireKinds(tb testing.TB) map[string]*engine.Record {
	tb.Helper()
	c := newWireFilter(tb, SchemeBlocked, always(`{"result":["1800000000","0"]}`)).rec.Client
	recs := map[string]*engine.Record{}
	for _, panes := range []int{1, 4} {
		w, err := NewWindow(c, "seen:webhooks", WindowConfig{
			Capacity: 1_000_000, FPRate: 0.01, Span: time.Hour, Panes: panes,
		})
		noError(tb, err)
		recs[fmt.Sprintf("Window/panes=%d", panes)] = &w.rec.Record
	}
	f, err := NewCuckoo(c, "names", CuckooConfig{Capacity: 1_000_000, FPRate: 0.01})
	noError(tb, err)
	recs["Cuckoo"] = &f.rec.Record
	return recs
}

// FuzzExistsReply gives Exists any response body. If it accepts one, another
// JSON reader must find the same in it: the header, and k bits of 0 or 1.
func FuzzExistsReply(f *testing.F) {
	header := newWireFilter(f, SchemeXXH3, nil).rec.Header
	for _, result := range []string{
		"[%d,1,1,1,1,1,1,1]", "[%d,0,1,1,1,1,1,1]", "[%d,1,1,1,1,1,1]", "[%d,1,1,1,1,1,1,1,1]",
		"[%d,null,1,1,1,1,1,1]", "[ %d , 1,1,1,1,1,1,0 ]", "[%d.0,0,0,0,0,0,0,0]", "[0,0,0,0,0,0,0,0]",
	} {
		f.Add(`{"result":` + fmt.Sprintf(result, header) + `}`)
		f.Add(`{"error":null,"result":` + fmt.Sprintf(result, header) + `}`)
	}
	f.Add(`{"error":"ERR no"}`)
	f.Fuzz(func(t *testing.T, body string) {
		filter := newWireFilter(t, SchemeXXH3, always(body))
		found, err := filter.Exists(t.Context(), "user-123@example.com")
		if err != nil {
			if found {
				t.Fatalf("found, with %v", err)
			}
			return
		}
		var members map[string]json.RawMessage
		var result []*int64
		if err := json.Unmarshal([]byte(body), &members); err != nil {
			t.Fatalf("an answer from something that is not JSON: %v", err)
		}
		if err := json.Unmarshal(members["result"], &result); err != nil {
			t.Fatalf("an answer from something that is not an array of integers: %v", err)
		}
		if len(result) != 1+filter.rec.geo.Hashes || result[0] == nil || *result[0] != filter.rec.Header {
			t.Fatalf("an answer from %d elements, or another header", len(result))
		}
		all := true
		for _, bit := range result[1:] {
			if bit == nil || *bit != 0 && *bit != 1 {
				t.Fatal("an answer from something that is not a bit")
			}
			all = all && *bit == 1
		}
		if found != all {
			t.Fatalf("Exists = %v, want %v", found, all)
		}
	})
}

func BenchmarkPositions(b *testing.B) {
	const email = "user-123@example.com"
	for _, c := range []struct {
		g    Geometry
		item string
	}{
		{Geometry{Bits: 10_746_333, Hashes: 4}, email},
		{Geometry{Bits: 10_746_333, Hashes: 4, Seed: 42}, email},
		{Geometry{Bits: 10_746_333, Hashes: 4}, strings.Repeat("x", 1000)},
		{Geometry{Bits: 9_585_059, Hashes: 7, Scheme: SchemeXXH3}, email},
		{Geometry{Bits: 1<<32 - 192, Hashes: 30, Scheme: SchemeXXH3}, email},
		{Geometry{Bits: 9_585_059, Hashes: 7, Scheme: SchemeFNV1a}, email},
	} {
		name := fmt.Sprintf("scheme=%v/seeded=%t/m=%d/k=%d/bytes=%d",
			c.g.Scheme, c.g.Seed != 0, c.g.Bits, c.g.Hashes, len(c.item))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			dst := make([]uint64, 0, format.MaxHashes)
			for b.Loop() {
				dst = c.g.Positions(dst[:0], c.item)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.g.Hashes), "ns/position")
		})
	}
}

func BenchmarkDigest(b *testing.B) {
	for _, seed := range []uint64{0, 42} {
		b.Run(fmt.Sprintf("seeded=%t/bytes=20", seed != 0), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cells.Digest("user-123@example.com", seed)
			}
		})
	}
}

// Config.Geometry runs once for each handle, and some programs make a handle
// for each request.
func BenchmarkConfigGeometry(b *testing.B) {
	for _, scheme := range schemes {
		b.Run("scheme="+scheme.String(), func(b *testing.B) {
			b.ReportAllocs()
			cfg := Config{Capacity: 1_000_000, FPRate: 0.01, Scheme: scheme}
			for b.Loop() {
				if _, err := cfg.Geometry(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
