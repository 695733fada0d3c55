//go:build !wasm

package upstash

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/upbloom/upbloom/upstash/internal/conn"
)

// oddLimit is the longest body, and oddBuffer the longest header.
const (
	oddLimit  = 1000
	oddBuffer = conn.ReadBuffer
)

// farOver is the error of a length of 60 bits. fasthttp reads lengths as int: on 32
// bits such a one is no number to it.
func farOver(in32Bits error) error {
	if strconv.IntSize == 32 {
		return in32Bits
	}
	return ErrResponseTooLarge
}

// readOnlyConn is a connection from which r is read.
type readOnlyConn struct {
	net.Conn
	r io.Reader
}

func (c readOnlyConn) Read(p []byte) (int, error) { return c.r.Read(p) }

func connFrom(r io.Reader) *conn.Conn { return conn.New(readOnlyConn{r: r}) }

// oddAnswer is what was read.
type oddAnswer struct {
	status     int
	keepAlive  bool
	retryAfter string
	body       string
}

// readAnswer reads an answer as the transport does.
func readAnswer(c *conn.Conn) (oddAnswer, error) {
	x := new(exchange)
	defer x.release()
	resp := Response{Body: []byte("before")}
	keepAlive, err := x.read(c, oddLimit, &resp)
	if err != nil {
		return oddAnswer{}, err
	}
	body := strings.TrimPrefix(string(resp.Body), "before")
	return oddAnswer{resp.StatusCode, keepAlive, resp.retryAfter, body}, nil
}

func readText(text string) (oddAnswer, error) { return readAnswer(connFrom(strings.NewReader(text))) }

// stays is an answer of status 200 after which the connection is used again.
func stays(body string) oddAnswer { return oddAnswer{200, true, "", body} }

// ends is one after which it is not.
func ends(body string) oddAnswer { return oddAnswer{200, false, "", body} }

func (a oddAnswer) with(status int) oddAnswer {
	a.status = status
	return a
}

// after is a with the field Retry-After.
func (a oddAnswer) after(value string) oddAnswer {
	a.retryAfter = value
	return a
}

var fullBody = strings.Repeat("x", oddLimit)

const (
	head10      = "HTTP/1.0 200 OK\r\n"
	head200     = "HTTP/1.1 200 OK\r\n"
	codedHead   = head200 + "Transfer-Encoding: chunked\r\n"
	chunkedHead = codedHead + "\r\n"
	sizedHead   = head200 + "Content-Length: 5\r\n"
	interimHead = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
)

