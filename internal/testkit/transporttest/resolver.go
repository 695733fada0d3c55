package transporttest

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// resolveTo makes every name stand for these addresses, in this order, until the
// end of the test.
func resolveTo(t *testing.T, addrs ...string) {
	t.Helper()
	server, err := net.ListenPacket("udp", anyIPv4)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		question := make([]byte, 512)
		for n, from, err := server.ReadFrom(question); err == nil; n, from, err = server.ReadFrom(question) {
			var m dnsmessage.Message
			if m.Unpack(question[:n]) != nil {
				continue
			}
			m.Header.Response, m.Header.Authoritative, m.Additionals = true, true, nil
			for _, addr := range addrs {
				if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
					m.Answers = append(m.Answers, dnsmessage.Resource{
						Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
						Body:   &dnsmessage.AResource{A: netip.MustParseAddr(addr).As4()},
					})
				}
			}
			answer, _ := m.Pack()
			_, _ = server.WriteTo(answer, from)
		}
	}()
	before := net.DefaultResolver
	// A look-up may outlive its caller, and so the test: it must not read the variable.
	dialer := net.Dialer{Resolver: before}
	net.DefaultResolver = &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "udp", server.LocalAddr().String())
		},
	}
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = server.Close()
		<-done
	})
}
