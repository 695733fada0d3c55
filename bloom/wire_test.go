package bloom

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash"
)

// wireFilter is a handle that sends nothing.
func wireFilter(tb testing.TB) *Filter {
	tb.Helper()
	return newWireFilter(tb, nil)
}

// newWireFilter makes a handle whose every request gets the same answer.
func newWireFilter(tb testing.TB, answer upstash.Transport) *Filter {
	tb.Helper()
	c, err := upstash.New("https://db.example.com", "token",
		upstash.WithTransport(answer), upstash.WithRetry(0))
	if err != nil {
		tb.Fatal(err)
	}
	f, err := New(c, "seen:webhooks", Config{Capacity: 1_000_000, FPRate: 0.01})
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

// replyTo is the reply to an Add or an Exists of new items.
func replyTo(tb testing.TB, f *Filter, write bool, items int) upstash.Reply {
	tb.Helper()
	body := fmt.Sprintf(`{"result":[%d%s]}`, f.header, strings.Repeat(",0", items*f.geo.Hashes))
	if write {
		body = strings.Replace(body, "[", "[null,", 1)
	}
	r, err := newWireFilter(tb, always(body)).client.Do(tb.Context(), upstash.Cmd("PING"))
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func BenchmarkEncode(b *testing.B) {
	f := wireFilter(b)
	for _, c := range []struct {
		op    string
		begin func(*upstash.BitField)
		item  func(*scratch, string)
	}{{"add", f.beginWrite, f.setItem}, {"exists", f.beginRead, f.getItem}} {
		for _, n := range []int{1, 1000} {
			b.Run(fmt.Sprintf("op=%s/items=%d/k=%d", c.op, n, f.geo.Hashes), func(b *testing.B) {
				b.ReportAllocs()
				s := new(scratch)
				for b.Loop() {
					c.begin(&s.cmd)
					for range n {
						c.item(s, "user-123@example.com")
					}
				}
				b.ReportMetric(float64(s.cmd.Size()), "body-bytes")
				perItem(b, n)
			})
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	f := wireFilter(b)
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("op=add/items=%d/k=%d", n, f.geo.Hashes), func(b *testing.B) {
			b.ReportAllocs()
			r, s := replyTo(b, f, true, n), new(scratch)
			f.beginWrite(&s.cmd)
			for range n {
				f.setItem(s, "user-123@example.com")
			}
			for b.Loop() {
				if _, err := f.readWrite(r, s); err != nil {
					b.Fatal(err)
				}
			}
			perItem(b, n)
		})
	}
}

func perItem(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/item")
}
