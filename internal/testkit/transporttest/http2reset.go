package transporttest

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/upbloom/upbloom/upstash"
)

// testReset has a server read a whole request, execute it, and then take it
// back in each way of HTTP/2. Some ways tell a client to send the request
// again, and net/http does so by itself. The command would run twice.
func (s suite) testReset(t *testing.T) {
	code := func(n byte) []byte { return []byte{0, 0, 0, n} }
	reset := func(n byte) func(http2Conn, uint32) {
		return func(c http2Conn, stream uint32) { c.write(frameReset, 0, stream, code(n)...) }
	}
	goAway := func(n byte) func(http2Conn, uint32) {
		return func(c http2Conn, stream uint32) {
			last := binary.BigEndian.AppendUint32(nil, stream-1)
			c.write(frameGoAway, 0, 0, append(last, code(n)...)...)
		}
	}
	for name, takeBack := range map[string]func(http2Conn, uint32){
		"protocol error": reset(http2ProtocolError),
		"refused stream": reset(http2RefusedStream),
		"internal error": reset(http2InternalError),
		"cancel":         reset(http2Cancel),
		"no error":       reset(http2NoError),
		"calm down":      reset(http2CalmDown),
		"going away":     goAway(http2NoError),
		"broken":         goAway(http2ProtocolError),
	} {
		// A transport may take a used connection for dead since its last
		// request.
		for kind, before := range map[string]int64{"new connection": 0, "used connection": 1} {
			s.sub(t, name+", "+kind, func(t *testing.T) {
				var executed atomic.Int64
				url := http2Server(t, func(c http2Conn, stream uint32) {
					if executed.Add(1) == before+1 {
						takeBack(c, stream)
						return
					}
					c.answer(stream, `{"result":"1"}`)
				})
				c := s.client(t, url)
				for range before {
					if _, err := c.Do(t.Context(), upstash.Cmd("INCR", "n")); err != nil {
						t.Fatal(err)
					}
				}
				reply, err := c.Do(t.Context(), upstash.Cmd("INCR", "n"))
				if err == nil {
					t.Errorf("got %v, want an error: the server took the request back", reply)
				} else if upstash.SafeToRetry(err) {
					t.Errorf("safe to retry, though the server had the request: %v", err)
				}
				if n := executed.Load() - before; n != 1 {
					t.Errorf("one call was executed %d times, want once", n)
				}
			})
		}
	}
}

// testHTTP2Quotes is testQuotes over HTTP/2.
func (s suite) testHTTP2Quotes(t *testing.T) {
	const quoted = "secret-key secret-token"
	headers := func(name, value string) func(http2Conn, uint32) {
		return func(c http2Conn, stream uint32) {
			field := slices.Concat([]byte{0, byte(len(name))}, []byte(name), []byte{byte(len(value))}, []byte(value))
			if name != ":status" {
				field = append([]byte{http2Status200}, field...)
			}
			c.write(frameHeaders, flagEndHeaders, stream, field...)
			c.write(frameData, flagEndStream, stream, []byte("{}")...)
		}
	}
	for name, answer := range map[string]func(http2Conn, uint32){
		"going away": func(c http2Conn, stream uint32) {
			c.write(frameGoAway, 0, 0, append([]byte{0, 0, 0, 0, 0, 0, 0, http2CalmDown}, quoted...)...)
			_ = c.Close()
		},
		"status":        headers(":status", quoted),
		"pseudo header": headers(":"+quoted, "x"),
		"name":          headers("X "+quoted, "x"),
		"value":         headers("x", "\x00"+quoted),
		"length":        headers("content-length", quoted),
		"no HTTP/2":     func(c http2Conn, _ uint32) { _, _ = io.WriteString(c, quoted+quoted); _ = c.Close() },
	} {
		s.sub(t, name, func(t *testing.T) {
			url := http2Server(t, answer)
			wantNoQuote(t, s.client(t, url))
		})
	}
}

// http2Server calls execute for each request once it is complete. It ignores
// the contents of the request.
func http2Server(t *testing.T, execute func(c http2Conn, stream uint32)) (url string) {
	return rawServer(t, func(conn net.Conn, _ <-chan struct{}) {
		if _, err := io.ReadFull(conn, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return
		}
		c := http2Conn{conn}
		c.write(frameSettings, 0, 0)
		for {
			kind, flags, stream, payload, err := c.read()
			switch {
			case err != nil:
				return
			case kind == frameData || kind == frameHeaders:
				if flags&flagEndStream != 0 {
					execute(c, stream)
				}
			case (kind == frameSettings || kind == framePing) && flags&flagAck == 0:
				if kind == frameSettings {
					payload = nil
				}
				c.write(kind, flagAck, 0, payload...)
			}
		}
	})
}

// An http2Conn writes and reads frames of HTTP/2 (RFC 9113).
type http2Conn struct{ net.Conn }

const (
	frameData     = 0
	frameHeaders  = 1
	frameReset    = 3
	frameSettings = 4
	framePing     = 6
	frameGoAway   = 7

	flagEndStream  = 1
	flagAck        = 1
	flagEndHeaders = 4
)

// http2Status200 is the field ":status: 200" (RFC 7541, appendix A).
const http2Status200 = 0x88

// These are the error codes of RFC 9113.
const (
	http2NoError       = 0
	http2ProtocolError = 1
	http2InternalError = 2
	http2RefusedStream = 7
	http2Cancel        = 8
	http2CalmDown      = 11
)

// write writes a frame. Its error shows up in the next read.
func (c http2Conn) write(kind, flags byte, stream uint32, payload ...byte) {
	n := len(payload)
	head := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	_, _ = c.Write(append(binary.BigEndian.AppendUint32(head, stream), payload...))
}

func (c http2Conn) read() (kind, flags byte, stream uint32, payload []byte, err error) {
	var head [9]byte
	if _, err = io.ReadFull(c, head[:]); err != nil {
		return 0, 0, 0, nil, err
	}
	payload = make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	_, err = io.ReadFull(c, payload)
	return head[3], head[4], binary.BigEndian.Uint32(head[5:]), payload, err
}

func (c http2Conn) answer(stream uint32, body string) {
	c.write(frameHeaders, flagEndHeaders, stream, http2Status200)
	c.write(frameData, flagEndStream, stream, []byte(body)...)
}
