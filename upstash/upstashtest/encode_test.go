package upstashtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

func FuzzWriteString(f *testing.F) {
	for _, s := range []string{
		"", "plain", "\x00\b\f\n\r\t\x1f\x7f", `"\`, "<&>", "\u2028\u2029\ufffd", "é日😀",
		"\xff", "a\xe2\x80", "\xed\xa0\x80",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			t.Fatal(err)
		}
		if got := quoted(s); got != strings.TrimSuffix(want.String(), "\n") {
			t.Errorf("%q is %s, want %s", s, got, want.String())
		}
	})
}

// TestLongAnswersAreNotHeld reads 16 MB of zeros, which are six times as long
// in JSON. The server must not hold a copy of the answer in any encoding.
func TestLongAnswersAreNotHeld(t *testing.T) {
	const size = 16 << 20
	s := NewServer(t)
	exec(t, s, "SETRANGE", "k", fmt.Sprint(size-1), "\x00")
	for format, want := range map[[2]string]int64{
		{"", ""}:                   6*size + int64(len(`{"result":""}`)),
		{headerEncoding, "base64"}: (size+2)/3*4 + int64(len(`{"result":""}`)),
		{headerFormat, "resp2"}:    size + int64(len("$16777216\r\n\r\n")),
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
