package httptransport_test

import (
	"fmt"
	"net"
	"runtime"
	"testing"

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
	for name, opts := range map[string][]upstash.Option{
		"native":   nil,
		"net-http": {upstash.WithTransport(netHTTP)},
	} {
		b.Run("transport="+name, func(b *testing.B) {
			c, err := upstash.New("http://"+cannedServer(b), "token", opts...)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Do(b.Context(), cmd); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// cannedServer answers whenever its input ends with a bracket, as a request
// does.
func cannedServer(b *testing.B) (addr string) {
	const body = `{"result":[0,0,0,0,0,0,0]}`
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 26\r\n\r\n" + body)
	return testenv.Serve(b, func(c net.Conn) {
		for buf := make([]byte, 64<<10); ; {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			if buf[n-1] != ']' {
				continue // a header by itself
			}
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	})
}

// TestMemoryIsFlat: 10,000 calls leave no more live memory than there was
// before.
func TestMemoryIsFlat(t *testing.T) {
	db := upstashtest.NewServer(t)
	tr := httptransport.New(nil)
	defer tr.Close()
	c, err := upstash.New(db.URL, db.Token, upstash.WithTransport(tr))
	if err != nil {
		t.Fatal(err)
	}
	calls := func(n int) {
		for i := range n {
			if _, err := c.Do(t.Context(), upstash.Cmd("SET", "key", fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	live := func() uint64 {
		runtime.GC()
		runtime.GC() // what sync.Pool kept from the first
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	calls(1_000)
	before := live()
	n := 3_000
	if testenv.Long() {
		n = 10_000
	}
	calls(n)
	after := live()
	t.Logf("%d bytes live before, %d after", before, after)
	if after > before+uint64(100*n) {
		t.Errorf("live memory grew by %d bytes in %d calls", after-before, n)
	}
}
