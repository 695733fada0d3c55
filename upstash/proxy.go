//go:build !wasm

package upstash

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/net/proxy"
)

// The proxy's URL may hold a password, so it is never quoted.
var errBadProxy = errors.New("the proxy's URL is invalid:" +
	" set HTTPS_PROXY to http://, https:// or socks5:// with host and port")

// testRootCAs stands in for the system's roots in tests.
var testRootCAs *x509.CertPool

// dialProxy reaches the host through p. Plain http goes through CONNECT too.
func (d *dialer) dialProxy(ctx context.Context, p *url.URL) (net.Conn, error) {
	port := p.Port()
	switch {
	case port != "":
	case p.Scheme == "https":
		port = "443"
	case p.Scheme == "http":
		port = "80"
	default:
		port = "1080"
	}
	addr := net.JoinHostPort(p.Hostname(), port)
	switch p.Scheme {
	case "socks5", "socks5h":
		return d.dialSOCKS(ctx, addr, p.User)
	case "http", "https":
	default:
		return nil, errBadProxy
	}
	c, err := d.net.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	tunnel := c
	if p.Scheme == "https" {
		tunnel = tls.Client(c, &tls.Config{
			ServerName: p.Hostname(), MinVersion: tls.VersionTLS12, RootCAs: testRootCAs,
		})
	}
	err = connect(tunnel, d.addr, p.User)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("proxy: %w", err)
	}
	return tunnel, nil
}

func (d *dialer) dialSOCKS(ctx context.Context, addr string, user *url.Userinfo) (net.Conn, error) {
	var auth *proxy.Auth
	if user != nil {
		password, _ := user.Password()
		auth = &proxy.Auth{User: user.Username(), Password: password}
	}
	s, err := proxy.SOCKS5("tcp", addr, auth, nil)
	if err != nil {
		return nil, errBadProxy
	}
	c, err := d.net.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	// Its DialContext would wrap the socket, and hide from isAlive what is in it.
	if _, err := s.(socksDialer).DialWithConn(ctx, c, "tcp", d.addr); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("proxy: %w", err)
	}
	return c, nil
}

type socksDialer interface {
	DialWithConn(ctx context.Context, c net.Conn, network, address string) (net.Addr, error)
}

// connect asks an HTTP proxy for a tunnel to addr.
func connect(c net.Conn, addr string, user *url.Userinfo) error {
	head := "CONNECT " + addr + " HTTP/1.1\r\nHost: " + addr + "\r\n"
	if user != nil {
		password, _ := user.Password()
		pair := user.Username() + ":" + password
		head += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(pair)) + "\r\n"
	}
	if _, err := c.Write([]byte(head + "\r\n")); err != nil {
		return err
	}
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	resp.SkipBody = true
	r := bufio.NewReader(c)
	if err := resp.Read(r); err != nil {
		return readError(err)
	}
	if resp.StatusCode() != fasthttp.StatusOK {
		return fmt.Errorf("CONNECT was answered with status %d", resp.StatusCode())
	}
	if r.Buffered() != 0 {
		return errors.New("the proxy sent data before the tunnel was in use")
	}
	return nil
}
