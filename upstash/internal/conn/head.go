//go:build !wasm

package conn

import (
	"bufio"
	"bytes"
	"errors"
)

// ErrLongHead is the error of a header that does not fit into the buffer.
var ErrLongHead = errors.New("the header of the answer is longer than 16 KiB: find the proxy that adds to it")

// NotHTTP is the error of an answer that is not HTTP/1.1, or so odd that it could
// hang or end in two places. It says what is odd.
type NotHTTP string

const (
	OtherProtocol NotHTTP = ""
	BadHead       NotHTTP = ": its header is malformed"
	BareLF        NotHTTP = ": the last lines of its header end in a bare LF"
	TwoLengths    NotHTTP = ": it has two lengths"
	TwoEnds       NotHTTP = ": it has a length beside chunks"
	BadChunks     NotHTTP = ": its chunks are malformed"
)

func (e NotHTTP) Error() string { return "the answer is not HTTP/1.1" + string(e) }

// AwaitHead waits for the whole header of an answer, and leaves it in r for
// package fasthttp. It returns the first digit of the status. It refuses what
// fasthttp reads, though the answer could hang there or end in two places:
// another protocol, status 0xx, a header whose last lines end in a bare LF, chunks
// beside a length or before HTTP/1.1, and a space after the name of either. Any
// error but its own two comes from the connection.
func AwaitHead(r *bufio.Reader) (class byte, err error) {
	const prefix = "HTTP/1."
	var f framing
	for line, n := 0, 1; ; {
		_, err := r.Peek(n)
		b, _ := r.Peek(r.Buffered())
		if known := min(len(b), len(prefix)); string(b[:known]) != prefix[:known] {
			return 0, OtherProtocol
		}
		for {
			end := bytes.IndexByte(b[line:], '\n') + 1
			if end == 0 {
				break
			}
			if end == 1 || end == 2 && b[line] == '\r' {
				return f.class, f.judge(b[:line+end])
			}
			f.note(b[line : line+end])
			line += end
		}
		if len(b) == r.Size() {
			return 0, ErrLongHead
		}
		if err != nil {
			return 0, err
		}
		n = len(b) + 1
	}
}

// framing is what the lines of a header say about the end of an answer.
type framing struct {
	class          byte // the first digit of the status; 0 before the first line
	old            bool // not HTTP/1.1
	sized, chunked bool
	spaced         bool // a space follows the name of one of the two
}

func (f *framing) note(line []byte) {
	if f.class == 0 {
		version, status, _ := bytes.Cut(line, []byte(" "))
		f.old = string(version) != "HTTP/1.1"
		f.class = '0'
		if status = bytes.TrimLeft(status, " "); len(status) > 0 {
			f.class = status[0]
		}
		return
	}
	if c := line[0] | ' '; c != 'c' && c != 't' {
		return
	}
	field, _, _ := bytes.Cut(line, []byte(":"))
	name := bytes.TrimRight(field, " ")
	sized := bytes.EqualFold(name, []byte("Content-Length"))
	chunked := bytes.EqualFold(name, []byte("Transfer-Encoding"))
	f.sized, f.chunked = f.sized || sized, f.chunked || chunked
	f.spaced = f.spaced || (sized || chunked) && len(name) < len(field)
}

func (f *framing) judge(head []byte) error {
	switch {
	case !bytes.HasSuffix(head, []byte("\r\n\r\n")):
		return BareLF
	case f.chunked && f.sized:
		return TwoEnds
	case f.class == '0', f.spaced, f.chunked && f.old:
		return BadHead
	}
	return nil
}
