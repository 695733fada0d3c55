package transporttest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// serial is a server that answers request n with answer(n). n counts from 1
// over all connections.
func serial(t *testing.T, answer func(n int64) string) (url string) {
	t.Helper()
	var n atomic.Int64
	return rawServer(t, func(c net.Conn, _ <-chan struct{}) {
		serve(c, func(*http.Request, string) bool { return say(c, answer(n.Add(1))) })
	})
}

// testInterim sends many interim answers before the first real one. That call
// may fail, but later calls must get their own answers.
func (s suite) testInterim(t *testing.T) {
	for _, status := range []string{"102 Processing", "103 Early Hints", "101 Switching Protocols"} {
		s.sub(t, status[:3], func(t *testing.T) {
			url := serial(t, func(n int64) string {
				answer := withLength(fmt.Sprint(n))
				if n == 1 {
					answer = strings.Repeat("HTTP/1.1 "+status+"\r\n\r\n", 7) + answer
				}
				return answer
			})
			tr := s.transport(t, url)
			resp, err := send(t, tr, newRequest(url+"/", "[]"))
			if err == nil && string(resp.Body) != "1" && resp.StatusCode != 101 {
				t.Errorf("the first call got %q with status %d, want its own answer, status 101 or an error",
					resp.Body, resp.StatusCode)
			}
			for want := 2; want < 5; want++ {
				resp := mustSend(t, tr, newRequest(url+"/", "[]"))
				if string(resp.Body) != fmt.Sprint(want) {
					t.Errorf("call %d got %q", want, resp.Body)
				}
			}
		})
	}
}

// testClose has a server announce, in each way of HTTP, the last answer on a
// connection. A request sent there afterwards is lost.
func (s suite) testClose(t *testing.T) {
	for _, field := range []string{
		"Connection: close", "Connection: Close", "CONNECTION: CLOSE",
		"Connection: keep-alive, close", "Connection: keep-alive\r\nConnection: Close",
	} {
		s.sub(t, field, func(t *testing.T) {
			answer := strings.Replace(withLength("ok"), "Content", field+"\r\nContent", 1)
			url := rawServer(t, func(c net.Conn, _ <-chan struct{}) {
				first := true
				serve(c, func(*http.Request, string) bool {
					goOn := first && say(c, answer)
					first = false
					return goOn
				})
			})
			tr := s.transport(t, url)
			for range 3 {
				if resp := mustSend(t, tr, newRequest(url+"/", "[]")); string(resp.Body) != "ok" {
					t.Errorf("got %q, want \"ok\"", resp.Body)
				}
			}
		})
	}
}

// testStrayAnswer has a server answer twice. No later call may get the second
// answer, for which nobody asked.
func (s suite) testStrayAnswer(t *testing.T) {
	s.eachItsOwn(t, serial(t, func(n int64) string {
		return withLength(fmt.Sprint(n)) + withLength("stray")
	}))
}

// eachItsOwn makes calls to a server whose answer is the number of the request.
func (s suite) eachItsOwn(t *testing.T, url string) {
	t.Helper()
	tr := s.transport(t, url)
	for want := range 4 {
		resp := mustSend(t, tr, newRequest(url+"/", "[]"))
		if string(resp.Body) != fmt.Sprint(want+1) {
			t.Errorf("call %d got %q, want its number", want+1, resp.Body)
		}
	}
}

// testPaths: the path of a URL arrives as it was written.
func (s suite) testPaths(t *testing.T) {
	got := make(chan string, 1)
	url, _ := httpServer(t, anyIPv4, func(_ http.ResponseWriter, r *http.Request) { got <- r.RequestURI })
	tr := s.transport(t, url)
	for _, path := range []string{"/", "/a%2Fb//c%20d/", "//a/pipeline", "/%2e%2f/;x=y:1,2/@"} {
		mustSend(t, tr, newRequest(url+path, "[]"))
		if arrived := <-got; arrived != path {
			t.Errorf("the path %s arrived as %s, want it unchanged", path, arrived)
		}
	}
}

// testRefusal has a server refuse a request before it has read all of it. The
// server then neither reads the rest nor closes the connection.
func (s suite) testRefusal(t *testing.T) {
	s.wantRefusal(t, rawServer(t, refuse))
}

func refuse(c net.Conn, wait <-chan struct{}) {
	_, _ = io.ReadFull(c, make([]byte, 1000))
	_, _ = io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno")
	<-wait
}
