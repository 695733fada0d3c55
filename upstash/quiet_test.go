package upstash

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// quoting is a transport whose errors quote the header, as those of a platform's
// SDK may.
func quoting(cause error) Transport {
	return quotingTransport(func(req *Request) error {
		return NotSent(fmt.Errorf("%w: %s %s", cause, req.URL, req.Header[1].Value))
	})
}

func TestTransportErrorsHideTheToken(t *testing.T) {
	cause := errors.New("no route")
	var seen []string
	c := clientOver(t, quoting(cause), WithRetry(1), WithBackoff(0, 0),
		observing(func(e Event) { seen = append(seen, fmt.Sprint(e)+wholeChain(e.Err)) }))
	_, err := c.Do(t.Context(), Cmd("SET", secretKey, secretItem))
	if !errors.Is(err, cause) || !SafeToRetry(err) {
		t.Errorf("got %v, want one that wraps the cause and may be retried", err)
	}
	if len(seen) != 2 {
		t.Errorf("%d events, want 2", len(seen))
	}
	for _, text := range append(seen, wholeChain(err)) {
		if strings.Contains(text, testToken) {
			t.Errorf("%q shows the token", text)
		}
		if !strings.Contains(text, "no route") {
			t.Errorf("%q does not say what happened", text)
		}
	}
}

// TestTransportErrorsHideTheRequest: an error may quote the whole request, plain, as
// Go strings or cut, in whatever type.
func TestTransportErrorsHideTheRequest(t *testing.T) {
	for _, form := range []string{"no route: %s %s %s", "no route: %q %q %q", "no route: %.30s %.30s %.30s"} {
		for name, as := range map[string]func(error) error{
			"plain":       func(err error) error { return err },
			"not sent":    NotSent,
			"wrapped":     func(err error) error { return fmt.Errorf("sdk: %w", err) },
			"network":     func(err error) error { return &net.OpError{Op: "read", Net: "tcp", Err: err} },
			"certificate": func(err error) error { return &tls.CertificateVerificationError{Err: err} },
		} {
			c := clientOver(t, quotingTransport(func(req *Request) error {
				return as(fmt.Errorf(form, req.URL, req.Header[1].Value, req.Body))
			}), WithRetry(0))
			_, ofJSON := c.Do(t.Context(), Cmd("SET", secretKey, secretItem))
			_, ofRaw := c.Do(t.Context(), RawCmd("SET", []byte(secretItem), secretKey))
			shown := wholeChain(ofJSON) + wholeChain(ofRaw)
			if strings.Count(shown, "no route") < 2 {
				t.Errorf("%s, %s: got %v and %v, want the cause", name, form, ofJSON, ofRaw)
			}
			for _, secret := range []string{testToken, secretKey, secretItem} {
				if strings.Contains(shown, secret) {
					t.Errorf("%s, %s: shows %s: %s", name, form, secret, shown)
				}
			}
		}
	}
}

// quotingTransport is a transport that fails after it has seen the request.
type quotingTransport func(*Request) error

func (f quotingTransport) RoundTrip(_ context.Context, req *Request, _ *Response) error {
	return f(req)
}

// wholeChain returns the texts of all errors that err wraps.
func wholeChain(err error) string {
	text := fmt.Sprintf("%v %+v %#v", err, err, err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if next := e.Unwrap(); next != nil {
			text += wholeChain(next)
		}
	case interface{ Unwrap() []error }:
		for _, next := range e.Unwrap() {
			text += wholeChain(next)
		}
	}
	return text
}

// TestErrorsOfTheSystemStay: errors.As finds them, wherever a transport puts them.
func TestErrorsOfTheSystemStay(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	for _, want := range []error{
		reset, syscall.EPIPE, &net.DNSError{Err: "no such host", Name: "db.test", IsNotFound: true},
		x509.UnknownAuthorityError{},
		&tls.CertificateVerificationError{Err: x509.HostnameError{}},
		context.DeadlineExceeded, &fs.PathError{Op: "open", Path: "/dev/null", Err: fs.ErrNotExist},
	} {
		sent := fmt.Errorf("%s: %w", testToken, errors.Join(errors.New(testToken), fmt.Errorf("%s: %w", testToken, want)))
		c, _ := newFake(t, []answer{{err: sent}}, WithRetry(0))
		_, err := c.Do(t.Context(), Cmd("GET", "k"))
		if found := reflect.New(reflect.TypeOf(want)); !errors.As(err, found.Interface()) {
			t.Errorf("%T: not found in %v", want, err)
		}
		if text := wholeChain(err); strings.Contains(text, testToken) {
			t.Errorf("%T: the chain has the token: %s", want, text)
		}
	}
}

