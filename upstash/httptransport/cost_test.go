//go:build !race

package httptransport_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// BenchmarkDo compares the native default with net/http, over loopback and
// against a server that allocates nothing.
func BenchmarkDo(b *testing.B) {
	cmd := upstash.NewBitField("filter").SetBits(128, []uint64{1, 2, 3, 4, 5, 6, 7}).Command()
	netHTTP := httptransport.New(nil)
	b.Cleanup(func() { _ = netHTTP.Close() })
	ends, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	for name, tt := range map[string]struct {
		ctx  context.Context
		opts []upstash.Option
	}{
		"native":          {b.Context(), nil},
		"native/deadline": {ends, nil},
		"net-http":        {b.Context(), []upstash.Option{upstash.WithTransport(netHTTP)}},
	} {
		b.Run("transport="+name, func(b *testing.B) {
			const body = `{"result":[0,0,0,0,0,0,0]}`
			c, err := upstash.New("http://"+testenv.ServeCanned(b, []byte("HTTP/1.1 200 OK\r\n"+
				"Content-Type: application/json\r\nContent-Length: 26\r\n\r\n"+body)), "token", tt.opts...)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Do(tt.ctx, cmd); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestMemoryIsFlat: thousands of calls, over the native default and over net/http, leave
// neither memory nor connections nor goroutines behind.
func TestMemoryIsFlat(t *testing.T) {
	s := upstashtest.NewServer(t)
	netHTTP := httptransport.New(nil)
	defer netHTTP.Close()
	n := 3_000
	if testenv.Long() {
		n = 10_000
	}
	for name, tt := range map[string]struct {
		c     *upstash.Client
		bytes uint64 // that the live heap may grow, of the server in this process too
	}{
		"native":   {s.Client(), 256 << 10},
		"net/http": {s.Client(upstash.WithTransport(netHTTP)), uint64(100 * n)},
	} {
		calls := func(n int) {
			for i := range n {
				key := fmt.Sprint("key-", i%100)
				if _, err := tt.c.Do(t.Context(), upstash.Cmd("SET", key, "value", "EX", "60")); err != nil {
					t.Fatal(err)
				}
			}
		}
		live := func() uint64 {
			runtime.GC()
			runtime.GC() // what sync.Pool kept from the first, and what that finalized
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		calls(1000)
		before, routines := live(), runtime.NumGoroutine()
		calls(n)
		after, routinesAfter := live(), runtime.NumGoroutine()
		// The server may end the last call later than the client.
		for end := time.Now().Add(testenv.Patience); routinesAfter > routines && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
			routinesAfter = runtime.NumGoroutine()
		}
		t.Logf("%s: live heap %d and %d bytes, %d and %d goroutines", name, before, after, routines, routinesAfter)
		if after > before+tt.bytes {
			t.Errorf("%s: the live heap grew from %d to %d bytes", name, before, after)
		}
		if routinesAfter > routines {
			t.Errorf("%s: the goroutines grew from %d to %d", name, routines, routinesAfter)
		}
	}
}
