package upstashtest_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A server like the live one: https, with a certificate the client trusts.
func ExampleWithTLS() {
	s, err := upstashtest.Start(upstashtest.WithTLS())
	if err != nil {
		panic(err)
	}
	defer s.Close()
	transport := httptransport.New(&http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: s.CertPool()},
	}})
	defer transport.Close()
	client, err := upstash.New(s.URL, s.Token, upstash.WithTransport(transport))
	if err != nil {
		panic(err)
	}
	reply, err := client.Do(context.Background(), upstash.Cmd("PING"))
	if err != nil {
		panic(err)
	}
	fmt.Println(reply.Text())
	// Output: PONG <nil>
}

// Programs near a region use that region's URL.
func ExampleServer_RegionURL() {
	s, c := start(upstashtest.WithRegions(upstashtest.Region{Name: "eu", Lag: 1}))
	defer s.Close()
	defer c.Close()
	if _, err := c.Do(context.Background(), upstash.Cmd("SET", "greeting", "hello")); err != nil {
		panic(err)
	}
	far, err := upstash.New(s.RegionURL("eu"), s.Token)
	if err != nil {
		panic(err)
	}
	defer far.Close()
	reply, err := far.Do(context.Background(), upstash.Cmd("GET", "greeting"))
	fmt.Println(reply.IsNil(), err) // the region is one write behind
	// Output: true <nil>
}

// Tokens that are the same in each run, and a shorter limit for each command.
func ExampleWithReadOnlyToken() {
	s, c := start(upstashtest.WithToken("full"), upstashtest.WithReadOnlyToken("reads"),
		upstashtest.WithTimeout(time.Second))
	defer s.Close()
	defer c.Close()
	fmt.Println(s.Token, s.ReadOnlyToken)
	// Output: full reads
}

// A client that sends numbers as JSON numbers fails here, and at some servers.
func ExampleWithFloatNumbers() {
	s, c := start(upstashtest.WithFloatNumbers())
	defer s.Close()
	defer c.Close()
	ctx := context.Background()
	bits := upstash.NewBitField("bits").Set("u1", 1_000_000, 1) // sent as strings
	n, err := c.BitField(ctx, bits)
	fmt.Println(len(n), err)
	// Output: 1 <nil>
}

// A client should not notice such faults of the connection.
func ExampleInterim() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	ctx := context.Background()
	for _, fault := range []upstashtest.Fault{
		upstashtest.Interim(3),
		upstashtest.Closes("keep-alive, close"),
		upstashtest.Twice(0),
		upstashtest.Trickle(time.Microsecond),
	} {
		s.Inject(fault)
		reply, err := c.Do(ctx, upstash.Cmd("INCR", "visits"))
		if err != nil {
			panic(err)
		}
		n, err := reply.Int64()
		fmt.Println(fault, n, err)
	}
	// Output:
	// interim 1 <nil>
	// closes 2 <nil>
	// twice 3 <nil>
	// trickle 4 <nil>
}

// The error of a retry says nothing about the attempt before it.
func ExampleLostThenError() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	s.Inject(upstashtest.LostThenError("ERR no"))
	_, err := c.Do(context.Background(), upstash.Cmd("SET", "a", "b").Repeatable(true))
	fmt.Println(err != nil, upstash.SafeToRetry(err))
	// Output: true false
}

// The server refuses a body before it has read it.
func ExampleEarlyRefusal() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	s.Inject(upstashtest.EarlyRefusal())
	_, err := c.Do(context.Background(), upstash.Cmd("SET", "a", "b"))
	fmt.Println(upstash.SafeToRetry(err))
	// Output: true
}