// Each fact is said once, whatever the attempts ended in.
func TestErrorsAfterSeveralAttempts(t *testing.T) {
	failed := answer{status: 500, body: `{"error":"ERR x"}`}
	slow := answer{status: 429, body: `{"error":"ERR slow"}`}
	for _, tt := range []struct {
		name    string
		answers []answer
		cmd     Command
		want    string
	}{
		{
			"500 for what is not repeatable",
			[]answer{failed},
			Cmd("INCR", "k"), "upstash: INCR: ERR x (HTTP status 500); the command may have run",
		},
		{
			"500 twice",
			[]answer{failed, failed},
			Cmd("SET", "k", "v"), "upstash: SET: ERR x (HTTP status 500), after 2 attempts; the command may have run",
		},
		{
			"500 twice for a read",
			[]answer{failed, failed},
			Cmd("GET", "k"), "upstash: GET: ERR x (HTTP status 500), after 2 attempts",
		},
		{
			"500, then 429",
			[]answer{failed, slow},
			Cmd("SET", "k", "v"),
			"upstash: SET: ERR slow (HTTP status 429): send fewer at a time, after 2 attempts;" +
				" the command may have run",
		},
		{
			"refused",
			[]answer{{status: 400, body: `{"error":"ERR syntax"}`}},
			Cmd("GET", "k"), "upstash: GET: ERR syntax (HTTP status 400)",
		},
	} {
		c, _ := newFake(t, tt.answers, WithRetry(1), WithBackoff(0, 0))
		if _, err := c.Do(t.Context(), tt.cmd); err == nil || err.Error() != tt.want {
			t.Errorf("%s:\n got %v\nwant %s", tt.name, err, tt.want)
		}
	}
}

func TestErrorOfAPauseCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newFake(t, []answer{{status: 503, body: `{"error":"ERR x"}`}},
			WithBackoff(time.Hour, time.Hour))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1, cancel) // the clock stands still until the pause
		_, err := c.Do(ctx, Cmd("SET", "k", "v"))
		const want = "upstash: SET: context canceled, after: ERR x (HTTP status 503); the command may have run"
		if !errors.Is(err, context.Canceled) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

// The causes and addresses people need are not taken for quoted arguments.
func TestNetworkErrorsAreLeftAlone(t *testing.T) {
	const said = "dial tcp 127.0.0.1:36615: connect: connection refused"
	cause := NotSent(errors.New(said))
	c, _ := newFake(t, []answer{{err: cause}}, WithRetry(0))
	for _, cmd := range []Command{
		Cmd("SET", "127.0.0.1", "connection"), Cmd("MGET", "dial", "tcp", "refused", "36615"),
		RawCmd("SET", []byte("36615"), "port"),
	} {
		if _, err := c.Do(t.Context(), cmd); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("got %v, want one that says %q", err, said)
		}
	}
}

func TestANetworkErrorWithoutWords(t *testing.T) {
	c, _ := newFake(t, []answer{{err: errors.New("")}}, WithRetry(0))
	if _, err := c.Do(t.Context(), Cmd("SET", secretKey, secretItem)); err == nil {
		t.Error("no error")
	}
}

// The key of a raw command stands in the URL. A transport or a proxy may quote
// it.
func TestTheURLOfARawCommandIsNotShown(t *testing.T) {
	cmd := RawCmd("SETRANGE", []byte("\xff"), secretKey, "0")
	_, network := clientOver(t, quoting(errors.New("no route")), WithRetry(0)).Do(t.Context(), cmd)
	c, f := newFake(t, []answer{{status: 404, body: `{"error":"not found: /setrange/` + secretKey + `/0"}`}})
	_, proxy := c.Do(t.Context(), cmd)
	for name, v := range map[string]any{"network": network, "proxy": proxy, "Request": f.requests[0]} {
		for _, shown := range printed(t, v) {
			if strings.Contains(shown, secretKey) {
				t.Errorf("%s shows the key: %s", name, shown)
			}
		}
	}
	if network == nil || !strings.Contains(network.Error(), "no route") {
		t.Errorf("got %v, want the cause", network)
	}
	if proxy == nil || !strings.Contains(proxy.Error(), "not found") {
		t.Errorf("got %v, want the words", proxy)
	}
}

// If a server quotes the body of a raw command, it quotes a stored value.
func TestTheBodyOfARawCommandIsNotShown(t *testing.T) {
	for _, message := range []string{"ERR bad value " + secretItem, "ERR bad value " + secretItem[:10]} {
		c, _ := newFake(t, []answer{{status: 400, body: `{"error":"` + message + `"}`}})
		_, err := c.Do(t.Context(), RawCmd("SET", []byte(secretItem), "k"))
		if err == nil || !strings.Contains(err.Error(), "ERR bad value …") {
			t.Errorf("got %v, want the words without what they quote", err)
		}
	}
}

func TestRawCmdLeavesItsArgumentsAlone(t *testing.T) {
	all := []string{"k", "0", "next"}
	RawCmd("SETRANGE", []byte("x"), all[:2]...)
	if all[2] != "next" {
		t.Errorf("what stands behind the arguments is %q now", all[2])
	}
}
