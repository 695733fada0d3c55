package http1

import (
	"bufio"
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

const (
	limit  = 1000
	buffer = 16 << 10
)

// answer is what was read.
type answer struct {
	status    int
	keepAlive bool
	fields    []string
	body      string
}

func readAnswer(r *bufio.Reader) (answer, error) {
	var a answer
	h, err := ReadHead(r, func(name, value []byte) {
		a.fields = append(a.fields, string(name)+": "+string(value))
	})
	if err != nil {
		return answer{}, err
	}
	body, err := h.AppendBody([]byte("before"), r, limit)
	if err != nil {
		return answer{}, err
	}
	a.status, a.keepAlive, a.body = h.Status, h.KeepAlive, strings.TrimPrefix(string(body), "before")
	return a, nil
}

func readText(text string) (answer, error) {
	return readAnswer(bufio.NewReaderSize(strings.NewReader(text), buffer))
}

// kept is an answer of status 200 after which the connection is used again.
func kept(body string, fields ...string) answer { return answer{200, true, fields, body} }

// last is one after which it is not.
func last(body string, fields ...string) answer { return answer{200, false, fields, body} }

func (a answer) with(status int) answer {
	a.status = status
	return a
}

var full = strings.Repeat("x", limit)

const (
	old     = "HTTP/1.0 200 OK\r\n"
	ok      = "HTTP/1.1 200 OK\r\n"
	coded   = ok + "Transfer-Encoding: chunked\r\n"
	chunked = coded + "\r\n"
	sized   = ok + "Content-Length: 5\r\n"
	interim = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
)

// accepted has an answer of each form, and what must be read of it.
var accepted = map[string]struct {
	text string
	want answer
}{
	"length":                 {sized + "\r\nhello", kept("hello")},
	"length of 0":            {ok + "Content-Length: 0\r\n\r\n", kept("")},
	"length with zeros":      {ok + "content-length:\t005 \r\n\r\nhello", kept("hello")},
	"no reason":              {"HTTP/1.1 500\r\nContent-Length: 1\r\n\r\n!", kept("!").with(500)},
	"spaces":                 {"HTTP/1.1   429  Too\tmany\r\nContent-Length: 1\r\n\r\n!", kept("!").with(429)},
	"minor version":          {"HTTP/1.7 200\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", kept("")},
	"until the end":          {ok + "\r\nhello", last("hello")},
	"until the end, nothing": {ok + "\r\n", last("")},
	"fields": {
		sized + "Retry-After: 3\r\nX!#$%&'*+-.^_`|~09: \x80 \t\xff \r\nX:\r\nRETRY-AFTER: 4\r\n\r\nhello",
		kept("hello", "Retry-After: 3", "X!#$%&'*+-.^_`|~09: \x80 \t\xff", "X: ", "RETRY-AFTER: 4"),
	},

	"HTTP/1.0":            {old + "\r\nold", last("old")},
	"HTTP/1.0, length":    {old + "Content-Length: 3\r\n\r\nold", last("old")},
	"HTTP/1.0, keeps":     {old + "Content-Length: 3\r\nConnection: Keep-Alive\r\n\r\nold", kept("old")},
	"HTTP/1.0, in doubt":  {old + "Content-Length: 3\r\nConnection: keep-alive, close\r\n\r\nold", last("old")},
	"closes":              {sized + "CONNECTION: x, CLOSE\r\n\r\nhello", last("hello")},
	"closes, in one":      {sized + "Connection: close\r\nConnection: keep-alive\r\n\r\nhello", last("hello")},
	"does not close":      {sized + "Connection: disclose\r\n\r\nhello", kept("hello")},
	"bare LF, but at end": {"HTTP/1.1 200\nX: y\nContent-Length: 5\r\n\r\nhello", kept("hello", "X: y")},
	"folded":              {sized + "X: a\r\n\tb\n c\r\n \r\nY:\r\n\r\nhello", last("hello", "X: a  \tb  c", "Y: ")},
	"folded length":       {ok + "Content-Length:\r\n 5\r\n\r\nhello", last("hello")},
	"folded close":        {sized + "Connection: x,\r\n close\r\n\r\nhello", last("hello")},
	"space in a name":     {sized + "X Y: z\r\n\r\nhello", last("hello")},
	"space after a name":  {sized + "X : z\r\n\r\nhello", last("hello")},

	"204":                {"HTTP/1.1 204 No Content\r\n\r\n", kept("").with(204)},
	"204 with a length":  {"HTTP/1.1 204 No Content\r\nContent-Length: 5000\r\n\r\n", kept("").with(204)},
	"304 with chunks":    {"HTTP/1.1 304\r\nTransfer-Encoding: chunked\r\n\r\n", kept("").with(304)},
	"after interim ones": {strings.Repeat(interim, maxInterim) + sized + "\r\nhello", kept("hello")},

	"chunks":             {chunked + "3\r\nhel\r\n02\r\nlo\r\n0\r\n\r\n", kept("hello")},
	"no chunk":           {chunked + "000\r\n\r\n", kept("")},
	"chunks in hex":      {chunked + "A\r\n0123456789\r\n0b\r\n0123456789a\r\n0\r\n\r\n", kept("01234567890123456789a")},
	"extensions":         {chunked + "3;a=\"b;c\"\r\nhel\r\n2; x\r\nlo\r\n0;end\r\n\r\n", kept("hello")},
	"blanks after sizes": {chunked + "3 \r\nhel\r\n2\t\r\nlo\r\n0 \r\n\r\n", kept("hello")},
	"trailer":            {chunked + "5\r\nhello\r\n0\r\nRetry-After: 9\r\nX: y\r\n z\r\n\r\n", last("hello")},
	"trailer closes":     {chunked + "5\r\nhello\r\n0\r\nConnection: close\r\n\r\n", last("hello")},
	"chunks, closes":     {coded + "Connection: close\r\n\r\n0\r\n\r\n", last("")},
	"the limit":          {chunked + "3e8\r\n" + full + "\r\n0\r\n\r\n", kept(full)},
	"until the limit":    {ok + "\r\n" + full, last(full)},
}

func TestAccepted(t *testing.T) {
	for name, tt := range accepted {
		if got, err := readText(tt.text); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, tt.want)
		}
	}
}

