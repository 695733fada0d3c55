//go:build !wasm

package conn

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpproxy"
	"golang.org/x/net/proxy"
)

// The proxy's URL may hold a password, so it is never quoted. A [proxyError]
// names the variable that has it.
var (
	errBadProxy = errors.New("the proxy's URL cannot be used: set HTTPS_PROXY to http://, https:// or" +
		" socks5:// with host and port, and escape what is special in the password (%23 for #)")
	errProxyAuth = errors.New("the proxy wants a user and password (status 407):" +
		" set HTTPS_PROXY to http://user:password@host:port")
	errProxyRefused = errors.New("the proxy refused the user and password of its URL (status 407):" +
		" check them in HTTPS_PROXY, and escape what is special in the password (%23 for #)")
	errSOCKSAuth = errors.New("the proxy wants a user and password:" +
		" set HTTPS_PROXY to socks5://user:password@host:port")
	errSOCKSRefused = errors.New("the proxy refused the user and password of its URL:" +
		" check them in HTTPS_PROXY, and escape what is special in the password (%23 for #)")
	errSOCKSMethod = errors.New("the proxy accepts neither a user and password nor a client without:" +
		" set HTTPS_PROXY to one that does")
	errProxyEarly  = errors.New("the proxy sent data before the tunnel was in use")
	errProxyAnswer = errors.New("the answer to CONNECT is not HTTP/1.1, or longer than 16 KiB")
)

// ProxyFor returns the environment's proxy for target, or nil. If the setting
// cannot be used, it returns an error: a client must not go around the proxy.
func ProxyFor(target *url.URL) (*url.URL, error) {
	env := httpproxy.FromEnvironment()
	setting := &env.HTTPProxy
	if target.Scheme == "https" {
		setting = &env.HTTPSProxy
	}
	raw := *setting
	if raw == "" {
		return nil, nil
	}
	// httpproxy ignores a proxy if it cannot parse its URL. So it only says
	// whether this host has a proxy, with another URL in place of the real one.
	*setting = "http://proxy.invalid"
	p, err := env.ProxyFunc()(target)
	if p == nil || err != nil {
		return nil, err
	}
	if p, err = parseProxy(raw); err != nil {
		return nil, asProxyError(err, proxyVariable(target.Scheme == "https"))
	}
	return p, nil
}

// secureVariable stands in an error for the variable that has the proxy.
const secureVariable = "HTTPS_PROXY"

// proxyVariable returns the name of the variable that has the proxy for https or
// http. If both spellings are set, the one in small letters counts.
func proxyVariable(secure bool) string {
	name := secureVariable
	if !secure {
		name = "HTTP_PROXY"
	}
	small := strings.ToLower(name)
	if value := os.Getenv(small); value != "" && value != os.Getenv(name) { // equal on Windows
		return small
	}
	return name
}

func parseProxy(raw string) (*url.URL, error) {
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw
	}
	// A part after the host most often belongs to an unescaped password.
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || strings.ContainsAny(raw, "?#") {
		return nil, errBadProxy
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return u, nil
	}
	return nil, errBadProxy
}

func proxyPort(p *url.URL) string {
	switch {
	case p.Port() != "":
		return p.Port()
	case p.Scheme == "https":
		return "443"
	case p.Scheme == "http":
		return "80"
	}
	return "1080"
}

// asProxyError adds to an error that it is about the proxy of this variable.
func asProxyError(err error, variable string) error {
	if err == nil {
		return nil
	}
	return &proxyError{err, variable}
}

type proxyError struct {
	err      error
	variable string
}

func (e *proxyError) Error() string {
	return "proxy: " + strings.Replace(e.err.Error(), secureVariable, e.variable, 1)
}

func (e *proxyError) Unwrap() error { return e.err }

// proxyItself stands for the proxy in an error that asProxyError has begun.
const proxyItself = "it"

