// Package oddanswers has HTTP answers that are odd. Package upstash reads all of
// them as the native transport does, and transporttest sends them to each
// transport over sockets.
package oddanswers

import (
	"strconv"
	"strings"
)

const (
	Limit      = 1000     // of the body of an answer, in bytes
	Buffer     = 16 << 10 // the native transport's room for a header
	MaxInterim = 5        // answers of status 1xx before the one that counts
)

// An Answer is what must be read of a text.
type Answer struct {
	Text string
	Read
}

// Read is what is read of an answer.
type Read struct {
	Status     int
	Keeps      bool // the connection
	RetryAfter string
	Body       string
}

// stays is an answer of status 200 after which the connection is used again.
func stays(body string) Read { return Read{200, true, "", body} }

// ends is one after which it is not.
func ends(body string) Read { return Read{200, false, "", body} }

func (r Read) with(status int) Read {
	r.Status = status
	return r
}

// after is r with the field Retry-After.
func (r Read) after(value string) Read {
	r.RetryAfter = value
	return r
}

const (
	old     = "HTTP/1.0 200 OK\r\n"
	head    = "HTTP/1.1 200 OK\r\n"
	coded   = head + "Transfer-Encoding: chunked\r\n"
	chunked = coded + "\r\n"

	// Sized is the header of "hello", without its last line, and Interim an answer
	// before the one that counts.
	Sized   = head + "Content-Length: 5\r\n"
	Interim = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
)

var full = strings.Repeat("x", Limit)

// Accepted has an answer of each form, and what must be read of it.
var Accepted = map[string]Answer{
	"length":                 {Sized + "\r\nhello", stays("hello")},
	"length of 0":            {head + "Content-Length: 0\r\n\r\n", stays("")},
	"length with zeros":      {head + "content-length:\t005 \r\n\r\nhello", stays("hello")},
	"no reason":              {"HTTP/1.1 500\r\nContent-Length: 1\r\n\r\n!", stays("!").with(500)},
	"spaces":                 {"HTTP/1.1   429  Too\tmany\r\nContent-Length: 1\r\n\r\n!", stays("!").with(429)},
	"until the end":          {head + "\r\nhello", ends("hello")},
	"until the end, nothing": {head + "\r\n", ends("")},
	"fields": {
		Sized + "X!#$%&'*+-.^_`|~09: \x80 \t\xff \r\nX:\r\nRETRY-AFTER: 4\r\n\r\nhello",
		stays("hello").after("4"),
	},

	"HTTP/1.0":            {old + "\r\nold", ends("old")},
	"HTTP/1.0, length":    {old + "Content-Length: 3\r\n\r\nold", ends("old")},
	"HTTP/1.0, keeps":     {old + "Content-Length: 3\r\nConnection: Keep-Alive\r\n\r\nold", stays("old")},
	"HTTP/1.0, in doubt":  {old + "Content-Length: 3\r\nConnection: keep-alive, close\r\n\r\nold", ends("old")},
	"closes":              {Sized + "CONNECTION: x, CLOSE\r\n\r\nhello", ends("hello")},
	"closes, in one":      {Sized + "Connection: close\r\nConnection: keep-alive\r\n\r\nhello", ends("hello")},
	"does not close":      {Sized + "Connection: disclose, keep-alive\r\nX-Connection: close\r\n\r\nhello", stays("hello")},
	"bare LF, but at end": {"HTTP/1.1 200\nX: y\nContent-Length: 5\r\n\r\nhello", stays("hello")},
	"folded":              {Sized + "X: a\r\n\tb\n c\r\n \r\nY:\r\n\r\nhello", stays("hello")},
	"folded length":       {head + "Content-Length:\r\n 5\r\n\r\nhello", stays("hello")},
	"folded close":        {Sized + "Connection: x,\r\n close\r\n\r\nhello", ends("hello")},
	"space in a name":     {Sized + "X Y: z\r\n\r\nhello", ends("hello")},
	"space after a name":  {Sized + "X : z\r\n\r\nhello", stays("hello")},

	"204":                {"HTTP/1.1 204 No Content\r\n\r\n", stays("").with(204)},
	"204 with a length":  {"HTTP/1.1 204 No Content\r\nContent-Length: 5000\r\n\r\n", stays("").with(204)},
	"304 with chunks":    {"HTTP/1.1 304\r\nTransfer-Encoding: chunked\r\n\r\n", stays("").with(304)},
	"after interim ones": {strings.Repeat(Interim, MaxInterim) + Sized + "\r\nhello", stays("hello")},

	"chunks":             {chunked + "3\r\nhel\r\n02\r\nlo\r\n0\r\n\r\n", stays("hello")},
	"no chunk":           {chunked + "000\r\n\r\n", stays("")},
	"chunks in hex":      {chunked + "A\r\n0123456789\r\n0b\r\n0123456789a\r\n0\r\n\r\n", stays("01234567890123456789a")},
	"extensions":         {chunked + "3;a=\"b;c\"\r\nhel\r\n2; x\r\nlo\r\n0;end\r\n\r\n", stays("hello")},
	"long extensions":    {chunked + strings.Repeat("1;"+full+"\r\n!\r\n", 17) + "0\r\n\r\n", stays(strings.Repeat("!", 17))},
	"blanks after sizes": {chunked + "3 \r\nhel\r\n2\t\r\nlo\r\n0 \r\n\r\n", stays("hello")},
	"trailer":            {chunked + "5\r\nhello\r\n0\r\nRetry-After: 9\r\nX: y\r\n z\r\n\r\n", stays("hello")},
	"chunks, closes":     {coded + "Connection: close\r\n\r\n0\r\n\r\n", ends("")},
	"the limit":          {chunked + "3e8\r\n" + full + "\r\n0\r\n\r\n", stays(full)},
	"until the limit":    {head + "\r\n" + full, ends(full)},
}

