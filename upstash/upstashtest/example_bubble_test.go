package upstashtest_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// In a bubble of testing/synctest nobody waits in real time: neither for a
// timeout nor for a retry. Server and client need a network in memory there.
func ExampleWithListener() {
	var t *testing.T // that of your test

	synctest.Test(t, stallsInABubble)
}

func stallsInABubble(t *testing.T) {
	network := make(pipes)
	server := upstashtest.NewServer(t, upstashtest.WithListener(network))
	transport := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return network.dial() },
	}
	t.Cleanup(transport.CloseIdleConnections)
	client := server.Client(
		upstash.WithTransport(httptransport.New(&http.Client{Transport: transport})),
		upstash.WithInsecureHTTP(), // in memory
	)

	server.Inject(upstashtest.Stall(upstashtest.BeforeExec))
	start := time.Now()
	_, err := client.Do(t.Context(), upstash.Cmd("SET", "visits", "1"))
	if took := time.Since(start); err != nil || took < 10*time.Second {
		t.Errorf("after %v: %v, want a second attempt after 10 s", took, err)
	}
}

// pipes is a network in memory: a net.Listener whose connections are of net.Pipe.
type pipes chan net.Conn

func (p pipes) dial() (net.Conn, error) {
	client, server := net.Pipe()
	p <- server
	return client, nil
}

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }
