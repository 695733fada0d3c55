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