// accepted has an answer of each form, and what must be read of it.
var accepted = map[string]struct {
	text string
	want oddAnswer
}{
	"length":                 {sizedHead + "\r\nhello", stays("hello")},
	"length of 0":            {head200 + "Content-Length: 0\r\n\r\n", stays("")},
	"length with zeros":      {head200 + "content-length:\t005 \r\n\r\nhello", stays("hello")},
	"no reason":              {"HTTP/1.1 500\r\nContent-Length: 1\r\n\r\n!", stays("!").with(500)},
	"spaces":                 {"HTTP/1.1   429  Too\tmany\r\nContent-Length: 1\r\n\r\n!", stays("!").with(429)},
	"until the end":          {head200 + "\r\nhello", ends("hello")},
	"until the end, nothing": {head200 + "\r\n", ends("")},
	"fields": {
		sizedHead + "X!#$%&'*+-.^_`|~09: \x80 \t\xff \r\nX:\r\nRETRY-AFTER: 4\r\n\r\nhello",
		stays("hello").after("4"),
	},

	"HTTP/1.0":            {head10 + "\r\nold", ends("old")},
	"HTTP/1.0, length":    {head10 + "Content-Length: 3\r\n\r\nold", ends("old")},
	"HTTP/1.0, keeps":     {head10 + "Content-Length: 3\r\nConnection: Keep-Alive\r\n\r\nold", stays("old")},
	"HTTP/1.0, in doubt":  {head10 + "Content-Length: 3\r\nConnection: keep-alive, close\r\n\r\nold", ends("old")},
	"closes":              {sizedHead + "CONNECTION: x, CLOSE\r\n\r\nhello", ends("hello")},
	"closes, in one":      {sizedHead + "Connection: close\r\nConnection: keep-alive\r\n\r\nhello", ends("hello")},
	"does not close":      {sizedHead + "Connection: disclose, keep-alive\r\nX-Connection: close\r\n\r\nhello", stays("hello")},
	"bare LF, but at end": {"HTTP/1.1 200\nX: y\nContent-Length: 5\r\n\r\nhello", stays("hello")},
	"folded":              {sizedHead + "X: a\r\n\tb\n c\r\n \r\nY:\r\n\r\nhello", stays("hello")},
	"folded length":       {head200 + "Content-Length:\r\n 5\r\n\r\nhello", stays("hello")},
	"folded close":        {sizedHead + "Connection: x,\r\n close\r\n\r\nhello", ends("hello")},
	"space in a name":     {sizedHead + "X Y: z\r\n\r\nhello", ends("hello")},
	"space after a name":  {sizedHead + "X : z\r\n\r\nhello", stays("hello")},

	"204":                {"HTTP/1.1 204 No Content\r\n\r\n", stays("").with(204)},
	"204 with a length":  {"HTTP/1.1 204 No Content\r\nContent-Length: 5000\r\n\r\n", stays("").with(204)},
	"304 with chunks":    {"HTTP/1.1 304\r\nTransfer-Encoding: chunked\r\n\r\n", stays("").with(304)},
	"after interim ones": {strings.Repeat(interimHead, maxInterim) + sizedHead + "\r\nhello", stays("hello")},

	"chunks":             {chunkedHead + "3\r\nhel\r\n02\r\nlo\r\n0\r\n\r\n", stays("hello")},
	"no chunk":           {chunkedHead + "000\r\n\r\n", stays("")},
	"chunks in hex":      {chunkedHead + "A\r\n0123456789\r\n0b\r\n0123456789a\r\n0\r\n\r\n", stays("01234567890123456789a")},
	"extensions":         {chunkedHead + "3;a=\"b;c\"\r\nhel\r\n2; x\r\nlo\r\n0;end\r\n\r\n", stays("hello")},
	"long extensions":    {chunkedHead + strings.Repeat("1;"+fullBody+"\r\n!\r\n", 17) + "0\r\n\r\n", stays(strings.Repeat("!", 17))},
	"blanks after sizes": {chunkedHead + "3 \r\nhel\r\n2\t\r\nlo\r\n0 \r\n\r\n", stays("hello")},
	"trailer":            {chunkedHead + "5\r\nhello\r\n0\r\nRetry-After: 9\r\nX: y\r\n z\r\n\r\n", stays("hello")},
	"chunks, closes":     {codedHead + "Connection: close\r\n\r\n0\r\n\r\n", ends("")},
	"the limit":          {chunkedHead + "3e8\r\n" + fullBody + "\r\n0\r\n\r\n", stays(fullBody)},
	"until the limit":    {head200 + "\r\n" + fullBody, ends(fullBody)},
}

func TestOddAnswers(t *testing.T) {
	for name, tt := range accepted {
		if got, err := readText(tt.text); err != nil || got != tt.want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, tt.want)
		}
	}
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
	for name, tt := range accepted {
		for n := range cuts(tt.text) {
			got, err := readAnswer(connFrom(io.MultiReader(
				strings.NewReader(tt.text[:n]), strings.NewReader(tt.text[n:]))))
			if err != nil || got != tt.want {
				t.Errorf("%s: split at %d: got %+v, %v", name, n, got, err)
			}
		}
		got, err := readAnswer(connFrom(iotest.OneByteReader(strings.NewReader(tt.text))))
		if err != nil || got != tt.want {
			t.Errorf("%s: byte by byte: got %+v, %v", name, got, err)
		}
	}
}

