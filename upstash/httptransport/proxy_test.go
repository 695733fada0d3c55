//go:build !wasm

package httptransport_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

// TestUnusableProxyIsNoWayAroundIt: if a proxy's password is not escaped, the
// requests must not bypass the proxy.
func TestUnusableProxyIsNoWayAroundIt(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://user:hunter%ss@proxy.test:8080")
	tr := httptransport.New(nil)
	defer tr.Close()
	c, err := upstash.New("https://db.example.test", "token", upstash.WithTransport(tr))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(t.Context(), upstash.Cmd("INCR", "k"))
	var call *upstash.CallError
	if !errors.As(err, &call) || call.Attempts != 1 || !upstash.SafeToRetry(err) ||
		!strings.Contains(err.Error(), "HTTPS_PROXY") || strings.Contains(err.Error(), "hunter") {
		t.Errorf("got %v", err)
	}
}
