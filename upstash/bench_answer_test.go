//go:build !wasm

package upstash

import (
	"bytes"
	"testing"
)

// BenchmarkReadAnswer reads the answer to an Add, with a server's usual fields.
func BenchmarkReadAnswer(b *testing.B) {
	answer := []byte("HTTP/1.1 200 OK\r\nServer: fasthttp\r\nDate: Sun, 22 Nov 2026 13:40:00 GMT\r\n" +
		"Content-Type: application/json\r\nUpstash-Sync-Token: ab=1,cd=2\r\nContent-Length: 46\r\n\r\n" +
		`{"result":[0,4503599627370503,null,0,1,1,0,1]}`)
	var from bytes.Reader
	c, x, room := connFrom(&from), new(exchange), make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		from.Reset(answer)
		resp := Response{Body: room, sentToken: "ab=1,cd=2"}
		if _, err := x.read(c, 1<<20, &resp); err != nil || len(resp.Body) != 46 {
			b.Fatalf("%d bytes, %v, want 46", len(resp.Body), err)
		}
		x.resp.Reset()
	}
}