// TestEverySplit: what is read does not depend on how the bytes arrive.
func TestEverySplit(t *testing.T) {
	for name, tt := range accepted {
		for n := range len(tt.text) {
			got, err := readAnswer(bufio.NewReaderSize(io.MultiReader(
				strings.NewReader(tt.text[:n]), strings.NewReader(tt.text[n:])), buffer))
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%s: split at %d: got %+v, %v", name, n, got, err)
			}
		}
		got, err := readAnswer(bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(tt.text)), buffer))
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: byte by byte: got %+v, %v", name, got, err)
		}
	}
}

// TestEveryCut: an answer whose end is missing is an error, if anything but the
// end of the connection says where it ends.
func TestEveryCut(t *testing.T) {
	for name, tt := range accepted {
		_, body, _ := strings.Cut(tt.text, "\r\n\r\n")
		untilEnd := strings.HasPrefix(name, "until the ") || name == "HTTP/1.0"
		for n := range len(tt.text) {
			got, err := readText(tt.text[:n])
			if untilEnd && n >= len(tt.text)-len(body) {
				if err != nil || got.body != tt.text[len(tt.text)-len(body):n] {
					t.Errorf("%s: cut at %d: got %+v, %v", name, n, got, err)
				}
				continue
			}
			if err != io.EOF {
				t.Errorf("%s: cut at %d: got %+v, %v, want EOF", name, n, got, err)
			}
		}
	}
}

