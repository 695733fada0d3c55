package database

import (
	"bufio"
	"reflect"
	"strings"
	"testing"
)

// TestReadReply reads what WriteRESP writes, and what no Redis writes.
func TestReadReply(t *testing.T) {
	for _, want := range []Reply{
		nil, int64(0), int64(-9223372036854775808), Status(""), Status("OK"), Bulk(""), Bulk("a\r\nb"),
		Array{},
		Failure("ERR " + strings.Repeat("x", 100)),
		Array{int64(1), nil, Array{Bulk("a"), Failure("ERR b")}, Status("c")},
	} {
		var text strings.Builder
		w := bufio.NewWriter(&text)
		WriteRESP(w, want)
		_ = w.Flush()
		r := bufio.NewReaderSize(strings.NewReader(text.String()), 16) // shorter than a line
		if got, err := readReply(r); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %v, %v; want %v", text.String(), got, err, want)
		}
		if rest, err := r.ReadByte(); err == nil {
			t.Errorf("readReply of %q: %q is left, want nothing", text.String(), rest)
		}
	}
	for _, text := range []string{
		"", "\r\n", "\n", "+OK\n", "+OK", ":\r\n", ":1x\r\n", "$3\r\nab", "$3\r\nabc", "$99999999999\r\n",
		"*2\r\n:1\r\n", "!1\r\n", "(1\r\n", "HTTP/1.1 400 Bad Request\r\n",
	} {
		if got, err := readReply(bufio.NewReader(strings.NewReader(text))); err == nil {
			t.Errorf("readReply of %q: got %v, want an error", text, got)
		}
	}
}
