//go:build !wasm

package upstash

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

	"github.com/upbloom/upbloom/internal/testkit/oddanswers"
	"github.com/upbloom/upbloom/upstash/internal/conn"
)

// FuzzAgainstNetHTTP compares this transport with net/http, answer by answer as
// long as the connection may go on. If this one accepts an answer, net/http
// must read it in the same way and to the same byte. If this one refuses it,
// net/http must refuse it too, or stricter reports why not. This one reads byte
// by byte, net/http all at once.
func FuzzAgainstNetHTTP(f *testing.F) {
	for _, tt := range oddanswers.Accepted {
		f.Add([]byte(tt.Text))
		f.Add([]byte(tt.Text[:len(tt.Text)*2/3]))
		f.Add([]byte(tt.Text + oddanswers.Sized + "\r\nhello"))
	}
	f.Add([]byte("HTTP/1.0 200 OK\r\nContent-Length: 3\r\nConnection : keep-alive\r\n\r\nold"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := bytes.NewReader(data)
		ours := connFrom(iotest.OneByteReader(in))
		theirs := bufio.NewReaderSize(bytes.NewReader(data), conn.ReadBuffer)
		for {
			data := data[len(data)-in.Len()-ours.R.Buffered():] // from this answer on
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
			if got.Status != want.StatusCode || got.Body != want.body {
				t.Fatalf("%q: got %d, %q, net/http has %d, %q", data, got.Status, got.Body, want.StatusCode, want.body)
			}
			checkRetryAfter(t, data, got.RetryAfter, want.Header)
			if !got.Keeps {
				return
			}
			if want.Close && !blankName.Match(data) {
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

// checkError checks that err is one of the transport's own. net/http must have an
// error too, or accept what this transport need not.
func checkError(t *testing.T, data []byte, err, theirErr error) {
	t.Helper()
	if !errors.Is(err, io.ErrUnexpectedEOF) && !slices.Contains(ownErrors, err) {
		t.Fatalf("%q: got %v", data, err)
	}
	if theirErr == nil && !stricter(data) && err != ErrResponseTooLarge {
		t.Fatalf("%q: got %v, net/http has no error", data, err)
	}
}

var ownErrors = []error{
	conn.OtherProtocol, conn.BadHead, conn.BareLF, conn.TwoLengths, conn.TwoEnds, conn.BadChunks,
	conn.ErrLongHead, errInterim, ErrResponseTooLarge,
}

// stricter reports whether data may be an answer that net/http accepts and this
// reader refuses, because it is safer to.
func stricter(data []byte) bool {
	matches := func(r *regexp.Regexp) bool { return r.Match(data) }
	return len(data) > conn.ReadBuffer || slices.ContainsFunc(reasons, matches)
}

var reasons = func() (all []*regexp.Regexp) {
	for _, text := range []string{
		`^$|^[^H]|HTTP/[^1]`, // other versions, and what comes before one
		`\n\n|[^\r]\n\r\n`,   // a bare LF before or in the empty line
		` [+0-]\d\d| 101`,    // an impossible status; another protocol
		`(?i)content-length[^\n]*\n(.*\n)*content-length`,     // twice, or in a trailer
		`(?i)content-length(.*\n)*transfer-encoding`,          // two ends
		`(?i)(content-length|transfer-encoding)[^\n]*\n[ \t]`, // one that goes on in another line
		`(?i)transfer-encoding(.*\n)*content-length`,
		`(?i)transfer-encoding(.*\n)*transfer-encoding`,
		`(?is)HTTP/1\.[^1].*transfer-encoding`, // only HTTP/1.1 has chunks
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

// laxer reports whether data may be an answer that fasthttp accepts and net/http
// refuses, though both see the same end.
func laxer(data []byte) bool {
	return slices.ContainsFunc(liberties, func(r *regexp.Regexp) bool { return r.Match(data) })
}

var liberties = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\ntrailer`), // its announcement
	regexp.MustCompile(`;[^\n]{500}`),   // a long extension of a chunk
}

// checkRetryAfter compares the first field of that name. Blanks in it are not
// compared, because a value on two lines may have any number of them.
func checkRetryAfter(t *testing.T, data []byte, got string, want http.Header) {
	t.Helper()
	if blankName.Match(data) {
		return
	}
	if !slices.Equal(strings.Fields(got), strings.Fields(want.Get("Retry-After"))) {
		t.Fatalf("%q: Retry-After is %q, net/http has %q", data, got, want.Get("Retry-After"))
	}
}

// blankName is a name with blanks behind it, which is another one for net/http. The
// end of an answer does not depend on these.
var blankName = regexp.MustCompile(`(?i)(retry-after|connection)[ \t]+:`)
