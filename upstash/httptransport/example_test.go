package httptransport_test

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/jarcoal/httpmock"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// The RoundTripper may be any: a platform's, a tracing one, or a mock.
func ExampleNew() {
	mock := httpmock.NewMockTransport()
	mock.RegisterResponder("POST", "https://db.example.test/",
		httpmock.NewStringResponder(200, `{"result":1}`))
	transport := httptransport.New(&http.Client{Transport: mock})
	client, err := upstash.New("https://db.example.test", "token", upstash.WithTransport(transport))
	if err != nil {
		fmt.Println(err)
		return
	}
	n, err := client.BitCount(context.Background(), "filter")
	fmt.Println(n, err)
	fmt.Println("requests:", mock.GetTotalCallCount())
	// Output:
	// 1 <nil>
	// requests: 1
}

// The RoundTripper of a platform serves the client of the environment.
func Example() {
	server, err := upstashtest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	os.Setenv("UPSTASH_REDIS_REST_URL", server.URL)
	os.Setenv("UPSTASH_REDIS_REST_TOKEN", server.Token)
	defer os.Unsetenv("UPSTASH_REDIS_REST_URL")
	defer os.Unsetenv("UPSTASH_REDIS_REST_TOKEN")
	roundTripper := &http.Transport{}
	defer roundTripper.CloseIdleConnections()

	transport := httptransport.New(&http.Client{Transport: roundTripper})
	client, err := upstash.FromEnv(upstash.WithTransport(transport))
	if err != nil {
		fmt.Println(err)
		return
	}
	reply, err := client.Do(context.Background(), upstash.Cmd("PING"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Text())
	// Output: PONG <nil>
}
