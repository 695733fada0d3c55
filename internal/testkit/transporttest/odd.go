package transporttest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/upbloom/upbloom/upstash"
)

// testOdd has an answer that is odd, or ends in two places. A transport reads it
// or refuses it, as one that may have run. In no case does the next call get what
// is left of it.
func (s suite) testOdd(t *testing.T) {
	const head, coded = "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
	const one = `{"result":1}`
	sized := head + "Content-Length: " + strconv.Itoa(len(one)) + "\r\n"
	for name, answer := range map[string]string{
		"two lengths":                     sized + "Content-Length: 1\r\n\r\n" + one,
		"a length twice":                  strings.Replace(sized, "\r\n", "\r\n"+strings.TrimPrefix(sized, head), 1) + "\r\n" + one,
		"list of lengths":                 head + "Content-Length: 12, 12\r\n\r\n" + one,
		"signed length":                   head + "Content-Length: +12\r\n\r\n" + one,
		"space before colon, and no more": head + "Content-Length : 12\r\n\r\n" + one,
		"length and chunks":               sized + "Transfer-Encoding: chunked\r\n\r\nc\r\n" + one + "\r\n0\r\n\r\n",
		"chunks and length":               coded + "Content-Length: 12\r\n\r\nc\r\n" + one + "\r\n0\r\n\r\n",
		"chunks in HTTP/1.0, and no more": strings.Replace(coded, "1.1", "1.0", 1) + "\r\nc\r\n" + one + "\r\n0\r\n\r\n",
		"gzip":                            strings.Replace(coded, "chunked", "gzip", 1) + "\r\n" + one,
		"chunked twice":                   coded + "Transfer-Encoding: chunked\r\n\r\nc\r\n" + one + "\r\n0\r\n\r\n",
		"bare LF":                         head + "Content-Length: 12\n\n" + one,
		"bare LF after a size":            coded + "\r\nc\n" + one + "\r\n0\r\n\r\n",
		"longer than its size":            coded + "\r\nb\r\n" + one + "\r\n0\r\n\r\n",
		"no end of a chunk":               coded + "\r\nc\r\n" + one + "0\r\n\r\n",
		"length in a trailer":             coded + "\r\nc\r\n" + one + "\r\n0\r\nContent-Length: 0\r\n\r\n",
		"a 204 with a body":               "HTTP/1.1 204 No Content\r\nContent-Length: 12\r\n\r\n" + one,
		"control in a name":               sized + "X\x00: y\r\n\r\n" + one,
		"a head of 40 KB":                 sized + strings.Repeat("X: "+strings.Repeat("x", 1000)+"\r\n", 40) + "\r\n" + one,
	} {
		t.Run(name, func(t *testing.T) {
			s.begin(t)
			var n atomic.Int64
			url := rawServer(t, func(c net.Conn, _ <-chan struct{}) {
				for r := bufio.NewReader(c); ; {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					text := answer
					if i := n.Add(1); i > 1 {
						text = withLength(fmt.Sprintf(`{"result":%d}`, i))
					}
					_, _ = io.WriteString(c, text)
					if strings.HasSuffix(name, "and no more") {
						return // some transports read on until here
					}
				}
			})
			c := s.client(t, url)
			r, err := c.Do(t.Context(), upstash.Cmd("INCR", "k"))
			if got, _ := r.Int64(); err == nil && got != 1 {
				t.Errorf("got %d, want 1 or an error", got)
			}
			if err != nil && upstash.SafeToRetry(err) {
				t.Errorf("safe to retry, though the server has answered: %v", err)
			}
			for range 2 {
				r, err := c.Do(t.Context(), upstash.Cmd("INCR", "k"))
				if got, _ := r.Int64(); err == nil && got != n.Load() {
					t.Errorf("a later call got %d, want %d or an error", got, n.Load())
				}
			}
		})
	}
}
