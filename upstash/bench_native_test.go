//go:build !wasm && !race

package upstash

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

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
