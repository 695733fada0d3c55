//go:build !wasm

package upstash

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// The client parses most headers itself and leaves the others to fasthttp. From
// each header that it accepts, it must read the same as fasthttp.
func FuzzCommonHead(f *testing.F) {
	for _, s := range []string{
		"Content-Length: 5\r\nUpstash-Sync-Token: abc\r\nRetry-After: 3\r\n",
		"content-length:5\r\nCONNECTION: x, Close\r\n",
		"Content-Length: 5\r\nContent-Length: 6\r\n",
		"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
		"Content-Length: +5\r\n", "Content-Length: 5,5\r\n", "Content-Length :5\r\n", "Content-Length: \t05 \r\n",
		"Content-Length: 5\r\n folded\r\n", "Content-Length: 5\nX: y\r\n", "Content-Length: 0\r\n:\r\n",
		"Connection: keep-alive\r\nContent-Length: 5\r\nConnection: close\r\n",
		"Content-Length: 5\r\nUpstash-Sync-Token:\r\n", "X: y\r\n", "X\r\nContent-Length: 5\r\n",
	} {
		f.Add("HTTP/1.1 200 OK", s)
	}
	f.Add("HTTP/1.1 2000", "Content-Length: 5\r\n")
	f.Add("HTTP/1.1 200", "Content-Length: 5\r\nX:\r\r\n")
	f.Add("HTTP/1.0 200 OK", "Content-Length: 5\r\n")
	f.Add("HTTP/1.1 204 No Content", "Content-Length: 5\r\n")
	f.Fuzz(func(t *testing.T, first, fields string) {
		head := []byte(first + "\r\n" + fields + "\r\n")
		if !isHTTP(head) || headEnd(head) != len(head) || !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
			t.Skip()
		}
		h, ok := parseCommon(head)
		if !ok {
			return
		}
		var in fasthttp.Response
		if err := in.Header.Read(bufio.NewReaderSize(bytes.NewReader(head), len(head)+16)); err != nil {
			t.Fatalf("%q is taken, and fasthttp says: %v", head, err)
		}
		if got := in.Header.ContentLength(); got != h.length {
			t.Errorf("%q: length %d, fasthttp's is %d", head, h.length, got)
		}
		if got := in.ConnectionClose() || closes(head); got != h.closes {
			t.Errorf("%q: closes %v, want %v", head, h.closes, got)
		}
		for name, value := range map[string][]byte{headerSyncToken: h.syncToken, headerRetryAfter: h.retryAfter} {
			want := ""
			for n, v := range in.Header.All() {
				if strings.EqualFold(string(n), name) {
					want = string(v)
				}
			}
			if string(value) != want {
				t.Errorf("%q: %s is %q, fasthttp's is %q", head, name, value, want)
			}
		}
	})
}