// A Refusal is an answer of which nothing may be read, and the end of the native
// transport's error.
type Refusal struct{ Text, Why string }

const (
	OtherProtocol = "the answer is not HTTP/1.1"
	BadHead       = "its header is malformed"
	BareLF        = "the last lines of its header end in a bare LF"
	TwoLengths    = "it has two lengths"
	TwoEnds       = "it has a length beside chunks"
	BadChunks     = "its chunks are malformed"
	LongHead      = "find the proxy that adds to it"
	OnlyInterim   = "in place of the one that counts"
	TooLarge      = "or ask for less at once"
	HungUp        = "unexpected EOF"
)

// farOver is the error of a length of 60 bits. fasthttp reads lengths as int: on 32
// bits such a one is no number to it.
func farOver(in32Bits string) string {
	if strconv.IntSize == 32 {
		return in32Bits
	}
	return TooLarge
}

// Refused has what no transport needs to read.
var Refused = map[string]Refusal{
	"HTTP/2":               {"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", OtherProtocol},
	"no version":           {"HTTP/1.x 200 OK\r\nContent-Length: 0\r\n\r\n", BadHead},
	"long version":         {"HTTP/1.10 200 OK\r\nContent-Length: 0\r\n\r\n", BadHead},
	"another protocol":     {"-ERR", OtherProtocol},
	"empty line first":     {"\r\n" + Sized + "\r\nhello", OtherProtocol},
	"no status":            {"HTTP/1.1\r\n\r\n", BadHead},
	"status 000":           {"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n", BadHead},
	"status 20":            {"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", BadHead},
	"status 2000":          {"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", BadHead},
	"status +20":           {"HTTP/1.1 +20 OK\r\nContent-Length: 0\r\n\r\n", BadHead},
	"tab before status":    {"HTTP/1.1\t200 OK\r\nContent-Length: 0\r\n\r\n", BadHead},
	"CR in the first line": {"HTTP/1.1 200\rOK\r\nContent-Length: 0\r\n\r\n", BadHead},
	"only bare LF":         {"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", BareLF},
	"bare LF at the end":   {Sized + "\nhello", BareLF},
	"bare LF before it":    {"HTTP/1.1 200 OK\r\nContent-Length: 5\n\r\nhello", BareLF},
	"no colon":             {Sized + "X\r\n\r\nhello", BadHead},
	"colon in the fold":    {Sized + "X\r\n : y\r\n\r\nhello", BadHead},
	"no name":              {Sized + ": x\r\n\r\nhello", BadHead},
	"space for a name":     {head + " : y\r\nContent-Length: 5\r\n\r\nhello", BadHead},
	"blank before a name":  {head + " X: y\r\nContent-Length: 5\r\n\r\nhello", BadHead},
	"tab in a name":        {Sized + "X\tY: z\r\n\r\nhello", BadHead},
	"control in a name":    {Sized + "X\x00: z\r\n\r\nhello", BadHead},
	"umlaut in a name":     {Sized + "\xc3\xa4: z\r\n\r\nhello", BadHead},
	"control in a value":   {Sized + "X: \x00\r\n\r\nhello", BadHead},
	"DEL in a value":       {Sized + "X: \x7f\r\n\r\nhello", BadHead},
	"CR in a value":        {Sized + "X: a\rb\r\n\r\nhello", BadHead},
	"two CR":               {Sized + "X: a\r\r\n\r\nhello", BadHead},

	"two lengths":        {Sized + "Content-Length: 6\r\n\r\nhello!", TwoLengths},
	"a length twice":     {Sized + "Content-Length: 5\r\n\r\nhello", TwoLengths},
	"list of lengths":    {head + "Content-Length: 5, 5\r\n\r\nhello", BadHead},
	"folded list":        {head + "Content-Length: 5\r\n 5\r\n\r\nhello", BadHead},
	"no length":          {head + "Content-Length:\r\n\r\nhello", BadHead},
	"signed length":      {head + "Content-Length: +5\r\n\r\nhello", BadHead},
	"negative length":    {head + "Content-Length: -5\r\n\r\nhello", BadHead},
	"length in hex":      {head + "Content-Length: 0x5\r\n\r\nhello", BadHead},
	"length of 19":       {head + "Content-Length: 9999999999999999999\r\n\r\nhello", BadHead},
	"length over":        {head + "Content-Length: 1001\r\n\r\n", TooLarge},
	"length far over":    {head + "Content-Length: 999999999999999999\r\n\r\n", farOver(BadHead)},
	"space before colon": {head + "Content-Length : 5\r\n\r\nhello", BadHead},
	"until over":         {head + "\r\n" + strings.Repeat("x", Limit+1), TooLarge},

	"length and chunks":    {Sized + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", TwoEnds},
	"chunks and length":    {coded + "Content-Length: 5\r\n\r\n0\r\n\r\n", TwoEnds},
	"chunks in HTTP/1.0":   {strings.Replace(chunked, "1.1", "1.0", 1) + "0\r\n\r\n", BadHead},
	"gzip":                 {strings.Replace(chunked, "chunked", "gzip", 1), BadHead},
	"gzip, chunked":        {strings.Replace(chunked, "chunked", "gzip, chunked", 1) + "0\r\n\r\n", BadHead},
	"identity":             {strings.Replace(chunked, "chunked", "identity", 1), BadHead},
	"chunked twice":        {coded + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BadHead},
	"coding before colon":  {head + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", BadHead},
	"size is not hex":      {chunked + "zz\r\n", BadChunks},
	"no size":              {chunked + "\r\n", BadChunks},
	"no size, extension":   {chunked + ";x\r\n\r\n\r\n", BadChunks},
	"signed size":          {chunked + "+5\r\nhello\r\n0\r\n\r\n", BadChunks},
	"0x":                   {chunked + "0x5\r\nhello\r\n0\r\n\r\n", BadChunks},
	"space before a size":  {chunked + " 5\r\nhello\r\n0\r\n\r\n", BadChunks},
	"space before a ;":     {chunked + "5 ;x\r\nhello\r\n0\r\n\r\n", BadChunks},
	"bare LF after a size": {chunked + "5\nhello\r\n0\r\n\r\n", BadChunks},
	"CR in an extension":   {chunked + "5;a\rb\r\nhello\r\n0\r\n\r\n", BadChunks},
	"16 digits":            {chunked + "0000000000000005\r\nhello\r\n0\r\n\r\n", BadChunks},
	"longer than its size": {chunked + "4\r\nhello\r\n0\r\n\r\n", BadChunks},
	"LF after a chunk":     {chunked + "5\r\nhello\n0\r\n\r\n", BadChunks},
	"chunk over":           {chunked + "3e9\r\n" + full + "x", TooLarge},
	"chunk far over":       {chunked + "fffffffffffffff\r\n" + full + "x", farOver(BadChunks)},
	"chunks over":          {chunked + "3e7\r\n" + full[1:] + "\r\n2\r\nxx", TooLarge},
	"bare LF in a trailer": {chunked + "0\r\n\n", HungUp}, // it waits for more
	"length in a trailer":  {chunked + "0\r\nContent-Length: 0\r\n\r\n", BadChunks},
	"coding in a trailer":  {chunked + "0\r\nTransfer-Encoding: chunked\r\n\r\n", BadChunks},
	"trailer has no colon": {chunked + "0\r\nhello\r\n\r\n", BadChunks},
	"close in a trailer":   {chunked + "5\r\nhello\r\n0\r\nConnection: close\r\n\r\n", BadChunks},
	"chunks in HTTP/1.7":   {strings.Replace(chunked, "1.1", "1.7", 1) + "0\r\n\r\n", BadHead},
	"long trailer":         {chunked + "0\r\nX: " + strings.Repeat("x", Buffer) + "\r\n\r\n", LongHead},

	"long head":        {head + "X: " + strings.Repeat("x", Buffer) + "\r\n\r\n", LongHead},
	"a head of 1 MB":   {head + "X: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", LongHead},
	"a head of 40 KB":  {head + strings.Repeat("X: "+full+"\r\n", 40) + "\r\n", LongHead},
	"six interim ones": {strings.Repeat(Interim, MaxInterim+1) + Sized + "\r\nhello", OnlyInterim},
	"switches":         {"HTTP/1.1 101 Switching Protocols\r\n\r\n" + Sized + "\r\nhello", OnlyInterim},
	"interim, broken":  {"HTTP/1.1 103\r\nX\r\n\r\n" + Sized + "\r\nhello", BadHead},
}