// tunnel asks the proxy p, at the other end of c, for a connection to addr. For
// plain http it uses CONNECT too.
func tunnel(c *Conn, p *url.URL, config *tls.Config, addr string) error {
	switch p.Scheme {
	case "socks5", "socks5h":
		return brokenDuring("before it answered SOCKS5", proxyItself, socks(c, p, addr))
	case "https":
		if err := c.addTLS(config); err != nil {
			return brokenDuring("in the TLS handshake", proxyItself, err)
		}
	}
	return brokenDuring("before it answered CONNECT", proxyItself, connect(c, p, addr))
}

func socks(c *Conn, p *url.URL, addr string) error {
	var auth *proxy.Auth
	if user := p.User; user != nil {
		password, _ := user.Password()
		auth = &proxy.Auth{User: user.Username(), Password: password}
	}
	s, err := proxy.SOCKS5("tcp", p.Host, auth, nil)
	if err != nil {
		return errBadProxy
	}
	answers := &socksAnswers{Conn: c.top}
	// DialContext would open a socket of its own. A context with a deadline
	// would undo the past deadline with which Dial interrupts c.
	_, err = s.(socksDialer).DialWithConn(context.Background(), answers, "tcp", addr)
	return answers.explain(err, auth != nil)
}

// socksAnswers keeps the first bytes that a SOCKS5 proxy answers, because the
// errors of package proxy differ in their text alone. They are its version, the
// method of authentication (RFC 1928) and, if that is the method of a password,
// another version and the status (RFC 1929).
type socksAnswers struct {
	net.Conn
	first [4]byte
	n     int
}

func (a *socksAnswers) Read(p []byte) (int, error) {
	n, err := a.Conn.Read(p)
	a.n += copy(a.first[a.n:], p[:n])
	return n, err
}

// explain returns err, or what to do if the proxy denied the client.
func (a *socksAnswers) explain(err error, withUser bool) error {
	const byPassword, none = 2, 0xff
	switch method := a.first[1]; {
	case err == nil, a.n < 2, a.first[0] != 5:
	case method == none && withUser:
		return errSOCKSMethod
	case method == none:
		return errSOCKSAuth
	case method == byPassword && a.n == 4 && a.first[3] != 0:
		return errSOCKSRefused
	}
	return err
}

type socksDialer interface {
	DialWithConn(ctx context.Context, c net.Conn, network, address string) (net.Addr, error)
}

// connect asks an HTTP proxy for the tunnel.
func connect(c *Conn, p *url.URL, addr string) error {
	head := "CONNECT " + addr + " HTTP/1.1\r\nHost: " + addr + "\r\n"
	if user := p.User; user != nil {
		password, _ := user.Password()
		pair := user.Username() + ":" + password
		head += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(pair)) + "\r\n"
	}
	if _, err := io.WriteString(c, head+"\r\n"); err != nil {
		return err
	}
	answer := fasthttp.Response{SkipBody: true}
	_, err := AwaitHead(c.R)
	if err == nil {
		err = answer.ReadLimitBody(c.R, 0)
	}
	switch {
	case err != nil && c.readErr != nil:
		return c.readErr
	case err != nil: // without fasthttp's words, which quote the answer
		return errProxyAnswer
	case c.R.Buffered() != 0 && answer.StatusCode() == 200:
		return errProxyEarly
	}
	return connected(p, answer.StatusCode())
}

// connected returns an error if p did not answer CONNECT with status 200.
func connected(p *url.URL, status int) error {
	switch {
	case status == 200:
		return nil
	case status == 407 && p.User != nil:
		return errProxyRefused
	case status == 407:
		return errProxyAuth
	}
	return fmt.Errorf("CONNECT was answered with status %d", status)
}

// Connected is connected for net/http, which sends CONNECT for https alone. Its
// own error is the text after the status.
func Connected(p *url.URL, status int) error {
	return asProxyError(connected(p, status), proxyVariable(true))
}
