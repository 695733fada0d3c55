//go:build !race

package upstashtest

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest/internal/wire"
)

// TestLongAnswersAreNotHeld reads 16 MB of zeros, six times that in JSON. The
// server must not hold a copy of the answer in any encoding.
func TestLongAnswersAreNotHeld(t *testing.T) {
	const size = 16 << 20
	s := NewServer(t)
	exec(t, s, "SETRANGE", "k", fmt.Sprint(size-1), "\x00")
	for format, want := range map[[2]string]int64{
		{"", ""}:                        6*size + int64(len(`{"result":""}`)),
		{wire.HeaderEncoding, "base64"}: (size+2)/3*4 + int64(len(`{"result":""}`)),
		{wire.HeaderFormat, "resp2"}:    size + int64(len("$16777216\r\n\r\n")),
	} {
		body := strings.NewReader(`["GET","k"]`)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.Token)
		if format[0] != "" {
			req.Header.Set(format[0], format[1])
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		runtime.ReadMemStats(&after)
		if n != want || resp.ContentLength != want || err != nil {
			t.Errorf("%v: %d bytes, %d announced, want %d (%v)", format, n, resp.ContentLength, want, err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > size/4 {
			t.Errorf("%v: %d bytes allocated for an answer of %d", format, got, want)
		}
	}
}