// TestOddAnswersCutShort: an answer whose end is missing is an error, if anything but the
// end of the connection says where it ends.
func TestOddAnswersCutShort(t *testing.T) {
	for name, tt := range accepted {
		_, body, _ := strings.Cut(tt.text, "\r\n\r\n")
		untilEnd := strings.HasPrefix(name, "until the ") || name == "HTTP/1.0"
		for n := range cuts(tt.text) {
			got, err := readText(tt.text[:n])
			if untilEnd && n >= len(tt.text)-len(body) {
				if err != nil || got.body != tt.text[len(tt.text)-len(body):n] {
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

// TestOddAnswersOneAfterTheOther: an answer ends before the first byte of the next one.
func TestOddAnswersOneAfterTheOther(t *testing.T) {
	for name, tt := range accepted {
		if !tt.want.keepAlive {
			continue
		}
		for next, second := range accepted {
			r := connFrom(strings.NewReader(tt.text + second.text))
			if got, err := readAnswer(r); err != nil || got != tt.want {
				t.Errorf("%s: got %+v, %v", name, got, err)
			}
			if got, err := readAnswer(r); err != nil || got != second.want {
				t.Errorf("%s after %s: got %+v, %v", next, name, got, err)
			}
		}
	}
}

func TestOddAnswersRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want error
	}{
		"HTTP/2":               {"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", conn.OtherProtocol},
		"no version":           {"HTTP/1.x 200 OK\r\nContent-Length: 0\r\n\r\n", conn.BadHead},
		"long version":         {"HTTP/1.10 200 OK\r\nContent-Length: 0\r\n\r\n", conn.BadHead},
		"another protocol":     {"-ERR", conn.OtherProtocol},
		"empty line first":     {"\r\n" + sizedHead + "\r\nhello", conn.OtherProtocol},
		"no status":            {"HTTP/1.1\r\n\r\n", conn.BadHead},
		"status 000":           {"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n", conn.BadHead},
		"status 20":            {"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", conn.BadHead},
		"status 2000":          {"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", conn.BadHead},
		"status +20":           {"HTTP/1.1 +20 OK\r\nContent-Length: 0\r\n\r\n", conn.BadHead},
		"tab before status":    {"HTTP/1.1\t200 OK\r\nContent-Length: 0\r\n\r\n", conn.BadHead},
		"CR in the first line": {"HTTP/1.1 200\rOK\r\nContent-Length: 0\r\n\r\n", conn.BadHead},
		"only bare LF":         {"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", conn.BareLF},
		"bare LF at the end":   {sizedHead + "\nhello", conn.BareLF},
		"bare LF before it":    {"HTTP/1.1 200 OK\r\nContent-Length: 5\n\r\nhello", conn.BareLF},
		"no colon":             {sizedHead + "X\r\n\r\nhello", conn.BadHead},
		"colon in the fold":    {sizedHead + "X\r\n : y\r\n\r\nhello", conn.BadHead},
		"no name":              {sizedHead + ": x\r\n\r\nhello", conn.BadHead},
		"space for a name":     {head200 + " : y\r\nContent-Length: 5\r\n\r\nhello", conn.BadHead},
		"blank before a name":  {head200 + " X: y\r\nContent-Length: 5\r\n\r\nhello", conn.BadHead},
		"tab in a name":        {sizedHead + "X\tY: z\r\n\r\nhello", conn.BadHead},
		"control in a name":    {sizedHead + "X\x00: z\r\n\r\nhello", conn.BadHead},
		"umlaut in a name":     {sizedHead + "\xc3\xa4: z\r\n\r\nhello", conn.BadHead},
		"control in a value":   {sizedHead + "X: \x00\r\n\r\nhello", conn.BadHead},
		"DEL in a value":       {sizedHead + "X: \x7f\r\n\r\nhello", conn.BadHead},
		"CR in a value":        {sizedHead + "X: a\rb\r\n\r\nhello", conn.BadHead},
		"two CR":               {sizedHead + "X: a\r\r\n\r\nhello", conn.BadHead},

		"two lengths":        {sizedHead + "Content-Length: 6\r\n\r\nhello!", conn.TwoLengths},
		"a length twice":     {sizedHead + "Content-Length: 5\r\n\r\nhello", conn.TwoLengths},
		"list of lengths":    {head200 + "Content-Length: 5, 5\r\n\r\nhello", conn.BadHead},
		"folded list":        {head200 + "Content-Length: 5\r\n 5\r\n\r\nhello", conn.BadHead},
		"no length":          {head200 + "Content-Length:\r\n\r\nhello", conn.BadHead},
		"signed length":      {head200 + "Content-Length: +5\r\n\r\nhello", conn.BadHead},
		"negative length":    {head200 + "Content-Length: -5\r\n\r\nhello", conn.BadHead},
		"length in hex":      {head200 + "Content-Length: 0x5\r\n\r\nhello", conn.BadHead},
		"length of 19":       {head200 + "Content-Length: 9999999999999999999\r\n\r\nhello", conn.BadHead},
		"length over":        {head200 + "Content-Length: 1001\r\n\r\n", ErrResponseTooLarge},
		"length far over":    {head200 + "Content-Length: 999999999999999999\r\n\r\n", farOver(conn.BadHead)},
		"space before colon": {head200 + "Content-Length : 5\r\n\r\nhello", conn.BadHead},
		"until over":         {head200 + "\r\n" + strings.Repeat("x", oddLimit+1), ErrResponseTooLarge},

		"length and chunks":    {sizedHead + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", conn.TwoEnds},
		"chunks and length":    {codedHead + "Content-Length: 5\r\n\r\n0\r\n\r\n", conn.TwoEnds},
		"chunks in HTTP/1.0":   {strings.Replace(chunkedHead, "1.1", "1.0", 1) + "0\r\n\r\n", conn.BadHead},
		"gzip":                 {strings.Replace(chunkedHead, "chunked", "gzip", 1), conn.BadHead},
		"gzip, chunked":        {strings.Replace(chunkedHead, "chunked", "gzip, chunked", 1) + "0\r\n\r\n", conn.BadHead},
		"identity":             {strings.Replace(chunkedHead, "chunked", "identity", 1), conn.BadHead},
		"chunked twice":        {codedHead + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", conn.BadHead},
		"coding before colon":  {head200 + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", conn.BadHead},
		"size is not hex":      {chunkedHead + "zz\r\n", conn.BadChunks},
		"no size":              {chunkedHead + "\r\n", conn.BadChunks},
		"no size, extension":   {chunkedHead + ";x\r\n\r\n\r\n", conn.BadChunks},
		"signed size":          {chunkedHead + "+5\r\nhello\r\n0\r\n\r\n", conn.BadChunks},
		"0x":                   {chunkedHead + "0x5\r\nhello\r\n0\r\n\r\n", conn.BadChunks},
		"space before a size":  {chunkedHead + " 5\r\nhello\r\n0\r\n\r\n", conn.BadChunks},
		"space before a ;":     {chunkedHead + "5 ;x\r\nhello\r\n0\r\n\r\n", conn.BadChunks},
		"bare LF after a size": {chunkedHead + "5\nhello\r\n0\r\n\r\n", conn.BadChunks},
		"CR in an extension":   {chunkedHead + "5;a\rb\r\nhello\r\n0\r\n\r\n", conn.BadChunks},
		"16 digits":            {chunkedHead + "0000000000000005\r\nhello\r\n0\r\n\r\n", conn.BadChunks},
		"longer than its size": {chunkedHead + "4\r\nhello\r\n0\r\n\r\n", conn.BadChunks},
		"LF after a chunk":     {chunkedHead + "5\r\nhello\n0\r\n\r\n", conn.BadChunks},
		"chunk over":           {chunkedHead + "3e9\r\n" + fullBody + "x", ErrResponseTooLarge},
		"chunk far over":       {chunkedHead + "fffffffffffffff\r\n" + fullBody + "x", farOver(conn.BadChunks)},
		"chunks over":          {chunkedHead + "3e7\r\n" + fullBody[1:] + "\r\n2\r\nxx", ErrResponseTooLarge},
		"bare LF in a trailer": {chunkedHead + "0\r\n\n", errHungUp}, // it waits for more
		"length in a trailer":  {chunkedHead + "0\r\nContent-Length: 0\r\n\r\n", conn.BadChunks},
		"coding in a trailer":  {chunkedHead + "0\r\nTransfer-Encoding: chunked\r\n\r\n", conn.BadChunks},
		"trailer has no colon": {chunkedHead + "0\r\nhello\r\n\r\n", conn.BadChunks},
		"close in a trailer":   {chunkedHead + "5\r\nhello\r\n0\r\nConnection: close\r\n\r\n", conn.BadChunks},
		"chunks in HTTP/1.7":   {strings.Replace(chunkedHead, "1.1", "1.7", 1) + "0\r\n\r\n", conn.BadHead},
		"long trailer":         {chunkedHead + "0\r\nX: " + strings.Repeat("x", oddBuffer) + "\r\n\r\n", conn.ErrLongHead},

		"long head":         {head200 + "X: " + strings.Repeat("x", oddBuffer) + "\r\n\r\n", conn.ErrLongHead},
		"many long lines":   {head200 + strings.Repeat("X: "+fullBody+"\r\n", 40) + "\r\n", conn.ErrLongHead},
		"six interim ones":  {strings.Repeat(interimHead, maxInterim+1) + sizedHead + "\r\nhello", errInterim},
		"another protocol ": {"HTTP/1.1 101 Switching Protocols\r\n\r\n" + sizedHead + "\r\nhello", errInterim},
		"interim, broken":   {"HTTP/1.1 103\r\nX\r\n\r\n" + sizedHead + "\r\nhello", conn.BadHead},
	} {
		if got, err := readText(tt.text); err != tt.want {
			t.Errorf("%s: got %+v, %v, want %v", name, got, err, tt.want)
		}
	}
}

// TestFieldsOfInterimAnswersDoNotCount: only those of the last one do.
func TestFieldsOfInterimAnswersDoNotCount(t *testing.T) {
	got, err := readText(strings.Replace(interimHead, "Link", "Retry-After", 1) + sizedHead + "\r\nhello")
	if err != nil || got != stays("hello") {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestNoReadBeyondTheAnswer: the reader waits for no byte that need not come.
func TestNoReadBeyondTheAnswer(t *testing.T) {
	for name, tt := range accepted {
		if !tt.want.keepAlive {
			continue
		}
		r := io.MultiReader(strings.NewReader(tt.text), iotest.ErrReader(io.ErrNoProgress))
		if got, err := readAnswer(connFrom(r)); err != nil {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// TestErrorOfTheConnection: it is the cause, and is never the end of a body.
func TestErrorOfTheConnection(t *testing.T) {
	for name, tt := range accepted {
		for n := range cuts(tt.text) {
			r := io.MultiReader(strings.NewReader(tt.text[:n]), iotest.ErrReader(io.ErrClosedPipe))
			if got, err := readAnswer(connFrom(r)); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("%s: broken at %d: got %+v, %v", name, n, got, err)
			}
		}
	}
}

// TestHeadThatFillsTheBuffer has the longest header there is room for.
func TestHeadThatFillsTheBuffer(t *testing.T) {
	fits := sizedHead + "X: " + strings.Repeat("x", oddBuffer-len(sizedHead)-len("X: \r\n\r\n")) + "\r\n\r\n"
	if got, err := readText(fits + "hello"); err != nil || got.body != "hello" {
		t.Errorf("%d bytes: got %q, %v", len(fits), got.body, err)
	}
	if _, err := readText(strings.Replace(fits, "X", "XX", 1) + "hello"); err != conn.ErrLongHead {
		t.Errorf("%d bytes: got %v, want conn.ErrLongHead", len(fits)+1, err)
	}
}

// TestBodyAfterWhatIsThere: the body comes after it, whatever room there is.
func TestBodyAfterWhatIsThere(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789"), 50_000)
	for name, head := range map[string]string{
		"length": head200 + "Content-Length: 500000\r\n\r\n", "until the end": head200 + "\r\n",
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
