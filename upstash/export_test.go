package upstash

import "testing"

// DefaultTransport makes the transport that New would make for url.
func DefaultTransport(tb testing.TB, url string) Transport {
	tb.Helper()
	e, err := parseEndpoint(url, true)
	if err != nil {
		tb.Fatal(err)
	}
	return newDefaultTransport(e, defaultMaxConns)
}

func isNotSent(err error) bool {
	_, ok := err.(*notSentError)
	return ok
}
