//go:build !wasm && !race

package upstash

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// memoryServer answers each request from memory with the answer to an Add, and
// returns its URL.
func memoryServer(b testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	const body = `{"result":[null,4503599627370503,null,0,1,1,0]}`
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nUpstash-Sync-Token: abc\r\n" +
		"Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serveFromMemory(c, answer)
		}
	}()
	return "http://" + l.Addr().String()
}

func serveFromMemory(c net.Conn, answer []byte) {
	defer func() { _ = c.Close() }()
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
			if name, value, _ := bytes.Cut(line, []byte(":")); equalFold(name, "content-length") {
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
// the same exchange by fasthttp with a prepared request.
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
	b.Run("client=fasthttp", func(b *testing.B) {
		c := &fasthttp.HostClient{Addr: strings.TrimPrefix(url, "http://")}
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		req.SetRequestURI(url + "/")
		req.Header.SetMethod("POST")
		req.Header.Set("Authorization", "Bearer "+testToken)
		req.Header.Set("Content-Type", "application/json")
		req.SetBody(cmd.body())
		b.ReportAllocs()
		for b.Loop() {
			if err := c.Do(req, resp); err != nil || resp.StatusCode() != 200 {
				b.Fatal(err)
			}
		}
	})
}
