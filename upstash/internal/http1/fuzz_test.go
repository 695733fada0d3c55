package http1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzAgainstNetHTTP compares this reader with net/http's, answer by answer as
// long as the connection may go on. If this one accepts an answer, net/http
// must read it in the same way and to the same byte. If this one refuses it,
// net/http must refuse it too, or stricter reports why not. This one reads byte
// by byte, net/http all at once.
func FuzzAgainstNetHTTP(f *testing.F) {
	for _, tt := range accepted {
		f.Add([]byte(tt.text))
		f.Add([]byte(tt.text[:len(tt.text)*2/3]))
		f.Add([]byte(tt.text + sized + "\r\nhello"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := bytes.NewReader(data)
		ours := bufio.NewReaderSize(iotest.OneByteReader(in), buffer)
		theirs := bufio.NewReaderSize(bytes.NewReader(data), buffer)
		for {
			data := data[len(data)-in.Len()-ours.Buffered():] // from this answer on
			got, err := readAnswer(ours)
			want, theirErr := readNetHTTP(theirs)
			if err != nil {
				checkError(t, data, err, theirErr)
				return
			}
			if theirErr != nil {
				if !laxer(data) {
					t.Fatalf("%q: got %+v, net/http says %v", data, got, theirErr)
				}
				return
			}
			if got.status != want.StatusCode || got.body != want.body {
				t.Fatalf("%q: got %d, %q, net/http has %d, %q", data, got.status, got.body, want.StatusCode, want.body)
			}
			checkFields(t, data, got.fields, want.Header)
			if !got.keepAlive {
				return
			}
			if want.Close {
				t.Fatalf("%q: is kept, but not by net/http", data)
			}
		}
	})
}

// peer is an answer as net/http reads it.
type peer struct {
	*http.Response
	body string
}

func readNetHTTP(r *bufio.Reader) (peer, error) {
	for {
		resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodPost})
		if err != nil {
			return peer{}, err
		}
		if resp.StatusCode/100 == 1 {
			continue
		}
		body, err := io.ReadAll(resp.Body)
		return peer{resp, string(body)}, err
	}
}

// checkError checks that err is one of the reader's own. net/http must have an
// error too, or accept what this reader need not.
func checkError(t *testing.T, data []byte, err, theirErr error) {
	t.Helper()
	var own Error
	if err != io.EOF && !errors.As(err, &own) {
		t.Fatalf("%q: got %v", data, err)
	}
	if theirErr == nil && !stricter(data) && err != ErrLongBody {
		t.Fatalf("%q: got %v, net/http has no error", data, err)
	}
}

// stricter reports whether data may be an answer that net/http accepts and this
// reader refuses, because it is safer to.
func stricter(data []byte) bool {
	matches := func(r *regexp.Regexp) bool { return r.Match(data) }
	return len(data) > buffer || slices.ContainsFunc(reasons, matches)
}

var reasons = func() (all []*regexp.Regexp) {
	for _, text := range []string{
		`^$|^[^H]|HTTP/[^1]`, // other versions, and what comes before one
		`\n\n|[^\r]\n\r\n`,   // a bare LF before or in the empty line
		` [+0-]\d\d| 101`,    // an impossible status; another protocol
		`(?i)content-length[^\n]*\n(.*\n)*content-length`, // twice, or in a trailer
		`(?i)content-length(.*\n)*transfer-encoding`,      // two ends
		`(?i)transfer-encoding(.*\n)*content-length`,
		`(?i)transfer-encoding(.*\n)*transfer-encoding`,
		`(?is)HTTP/1\.0.*transfer-encoding`, // HTTP/1.0 has no chunks
		`(?i)(content-length|transfer-encoding) +:`,
		`(?i)content-length:\s*\d{19}`,
		`\n0{15}`,                          // 16 digits of a size
		`;.*[\x00-\x08\x0b-\x1f\x7f][^\n]`, // in an extension
		`(HTTP/1\.\d +1\d\d(.*\n)*){6}`,
		`(.*\n){1000}`, // 16 KiB of extensions
	} {
		all = append(all, regexp.MustCompile(text))
	}
	return all
}()

// laxer reports whether data may be an answer that this reader accepts and
// net/http refuses: the announcement of a trailer, which this client does not
// use.
func laxer(data []byte) bool { return trailer.Match(data) }

var trailer = regexp.MustCompile(`(?i)\ntrailer`)

// checkFields compares the fields. Blanks in them are not compared, because a
// value on two lines may have any number of them.
func checkFields(t *testing.T, data []byte, fields []string, want http.Header) {
	t.Helper()
	got := make(http.Header)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		got.Add(name, value)
	}
	for name, values := range got {
		if name == "Trailer" { // net/http takes it out
			continue
		}
		if !slices.EqualFunc(values, want[name], func(a, b string) bool {
			return slices.Equal(strings.Fields(a), strings.Fields(b))
		}) {
			t.Fatalf("%q: %s is %q, net/http has %q", data, name, values, want[name])
		}
	}
}
