//go:build !wasm && !race

package upstash

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/internal/conn"
)

// TestAllocationsOfAnExchange counts the allocations of a whole call over a
// socket: those its reply keeps, and two to watch a context that can end.
func TestAllocationsOfAnExchange(t *testing.T) {
	c := newClient(t, memoryServer(t), unobserved)
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

// memoryServer answers each request from memory with the answer to an Add, and
// returns its URL.
func memoryServer(b testing.TB) string {
	const body = `{"result":[null,4503599627370503,null,0,1,1,0]}`
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nUpstash-Sync-Token: abc\r\n" +
		"Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	return "http://" + testenv.ServeCanned(b, answer)
}

// BenchmarkExchange measures an Add to a server that answers from memory, and
// the same exchange by net/http, which only discards the answer.
func BenchmarkExchange(b *testing.B) {
	url := memoryServer(b)
	cmd := buildAdd(NewBitField("seen:webhooks"), "seen:webhooks", 1<<52|7)
	ends, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for name, ctx := range map[string]context.Context{"plain": context.Background(), "deadline": ends} {
		b.Run("client=upbloom/"+name, func(b *testing.B) {
			c := newClient(b, url)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Do(ctx, cmd); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
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
