package transporttest

import (
	"io"
	"net/http"
	"testing"
)

// RunHTTP2 tests transports that speak HTTP/2 without TLS from the first byte
// on. It leaves out the cases of Run whose servers write HTTP/1.1 byte by byte,
// and adds cases with handlers instead.
func RunHTTP2(t *testing.T, newTransport Make, exceptions ...Exception) {
	s := suite{newTransport, exceptions, t.Name() + "/"}
	s.run(t, []namedCase{
		{"protocol", s.testIsHTTP2},
		{"request", s.testRequest},
		{"bodies", s.testBodies},
		{"hosts", s.testHosts},
		{"response headers", s.testResponseHeaders},
		{"keep-alive", s.testKeepAlive},
		{"redirect", s.testRedirect},
		{"dial refused", s.testDialRefused},
		{"buffers", s.testBuffers},
		{"concurrent", s.testConcurrent},
		{"paths", s.testPaths},
		{"limit", s.testLimit},
		{"cut", s.testHandlerCut},
		{"dropped", s.testDropped},
		{"reset", s.testReset},
		{"quotes", s.testHTTP2Quotes},
		{"early answer", s.testHandlerEarlyAnswer},
		{"deadline", func(t *testing.T) { s.endByDeadline(t, handlerStalls()) }},
		{"cancel", func(t *testing.T) { s.endByCancel(t, handlerStalls()) }},
	})
}

func (s suite) testIsHTTP2(t *testing.T) {
	url, _ := httpServer(t, anyIPv4, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	})
	resp := mustSend(t, s.transport(t, url), newRequest(url+"/", "[]"))
	if string(resp.Body) != "HTTP/2.0" {
		t.Errorf("the server was asked over %s, want HTTP/2.0", resp.Body)
	}
}

// testHandlerCut resets the stream in the middle of the body.
func (s suite) testHandlerCut(t *testing.T) {
	url, _ := httpServer(t, anyIPv4, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"result":1}`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	if resp, err := send(t, s.transport(t, url), newRequest(url+"/", "[]")); err == nil {
		t.Errorf("a reset stream: body %q, want an error", resp.Body)
	}
}

func (s suite) testHandlerEarlyAnswer(t *testing.T) {
	url, _ := httpServer(t, anyIPv4, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, 1000))
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = io.WriteString(w, "no")
	})
	s.wantRefusal(t, url)
}

// handlerStalls are stalls of handlers, which end when the client gives up the
// request.
func handlerStalls() []stall {
	handler := func(before http.HandlerFunc) func(*testing.T, func()) string {
		return func(t *testing.T, reached func()) string {
			url, _ := httpServer(t, anyIPv4, func(w http.ResponseWriter, r *http.Request) {
				before(w, r)
				reached()
				<-r.Context().Done()
			})
			return url
		}
	}
	return []stall{
		{"before the header", bigBody, handler(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
		})},
		{"within the body", bigBody, handler(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "abc")
			_ = http.NewResponseController(w).Flush()
		})},
		{"while it takes the request", bigBody, handler(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadFull(r.Body, make([]byte, 1000))
		})},
	}
}
