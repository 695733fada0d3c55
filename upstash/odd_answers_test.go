//go:build !wasm

package upstash

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/upbloom/upbloom/internal/testkit/oddanswers"
	"github.com/upbloom/upbloom/upstash/internal/conn"
)

// readOnlyConn is a connection from which r is read.
type readOnlyConn struct {
	net.Conn
	r io.Reader
}

func (c readOnlyConn) Read(p []byte) (int, error) { return c.r.Read(p) }

func connFrom(r io.Reader) *conn.Conn { return conn.New(readOnlyConn{r: r}) }

// readAnswer reads an answer as the transport does.
func readAnswer(c *conn.Conn) (oddanswers.Read, error) {
	x := new(exchange)
	defer x.release()
	resp := Response{Body: []byte("before")}
	keepAlive, err := x.read(c, oddanswers.Limit, &resp)
	if err != nil {
		return oddanswers.Read{}, err
	}
	return oddanswers.Read{
		Status: resp.StatusCode, Keeps: keepAlive, RetryAfter: resp.retryAfter,
		Body: strings.TrimPrefix(string(resp.Body), "before"),
	}, nil
}

func readText(text string) (oddanswers.Read, error) {
	return readAnswer(connFrom(strings.NewReader(text)))
}

// cuts are the places to cut an answer: after each byte, but within the fill of a
// long one only now and then.
func cuts(text string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := range len(text) {
			if (n < 500 || text[n] != text[n-500] || n%31 == 0) && !yield(n) {
				return
			}
		}
	}
}

// TestOddAnswersInPieces: what is read does not depend on how the bytes arrive.
func TestOddAnswersInPieces(t *testing.T) {
	for name, tt := range oddanswers.Accepted {
		for n := range cuts(tt.Text) {
			got, err := readAnswer(connFrom(io.MultiReader(
				strings.NewReader(tt.Text[:n]), strings.NewReader(tt.Text[n:]))))
			if err != nil || got != tt.Read {
				t.Errorf("%s: split at %d: got %+v, %v", name, n, got, err)
			}
		}
		got, err := readAnswer(connFrom(iotest.OneByteReader(strings.NewReader(tt.Text))))
		if err != nil || got != tt.Read {
			t.Errorf("%s: byte by byte: got %+v, %v", name, got, err)
		}
	}
}

// TestOddAnswersCutShort: an answer whose end is missing is an error, if anything but the
// end of the connection says where it ends. The error of a connection that breaks is
// the cause, and is never the end of a body.
func TestOddAnswersCutShort(t *testing.T) {
	for name, tt := range oddanswers.Accepted {
		_, body, _ := strings.Cut(tt.Text, "\r\n\r\n")
		untilEnd := strings.HasPrefix(name, "until the ") || name == "HTTP/1.0"
		for n := range cuts(tt.Text) {
			r := io.MultiReader(strings.NewReader(tt.Text[:n]), iotest.ErrReader(io.ErrClosedPipe))
			if got, err := readAnswer(connFrom(r)); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("%s: broken at %d: got %+v, %v", name, n, got, err)
			}
			got, err := readText(tt.Text[:n])
			if untilEnd && n >= len(tt.Text)-len(body) {
				if err != nil || got.Body != tt.Text[len(tt.Text)-len(body):n] {
					t.Errorf("%s: cut at %d: got %+v, %v", name, n, got, err)
				}
				continue
			}
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: cut at %d: got %+v, %v, want its end", name, n, got, err)
			}
		}
	}
}

