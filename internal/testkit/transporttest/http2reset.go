package transporttest

import (
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/upbloom/upbloom/upstash"
)

// testReset has a server read a whole request, execute it, and then take it
// back in each way of HTTP/2. Some ways tell a client to send the request
// again, and net/http does so by itself. The command would run twice.
func (s suite) testReset(t *testing.T) {
	reset := func(code http2.ErrCode) func(*http2.Framer, uint32) {
		return func(f *http2.Framer, stream uint32) { _ = f.WriteRSTStream(stream, code) }
	}
	goAway := func(code http2.ErrCode) func(*http2.Framer, uint32) {
		return func(f *http2.Framer, stream uint32) { _ = f.WriteGoAway(stream-1, code, nil) }
	}
	for name, takeBack := range map[string]func(*http2.Framer, uint32){
		"protocol error": reset(http2.ErrCodeProtocol),
		"refused stream": reset(http2.ErrCodeRefusedStream),
		"internal error": reset(http2.ErrCodeInternal),
		"cancel":         reset(http2.ErrCodeCancel),
		"no error":       reset(http2.ErrCodeNo),
		"calm down":      reset(http2.ErrCodeEnhanceYourCalm),
		"going away":     goAway(http2.ErrCodeNo),
		"broken":         goAway(http2.ErrCodeProtocol),
	} {
		// A transport may assume that a used connection has died since its last
		// request.
		for kind, before := range map[string]int64{"new connection": 0, "used connection": 1} {
			t.Run(name+", "+kind, func(t *testing.T) {
				s.begin(t)
				var executed atomic.Int64
				url := http2Server(t, func(f *http2.Framer, stream uint32) {
					if executed.Add(1) == before+1 {
						takeBack(f, stream)
						return
					}
					answerHTTP2(f, stream, `{"result":"1"}`)
				})
				c := s.client(t, url)
				for range before {
					if _, err := c.Do(t.Context(), upstash.Cmd("INCR", "n")); err != nil {
						t.Fatal(err)
					}
				}
				reply, err := c.Do(t.Context(), upstash.Cmd("INCR", "n"))
				if err == nil {
					t.Errorf("got %v, though the server took the request back", reply)
				} else if upstash.SafeToRetry(err) {
					t.Errorf("safe to retry, though the server had the request: %v", err)
				}
				if n := executed.Load() - before; n != 1 {
					t.Errorf("one call was executed %d times", n)
				}
			})
		}
	}
}

// http2Server calls execute for each request once it is complete. It ignores
// the contents of the request.
func http2Server(t *testing.T, execute func(f *http2.Framer, stream uint32)) (url string) {
	return rawServer(t, func(c net.Conn, _ <-chan struct{}) {
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		f := http2.NewFramer(c, c)
		_ = f.WriteSettings()
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if !frame.IsAck() {
					_ = f.WriteSettingsAck()
				}
			case *http2.PingFrame:
				if !frame.IsAck() {
					_ = f.WritePing(true, frame.Data)
				}
			case *http2.HeadersFrame:
				if frame.StreamEnded() {
					execute(f, frame.StreamID)
				}
			case *http2.DataFrame:
				if frame.StreamEnded() {
					execute(f, frame.StreamID)
				}
			}
		}
	})
}

func answerHTTP2(f *http2.Framer, stream uint32, body string) {
	var head bytes.Buffer
	_ = hpack.NewEncoder(&head).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: head.Bytes(), EndHeaders: true})
	_ = f.WriteData(stream, true, []byte(body))
}
