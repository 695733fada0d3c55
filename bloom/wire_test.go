package bloom

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/engine"
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
	if err != nil {
		tb.Fatal(err)
	}
	f, err := New(c, "seen:webhooks", Config{Capacity: 1_000_000, FPRate: 0.01, Scheme: scheme})
	if err != nil {
		tb.Fatal(err)
	}
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
	q := r.BeginWrite(context.Background(), engine.Call{})
	for range n {
		q.AppendWrite("user-123@example.com")
	}
	return q
}

func testRead(r *engine.Record, n int) *engine.Request {
	q := r.BeginRead(context.Background(), engine.Call{})
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

func BenchmarkEncode(b *testing.B) {
	for _, scheme := range wireSchemes {
		f := newWireFilter(b, scheme, nil)
		for _, op := range []struct {
			name  string
			build func(*engine.Record, int) *engine.Request
		}{{"add", testWrite}, {"exists", testRead}} {
			for _, n := range []int{1, 1000} {
				b.Run(fmt.Sprintf("op=%s/scheme=%v/items=%d", op.name, scheme, n), func(b *testing.B) {
					b.ReportAllocs()
					size := 0
					for b.Loop() {
						q := op.build(&f.rec.Record, n)
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

func BenchmarkDecode(b *testing.B) {
	for _, scheme := range wireSchemes {
		f := newWireFilter(b, scheme, nil)
		for _, n := range []int{1, 1000} {
			b.Run(fmt.Sprintf("op=add/scheme=%v/items=%d", scheme, n), func(b *testing.B) {
				b.ReportAllocs()
				q := answered(testWrite(&f.rec.Record, n), b, true)
				for b.Loop() {
					if err := q.JudgeWrite(); err != nil {
						b.Fatal(err)
					}
				}
				perItem(b, n)
			})
			b.Run(fmt.Sprintf("op=exists/scheme=%v/items=%d", scheme, n), func(b *testing.B) {
				b.ReportAllocs()
				q := answered(testRead(&f.rec.Record, n), b, false)
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
