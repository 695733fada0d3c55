package wire

import (
	"bytes"
	"encoding/json" // the writer that ours is compared with
	"strings"
	"testing"
)

func FuzzWriteString(f *testing.F) {
	for _, s := range []string{
		"", "plain", "\x00\b\f\n\r\t\x1f\x7f", `"\`, "<&>", "\u2028\u2029\ufffd", "é日😀",
		"\xff", "a\xe2\x80", "\xed\xa0\x80", strings.Repeat("😀é\x80", 4000),
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
		var got bytes.Buffer
		writeString(&got, s)
		if got.String() != strings.TrimSuffix(want.String(), "\n") {
			t.Errorf("%q is %s, want %s", s, &got, &want)
		}
	})
}
