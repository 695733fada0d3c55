//go:build unix

package upstash

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// TestStrayAnswerOverTLS: a second answer, in a record that TLS has read but
// not handed out, is not taken for that of the next call.
func TestStrayAnswerOverTLS(t *testing.T) {
	certificate := tlsServer(t, nil)
	var n atomic.Int64
	p := &testProxy{} // listens
	addr := p.listen(t, func(c net.Conn) {
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		buffered := bufio.NewWriter(c) // both records in one segment
		s := tls.Server(&through{c, buffered}, &tls.Config{Certificates: certificate.TLS.Certificates})
		for r := bufio.NewReader(s); ; {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			for _, result := range []string{fmt.Sprint(n.Add(1)), "666"} {
				body := `{"result":` + result + `}`
				_, _ = fmt.Fprintf(s, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			}
			_ = buffered.Flush()
		}
	})
	c := newTLSClient(t, "https://"+addr, certificate, WithRetry(0))
	for want := range int64(4) {
		reply, err := c.Do(t.Context(), Cmd("INCR", "k"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := reply.Int64(); got != want+1 || err != nil {
			t.Errorf("call %d got %d, %v", want+1, got, err)
		}
	}
}

// through writes to w, which is flushed before each read.
type through struct {
	net.Conn
	w *bufio.Writer
}

func (c *through) Write(p []byte) (int, error) { return c.w.Write(p) }

func (c *through) Read(p []byte) (int, error) {
	_ = c.w.Flush()
	return c.Conn.Read(p)
}
