//go:build !wasm && !race

package upstash

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/upbloom/upbloom/upstash/internal/conn"
)

// TestNothingForAnnouncedBytes: memory for an answer follows the bytes as they
// come, not the announcement of a header or a chunk.
func TestNothingForAnnouncedBytes(t *testing.T) {
	const calls = 8
	for name, head := range map[string]string{
		"length":  fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n{", 32<<20),
		"chunked": fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n{", 32<<20),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range calls {
			client, server := net.Pipe()
			go func() {
				_, _ = io.WriteString(server, head)
				_ = server.Close()
			}()
			c := conn.New(client)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if _, err := new(exchange).read(c, 32<<20, new(Response)); err == nil || ctx.Err() != nil {
				t.Errorf("%s: got %v", name, err)
			}
			cancel()
			c.Close()
		}
		runtime.ReadMemStats(&after)
		if n := (after.TotalAlloc - before.TotalAlloc) / calls; n > 256<<10 {
			t.Errorf("%s: %d bytes allocated, want 256 KiB at most, for an answer of %d",
				name, n, len(head))
		}
	}
}

// TestMemoryFollowsTheBytes: a long answer takes a few times its own length.
func TestMemoryFollowsTheBytes(t *testing.T) {
	const length = 4 << 20
	client, server := net.Pipe()
	go func() {
		_, _ = fmt.Fprintf(server, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", length)
		_, _ = server.Write(make([]byte, length))
		_ = server.Close()
	}()
	c := conn.New(client)
	defer c.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var resp Response
	if _, err := new(exchange).read(c, length, &resp); err != nil || len(resp.Body) != length {
		t.Fatalf("read %d bytes, want %d: %v", len(resp.Body), length, err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc - length; n > 8*length { // less what the server took
		t.Errorf("%d bytes allocated beside the body, want 8 times %d at most", n, length)
	}
}
