//go:build !wasm && !race

package upstash

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/internal/conn"
)

// TestAllocationsOfAnExchange counts the allocations of a whole call over a
// socket: those its reply keeps, and two to watch a context that can end.
func TestAllocationsOfAnExchange(t *testing.T) {
	const body = `{"result":[null,4503599627370503,null,0,1,1,0]}`
	c := newClient(t, "http://"+testenv.ServeCanned(t, fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"+
		"Upstash-Sync-Token: abc\r\nContent-Length: %d\r\n\r\n%s", len(body), body)), unobserved)
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	cmd := buildAdd(NewBitField("k"), "k", 1<<52)
	for name, tt := range map[string]struct {
		ctx  context.Context
		want float64
	}{
		"no deadline": {context.Background(), 1},
		"a deadline":  {ctx, 3},
	} {
		n := testing.AllocsPerRun(200, func() {
			if _, err := c.Do(tt.ctx, cmd); err != nil {
				t.Error(err)
			}
		})
		if n > tt.want {
			t.Errorf("%s: %v allocations, want at most %v", name, n, tt.want)
		}
	}
}

// TestMemoryFollowsTheBytes: memory for an answer follows the bytes as they come, not
// the announcement of a header or a chunk. A long one takes a few times its length.
func TestMemoryFollowsTheBytes(t *testing.T) {
	const announced, length = 32 << 20, 4 << 20
	for name, tt := range map[string]struct {
		head string
		body int // bytes that come
		most uint64
	}{
		"length": {
			fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", announced), 1, 256 << 10,
		},
		"chunked": {
			fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", announced), 1, 256 << 10,
		},
		"whole": {fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", length), length, 10 * length},
	} {
		n := allocated(func() {
			client, server := net.Pipe()
			go func() {
				_, _ = io.WriteString(server, tt.head)
				_, _ = server.Write(make([]byte, tt.body))
				_ = server.Close()
			}()
			c := conn.New(client)
			defer c.Close()
			var resp Response
			_, err := new(exchange).read(c, announced, &resp)
			if whole := tt.body == length; (err == nil) != whole || whole && len(resp.Body) != length {
				t.Errorf("%s: %d bytes, %v", name, len(resp.Body), err)
			}
		})
		if n > tt.most { // with what the server takes
			t.Errorf("%s: %d bytes allocated, want %d at most", name, n, tt.most)
		}
	}
}
