package httptransport_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/jarcoal/httpmock"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

// The RoundTripper may be any: a platform's, a tracing one, or a mock.
func ExampleNew() {
	mock := httpmock.NewMockTransport()
	mock.RegisterResponder("POST", "https://db.example.test/",
		httpmock.NewStringResponder(http.StatusOK, `{"result":42}`))

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
	// 42 <nil>
	// requests: 1
}

// A Transport is used by a client, and closed by whoever made it.
func ExampleTransport_RoundTrip() {
	mock := httpmock.NewMockTransport()
	mock.RegisterResponder("POST", "https://db.example.test/",
		httpmock.NewStringResponder(http.StatusOK, `{"result":"PONG"}`))
	transport := httptransport.New(&http.Client{Transport: mock})
	defer transport.Close() // ends idle connections

	var resp upstash.Response
	err := transport.RoundTrip(context.Background(), &upstash.Request{
		URL: "https://db.example.test/", Body: []byte(`["PING"]`), MaxResponse: 1 << 20,
	}, &resp)
	fmt.Println(resp.StatusCode, string(resp.Body), err)
	// Output: 200 {"result":"PONG"} <nil>
}