// TestOddAnswersOneAfterTheOther: an answer ends before the first byte of the next one,
// and the reader waits for no byte that need not come.
func TestOddAnswersOneAfterTheOther(t *testing.T) {
	for name, tt := range oddanswers.Accepted {
		if !tt.Keeps {
			continue
		}
		alone := io.MultiReader(strings.NewReader(tt.Text), iotest.ErrReader(io.ErrNoProgress))
		if got, err := readAnswer(connFrom(alone)); err != nil {
			t.Errorf("%s alone: got %+v, %v", name, got, err)
		}
		for next, second := range oddanswers.Accepted {
			r := connFrom(strings.NewReader(tt.Text + second.Text))
			if got, err := readAnswer(r); err != nil || got != tt.Read {
				t.Errorf("%s: got %+v, %v", name, got, err)
			}
			if got, err := readAnswer(r); err != nil || got != second.Read {
				t.Errorf("%s after %s: got %+v, %v", next, name, got, err)
			}
		}
	}
}

func TestOddAnswersRefused(t *testing.T) {
	for name, tt := range oddanswers.Refused {
		if got, err := readText(tt.Text); err == nil || !strings.HasSuffix(err.Error(), tt.Why) {
			t.Errorf("%s: got %+v, %v, want %s", name, got, err, tt.Why)
		}
	}
}

// TestFieldsOfInterimAnswersDoNotCount: only those of the last one do.
func TestFieldsOfInterimAnswersDoNotCount(t *testing.T) {
	got, err := readText(strings.Replace(oddanswers.Interim, "Link", "Retry-After", 1) + oddanswers.Sized + "\r\nhello")
	if err != nil || got != oddanswers.Accepted["length"].Read {
		t.Errorf("got %+v, %v", got, err)
	}
}

// endless is a connection that brings a text again and again.
type endless struct {
	text string
	came int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text)
	e.came += n
	return n, nil
}

// TestExtensionWithoutEnd: it is not read for as long as the caller waits.
func TestExtensionWithoutEnd(t *testing.T) {
	for _, head := range []string{"1;", "1;x\r\n!\r\n0;", "1 "} {
		rest := &endless{text: strings.Repeat("x", 1000)}
		if strings.HasSuffix(head, " ") {
			rest.text = strings.Repeat(" ", 1000)
		}
		r := io.MultiReader(strings.NewReader("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+head), rest)
		if got, err := readAnswer(connFrom(r)); err != conn.BadChunks || rest.came > atOnce+3*conn.ReadBuffer {
			t.Errorf("%q: got %+v, %v after %d bytes, want conn.BadChunks soon", head, got, err, rest.came)
		}
	}
}

// TestHeadThatFillsTheBuffer has the longest header there is room for.
func TestHeadThatFillsTheBuffer(t *testing.T) {
	fits := oddanswers.Sized + "X: " + strings.Repeat("x", conn.ReadBuffer-len(oddanswers.Sized)-len("X: \r\n\r\n")) + "\r\n\r\n"
	if got, err := readText(fits + "hello"); err != nil || got.Body != "hello" {
		t.Errorf("%d bytes: got %q, %v", len(fits), got.Body, err)
	}
	if _, err := readText(strings.Replace(fits, "X", "XX", 1) + "hello"); err != conn.ErrLongHead {
		t.Errorf("%d bytes: got %v, want conn.ErrLongHead", len(fits)+1, err)
	}
}

// TestBodyAfterWhatIsThere: the body comes after it, whatever room there is.
func TestBodyAfterWhatIsThere(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789"), 50_000)
	for name, head := range map[string]string{
		"length": "HTTP/1.1 200 OK\r\n" + "Content-Length: 500000\r\n\r\n", "until the end": "HTTP/1.1 200 OK\r\n" + "\r\n",
	} {
		for _, room := range []int{0, 1, 7, 1000, len(body), 2 * len(body)} {
			c := connFrom(io.MultiReader(strings.NewReader(head), bytes.NewReader(body)))
			resp := Response{Body: append(make([]byte, 0, room), "x"...)}
			_, err := new(exchange).read(c, len(body), &resp)
			if got := resp.Body; err != nil || string(got[:1]) != "x" || !bytes.Equal(got[1:], body) {
				t.Errorf("%s, room for %d: %d bytes, %v", name, room, len(got), err)
			}
		}
	}
}
