//go:build !wasm && !race

package upstash

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/internal/conn"
)

// TestAllocationsOfAnExchange counts the allocations of a whole call over a
// socket: those its reply keeps, and two to watch a context that can end.
func TestAllocationsOfAnExchange(t *testing.T) {
	c, err := New(memoryServer(t), testToken, unobserved)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
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

// memoryServer answers each request from memory with the answer to an Add, and
// returns its URL.
func memoryServer(b testing.TB) string {
	const body = `{"result":[null,4503599627370503,null,0,1,1,0]}`
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nUpstash-Sync-Token: abc\r\n" +
		"Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	return "http://" + testenv.Serve(b, func(c net.Conn) { serveFromMemory(c, answer) })
}

func serveFromMemory(c net.Conn, answer []byte) {
	r := bufio.NewReaderSize(c, 64<<10)
	for {
		length := 0
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) == 2 {
				break
			}
			if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("content-length")) {
				for length = 0; len(value) > 0; value = value[1:] {
					if value[0] >= '0' && value[0] <= '9' {
						length = 10*length + int(value[0]-'0')
					}
				}
			}
		}
		if _, err := r.Discard(length); err != nil {
			return
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// BenchmarkExchange measures an Add to a server that answers from memory, and
// the same exchange by net/http, which only discards the answer.
func BenchmarkExchange(b *testing.B) {
	url := memoryServer(b)
	cmd := buildAdd(NewBitField("seen:webhooks"), "seen:webhooks", 1<<52|7)
	b.Run("client=upbloom/plain", func(b *testing.B) {
		c, err := New(url, testToken)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Do(context.Background(), cmd); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("client=upbloom/deadline", func(b *testing.B) {
		c, err := New(url, testToken)
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Do(ctx, cmd); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("client=net/http", func(b *testing.B) {
		c := &http.Client{Transport: &http.Transport{}}
		defer c.CloseIdleConnections()
		body := cmd.body()
		b.ReportAllocs()
		for b.Loop() {
			req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+testToken)
			req.Header.Set("Content-Type", "application/json")
			resp, err := c.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			_, err = io.Copy(io.Discard, resp.Body)
			if _ = resp.Body.Close(); err != nil || resp.StatusCode != 200 {
				b.Fatal(resp.StatusCode, err)
			}
		}
	})
}
