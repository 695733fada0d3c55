package transporttest

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
)

// faultyServer counts how often each command ran. A command's number decides
// what goes wrong when it comes for the first time.
type faultyServer struct {
	mu     sync.Mutex
	came   map[int]int
	runs   map[int]int
	cancel map[int]func() // ends the context of the caller
	strays bool           // some answers come twice
}

var numberOf = regexp.MustCompile(`number (\d+)`)

// serve answers until a fault ends the connection.
func (s *faultyServer) serve(c net.Conn) {
	defer c.Close()
	serve(c, func(r *http.Request, body string) bool {
		n, _ := strconv.Atoi(numberOf.FindStringSubmatch(body)[1])
		return s.answer(c, n, r.Header.Get("Upstash-Response-Format") != "")
	})
}

func (s *faultyServer) answer(c net.Conn, n int, resp2 bool) (goOn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.came[n]++
	fault := n % 12
	if s.came[n] > 1 {
		fault = 0
	}
	if fault != 1 && fault != 2 {
		s.runs[n]++
	}
	text := fmt.Sprintf("number %d", n)
	body := fmt.Sprintf(`{"result":%q}`, text)
	if resp2 {
		body = "+" + text + "\r\n"
	}
	status := 200
	switch fault {
	case 1:
		reset(c)
		return false
	case 2, 3:
		status = map[int]int{2: 429, 3: 500}[fault]
		body = fmt.Sprintf(`{"error":"ERR %s"}`, text)
	}
	whole := fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
	switch fault {
	case 4:
		reset(c)
		return false
	case 5, 6:
		_, _ = io.WriteString(c, whole[:len(whole)*(fault-4)/3])
		return false
	case 7:
		_, _ = io.WriteString(c, whole)
		return false
	case 8:
		if s.strays {
			whole += whole
		}
	case 9:
		whole = "HTTP/1.1 103 X\r\nLink: y\r\n\r\n" + whole
		for _, b := range []byte(whole) {
			_, _ = c.Write([]byte{b})
		}
		return true
	case 10:
		s.cancel[n]()
	}
	_, _ = io.WriteString(c, whole)
	return true
}

func reset(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// testEachItsOwn: whatever goes wrong with the connections shared by callers, each
// caller gets the answer or the error of its own command. No INCR runs twice, and
// none ran if its error says that a retry is safe.
func (s tlsSuite) testEachItsOwn(t *testing.T, strays bool) {
	for scheme, layer := range map[string]func(net.Conn) net.Conn{
		"http": func(c net.Conn) net.Conn { return c },
		"https": func(c net.Conn) net.Conn {
			return tls.Server(c, &tls.Config{Certificates: s.certificates})
		},
	} {
		s.sub(t, scheme, func(t *testing.T) {
			f := &faultyServer{
				came: map[int]int{}, runs: map[int]int{}, cancel: map[int]func(){}, strays: strays,
			}
			url := scheme + "://" + testenv.Serve(t, func(c net.Conn) { f.serve(layer(c)) })
			f.attack(t, clientOf(t, s.transport(t, url), url, upstash.WithRetry(1),
				upstash.WithBackoff(0, time.Microsecond), upstash.WithTimeout(patience)))
		})
	}
}

// attack makes calls from several goroutines, and looks at all results at the
// end.
func (s *faultyServer) attack(t *testing.T, client *upstash.Client) {
	const callers, calls = 6, 60
	var replies [callers * calls]upstash.Reply
	var errs [callers * calls]error
	var texts [callers * calls]string
	var calling sync.WaitGroup
	for caller := range callers {
		calling.Go(func() {
			for n := caller * calls; n < (caller+1)*calls; n++ {
				ctx, cancel := context.WithCancel(t.Context())
				s.mu.Lock()
				s.cancel[n] = cancel
				s.mu.Unlock()
				// Every seventh is read by a goroutine of its own.
				length := []int{0, 100, 1000, 5000, 8000, 9, 16 << 10}[n%7]
				cmd := upstash.Cmd("INCR", fmt.Sprintf("number %d ", n)+strings.Repeat("x", length))
				if n%5 == 0 {
					cmd = cmd.Binary()
				}
				if replies[n], errs[n] = client.Do(ctx, cmd); errs[n] != nil {
					texts[n] = errs[n].Error()
				}
				cancel()
			}
		})
	}
	calling.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, err := range errs {
		want := fmt.Sprintf("number %d", n)
		switch runs := s.runs[n]; {
		case runs > 1:
			t.Errorf("%s ran %d times: %v", want, runs, err)
		case err == nil:
			if got, err := replies[n].Text(); got != want || err != nil || runs != 1 {
				t.Errorf("%s ran %d times: got %q, %v", want, runs, got, err)
			}
		case upstash.SafeToRetry(err) && runs > 0:
			t.Errorf("%s ran, but a retry is said to be safe: %v", want, err)
		case err.Error() != texts[n]:
			t.Errorf("%s: an error said %q, and now %q", want, texts[n], err)
		}
		if found := numberOf.FindString(texts[n]); found != "" && found != want {
			t.Errorf("%s: got the error of another: %v", want, err)
		}
	}
	if !slices.Contains(errs[:], nil) {
		t.Error("no call succeeded")
	}
}