// TestOneAfterTheOther: an answer ends before the first byte of the next one.
func TestOneAfterTheOther(t *testing.T) {
	for name, tt := range accepted {
		if !tt.want.keepAlive {
			continue
		}
		for next, second := range accepted {
			r := bufio.NewReaderSize(strings.NewReader(tt.text+second.text), buffer)
			if got, err := readAnswer(r); err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%s: got %+v, %v", name, got, err)
			}
			if got, err := readAnswer(r); err != nil || !reflect.DeepEqual(got, second.want) {
				t.Errorf("%s after %s: got %+v, %v", next, name, got, err)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want error
	}{
		"HTTP/2":               {"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", ErrNotHTTP},
		"no version":           {"HTTP/1.x 200 OK\r\nContent-Length: 0\r\n\r\n", ErrNotHTTP},
		"long version":         {"HTTP/1.10 200 OK\r\nContent-Length: 0\r\n\r\n", ErrNotHTTP},
		"another protocol":     {"-ERR", ErrNotHTTP},
		"empty line first":     {"\r\n" + sized + "\r\nhello", ErrNotHTTP},
		"no status":            {"HTTP/1.1\r\n\r\n", ErrNotHTTP},
		"status 000":           {"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n", ErrNotHTTP},
		"status 20":            {"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", ErrNotHTTP},
		"status 2000":          {"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", ErrNotHTTP},
		"status +20":           {"HTTP/1.1 +20 OK\r\nContent-Length: 0\r\n\r\n", ErrNotHTTP},
		"tab before status":    {"HTTP/1.1\t200 OK\r\nContent-Length: 0\r\n\r\n", ErrNotHTTP},
		"CR in the first line": {"HTTP/1.1 200\rOK\r\nContent-Length: 0\r\n\r\n", ErrNotHTTP},
		"only bare LF":         {"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", ErrNotHTTP},
		"bare LF at the end":   {sized + "\nhello", ErrNotHTTP},
		"bare LF before it":    {"HTTP/1.1 200 OK\r\nContent-Length: 5\n\r\nhello", ErrNotHTTP},
		"no colon":             {sized + "X\r\n\r\nhello", ErrNotHTTP},
		"colon in the fold":    {sized + "X\r\n : y\r\n\r\nhello", ErrNotHTTP},
		"no name":              {sized + ": x\r\n\r\nhello", ErrNotHTTP},
		"space for a name":     {ok + " : y\r\nContent-Length: 5\r\n\r\nhello", ErrNotHTTP},
		"blank before a name":  {ok + " X: y\r\nContent-Length: 5\r\n\r\nhello", ErrNotHTTP},
		"tab in a name":        {sized + "X\tY: z\r\n\r\nhello", ErrNotHTTP},
		"control in a name":    {sized + "X\x00: z\r\n\r\nhello", ErrNotHTTP},
		"umlaut in a name":     {sized + "\xc3\xa4: z\r\n\r\nhello", ErrNotHTTP},
		"control in a value":   {sized + "X: \x00\r\n\r\nhello", ErrNotHTTP},
		"DEL in a value":       {sized + "X: \x7f\r\n\r\nhello", ErrNotHTTP},
		"CR in a value":        {sized + "X: a\rb\r\n\r\nhello", ErrNotHTTP},
		"two CR":               {sized + "X: a\r\r\n\r\nhello", ErrNotHTTP},

		"two lengths":        {sized + "Content-Length: 6\r\n\r\nhello!", ErrNotHTTP},
		"a length twice":     {sized + "Content-Length: 5\r\n\r\nhello", ErrNotHTTP},
		"list of lengths":    {ok + "Content-Length: 5, 5\r\n\r\nhello", ErrNotHTTP},
		"folded list":        {ok + "Content-Length: 5\r\n 5\r\n\r\nhello", ErrNotHTTP},
		"no length":          {ok + "Content-Length:\r\n\r\nhello", ErrNotHTTP},
		"signed length":      {ok + "Content-Length: +5\r\n\r\nhello", ErrNotHTTP},
		"negative length":    {ok + "Content-Length: -5\r\n\r\nhello", ErrNotHTTP},
		"length in hex":      {ok + "Content-Length: 0x5\r\n\r\nhello", ErrNotHTTP},
		"length of 19":       {ok + "Content-Length: 9999999999999999999\r\n\r\nhello", ErrNotHTTP},
		"length over":        {ok + "Content-Length: 1001\r\n\r\n", ErrLongBody},
		"length far over":    {ok + "Content-Length: 999999999999999999\r\n\r\n", ErrLongBody},
		"space before colon": {ok + "Content-Length : 5\r\n\r\nhello", ErrNotHTTP},
		"until over":         {ok + "\r\n" + strings.Repeat("x", limit+1), ErrLongBody},

		"length and chunks":    {sized + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ErrNotHTTP},
		"chunks and length":    {coded + "Content-Length: 5\r\n\r\n0\r\n\r\n", ErrNotHTTP},
		"chunks in HTTP/1.0":   {strings.Replace(chunked, "1.1", "1.0", 1) + "0\r\n\r\n", ErrNotHTTP},
		"gzip":                 {strings.Replace(chunked, "chunked", "gzip", 1), ErrNotHTTP},
		"gzip, chunked":        {strings.Replace(chunked, "chunked", "gzip, chunked", 1) + "0\r\n\r\n", ErrNotHTTP},
		"identity":             {strings.Replace(chunked, "chunked", "identity", 1), ErrNotHTTP},
		"chunked twice":        {coded + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ErrNotHTTP},
		"coding before colon":  {ok + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", ErrNotHTTP},
		"size is not hex":      {chunked + "zz\r\n", ErrNotHTTP},
		"no size":              {chunked + "\r\n", ErrNotHTTP},
		"no size, extension":   {chunked + ";x\r\n\r\n\r\n", ErrNotHTTP},
		"signed size":          {chunked + "+5\r\nhello\r\n0\r\n\r\n", ErrNotHTTP},
		"0x":                   {chunked + "0x5\r\nhello\r\n0\r\n\r\n", ErrNotHTTP},
		"space before a size":  {chunked + " 5\r\nhello\r\n0\r\n\r\n", ErrNotHTTP},
		"space before a ;":     {chunked + "5 ;x\r\nhello\r\n0\r\n\r\n", ErrNotHTTP},
		"bare LF after a size": {chunked + "5\nhello\r\n0\r\n\r\n", ErrNotHTTP},
		"CR in an extension":   {chunked + "5;a\rb\r\nhello\r\n0\r\n\r\n", ErrNotHTTP},
		"16 digits":            {chunked + "0000000000000005\r\nhello\r\n0\r\n\r\n", ErrNotHTTP},
		"long size line":       {chunked + "5;" + strings.Repeat("x", buffer) + "\r\nhello", ErrNotHTTP},
		"many extensions":      {chunked + strings.Repeat("1;"+full+"\r\n!\r\n", 17), ErrNotHTTP},
		"longer than its size": {chunked + "4\r\nhello\r\n0\r\n\r\n", ErrNotHTTP},
		"LF after a chunk":     {chunked + "5\r\nhello\n0\r\n\r\n", ErrNotHTTP},
		"chunk over":           {chunked + "3e9\r\n", ErrLongBody},
		"chunk far over":       {chunked + "fffffffffffffff\r\n", ErrLongBody},
		"chunks over":          {chunked + "3e7\r\n" + full[1:] + "\r\n2\r\n", ErrLongBody},
		"length in a trailer":  {chunked + "0\r\nContent-Length: 0\r\n\r\n", ErrNotHTTP},
		"coding in a trailer":  {chunked + "0\r\nTransfer-Encoding: chunked\r\n\r\n", ErrNotHTTP},
		"trailer has no colon": {chunked + "0\r\nhello\r\n\r\n", ErrNotHTTP},
		"bare LF in a trailer": {chunked + "0\r\n\n", ErrNotHTTP},
		"long trailer":         {chunked + "0\r\nX: " + strings.Repeat("x", buffer) + "\r\n\r\n", ErrNotHTTP},

		"long head":         {ok + "X: " + strings.Repeat("x", buffer) + "\r\n\r\n", ErrLongHead},
		"six interim ones":  {strings.Repeat(interim, maxInterim+1) + sized + "\r\nhello", ErrInterim},
		"another protocol ": {"HTTP/1.1 101 Switching Protocols\r\n\r\n" + sized + "\r\nhello", ErrInterim},
		"interim, broken":   {"HTTP/1.1 103\r\nX\r\n\r\n" + sized + "\r\nhello", ErrNotHTTP},
	} {
		if got, err := readText(tt.text); err != tt.want {
			t.Errorf("%s: got %+v, %v, want %v", name, got, err, tt.want)
		}
	}
}

// TestFieldsOfInterimAnswersDoNotCount: only those of the last one do.
func TestFieldsOfInterimAnswersDoNotCount(t *testing.T) {
	got, err := readText(strings.Replace(interim, "Link", "Retry-After", 1) + sized + "X: y\r\n\r\nhello")
	if err != nil || !reflect.DeepEqual(got.fields, []string{"X: y"}) {
		t.Errorf("got %q, %v", got.fields, err)
	}
}

// TestNoReadBeyondTheAnswer: the reader waits for no byte that need not come.
func TestNoReadBeyondTheAnswer(t *testing.T) {
	for name, tt := range accepted {
		if !tt.want.keepAlive {
			continue
		}
		r := io.MultiReader(strings.NewReader(tt.text), iotest.ErrReader(io.ErrNoProgress))
		if got, err := readAnswer(bufio.NewReaderSize(r, buffer)); err != nil {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// TestErrorOfTheConnection: it comes back as it is, and is never the end of a body.
func TestErrorOfTheConnection(t *testing.T) {
	for name, tt := range accepted {
		for n := range len(tt.text) {
			r := io.MultiReader(strings.NewReader(tt.text[:n]), iotest.ErrReader(io.ErrClosedPipe))
			if got, err := readAnswer(bufio.NewReaderSize(r, buffer)); err != io.ErrClosedPipe {
				t.Errorf("%s: broken at %d: got %+v, %v", name, n, got, err)
			}
		}
	}
}

// TestHeadThatFillsTheBuffer has the longest header there is room for.
func TestHeadThatFillsTheBuffer(t *testing.T) {
	fits := sized + "X: " + strings.Repeat("x", buffer-len(sized)-len("X: \r\n\r\n")) + "\r\n\r\n"
	if got, err := readText(fits + "hello"); err != nil || got.body != "hello" {
		t.Errorf("%d bytes: got %q, %v", len(fits), got.body, err)
	}
	if _, err := readText(strings.Replace(fits, "X", "XX", 1) + "hello"); err != ErrLongHead {
		t.Errorf("%d bytes: got %v, want ErrLongHead", len(fits)+1, err)
	}
}

// TestAppendBodyKeepsWhatIsThere: the body comes after it, whatever room there is.
func TestAppendBodyKeepsWhatIsThere(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789"), 50_000)
	for name, head := range map[string]string{
		"length": ok + "Content-Length: 500000\r\n\r\n", "until the end": ok + "\r\n",
	} {
		for _, room := range []int{0, 1, 7, 1000, len(body), 2 * len(body)} {
			r := bufio.NewReaderSize(io.MultiReader(strings.NewReader(head), bytes.NewReader(body)), buffer)
			h, err := ReadHead(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := h.AppendBody(append(make([]byte, 0, room), "x"...), r, len(body))
			if err != nil || string(got[:1]) != "x" || !bytes.Equal(got[1:], body) {
				t.Errorf("%s, room for %d: %d bytes, %v", name, room, len(got), err)
			}
		}
	}
}
