package main

import (
	"crypto/tls"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
)

// withTLS adds TLS to a listener, and writes the certificate into a file.
func withTLS(l net.Listener, file string) (net.Listener, error) {
	s := httptest.NewTLSServer(nil) // only for its certificate
	defer s.Close()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	config := &tls.Config{Certificates: s.TLS.Certificates, MinVersion: tls.VersionTLS13}
	return tls.NewListener(l, config), os.WriteFile(file, text, 0o600)
}

// playTLS compares calls over kept TLS connections with calls that open one
// each. The server answers from memory.
func playTLS(a *arena, o options, r *report) error {
	dir, err := os.MkdirTemp("", "compare-tls")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "cert.pem")
	if err := os.Setenv("SSL_CERT_FILE", file); err != nil {
		return err
	}
	defer os.Unsetenv("SSL_CERT_FILE") // this process reads it once
	kept, err := startRole(a.ctx, "stub", a.url, file)
	if err != nil {
		return err
	}
	closing, err := startRole(a.ctx, "stub", a.url, file, "close")
	if err != nil {
		return err
	}
	bare, err := startRole(a.ctx, "stub", a.url)
	if err != nil {
		return err
	}
	var contests []*contest
	for _, c := range []struct{ name, url string }{
		{"Add over TLS 1.3, connections kept", kept},
		{"Add over TLS 1.3, a connection for each call", closing},
	} {
		one, err := a.overTLS(c.name, c.url, bare)
		if err != nil {
			return err
		}
		contests = append(contests, one)
	}
	return r.play(a, o, contests)
}

// overTLS is the contest at a server with TLS, and at one without.
func (a *arena) overTLS(name, url, bare string) (*contest, error) {
	entrants, err := a.rest(url)
	if err != nil {
		return nil, err
	}
	without, err := a.rest(bare)
	if err != nil {
		return nil, err
	}
	without[0].name = filterName + ", without TLS"
	key := a.key("tls")
	anew := func(uint64) error {
		c, err := a.client(url)
		if err != nil {
			return err
		}
		defer c.Close()
		f, err := newFilter(c, key)
		if err == nil {
			_, err = f.Add(a.ctx, members[0])
		}
		return err
	}
	all := &contest{name: name, callers: 1}
	for _, e := range []entrant{entrants[0], entrants[1], without[0]} {
		if err := a.check(e.set, url); err != nil {
			return nil, err
		}
		all.contestants = append(all.contestants, enter(e, 1, true))
	}
	limit, err := a.limit(url, 1, true)
	all.contestants = append(all.contestants, limit,
		&contestant{name: filterName + ", a client for each call", items: 1, do: anew})
	return all, err
}
