package upstash

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json" // what users marshal our types with
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// redactOne is what remains of a server's message.
func redactOne(message, request string) string {
	return asked(request).redact(serverError{words: message})[0]
}

// asked is a call with this request.
func asked(request string) *call {
	x := new(call)
	x.token, x.json, x.body = testToken, []byte(request), []byte(request)
	return x
}

func TestRedact(t *testing.T) {
	one, many := `["GET","user:42","bob","INCRBY","7"]`, `[["GET","user:42"],["SET","user:421","v"]]`
	for _, tt := range []struct{ message, body, want string }{
		{"ERR no such key", one, "ERR no such key"},
		{"ERR user:42 is bad", one, "ERR … is bad"},
		{"ERR 'bob' is bad", one, "ERR '…' is bad"},
		{"ERR \"bob\" and `bob`", one, "ERR \"…\" and `…`"},
		{"ERR bobsled", one, "ERR …sled"},
		{"ERR INCRBY wants 7 arguments", one, "ERR … wants 7 arguments"}, // of short ones, only in quotes
		{"ERR value '7', \"7\", `7`, '77'", one, "ERR value '…', \"…\", `…`, '77'"},
		{"bob: not JSON", one, "…: not JSON"},
		{"bad Proxy-Authorization: Basic dTpw", one, "bad Proxy-Authorization…"},
		{`bad "Proxy-Authorization": "Basic dTpw"`, one, `bad "Proxy-Authorization…`},
		{"AUTHORIZATION=Bearer x of 'bob'", one, "AUTHORIZATION…"},
		{"no\nauthorization:\n Digest u='p", one, `no\nauthorization…`},
		{"authorization", one, "authorization"},
		{"'bob of authorization: x", one, "…"},
		{"WRONGTYPE of user", `["GET","WRONGTYPE"]`, "WRONGTYPE of user"}, // the code stays
		{"WRONGTYPE", `["GET","WRONGTYPE"]`, "WRONGTYPE"},
		{"ERR bad k", `["GET"," bad k"]`, "ERR …"},
		{"dial tcp 10.0.0.130:443", `["BITFIELD","k","GET","u13","130","SET","i8","#130","-443"]`, "dial tcp 10.0.0.130:443"},
		{"ERR u13 or INCRBY", `["BITFIELD_RO","k","GET","u13","INCRBY"]`, "ERR u13 or INCRBY"},
		{"ERR no u64x or #-7", `["BITFIELD","k","GET","u64x","#-7"]`, "ERR no … or …"}, // no such type, no number
		{"ERR key '8005551234', bit 4711", `["BITFIELD","8005551234","SET","u1","4711",1]`, "ERR key '…', bit 4711"},
		{"ERR no type 'u'", `["BITFIELD","k","GET","u","0"]`, "ERR no type '…'"},
		{"ERR key-1", `["BITFIELD","key-1","GET","u1","130"]`, "ERR …"},
		{"dial tcp 127.0.0.1:443", `["SCAN","0"]`, "dial tcp 127.0.0.1:443"},
		{"dial tcp 127.0.0.1:443", `["ECHO","443"]`, "dial tcp 127.0.0.1:…"},
		{"WRONGPASS " + testToken, one, "WRONGPASS …"},

		// As JSON has it, or a URL, or a Go string.
		{`ERR bad ["SET","o'br\"ien\n"]`, `["SET","k","o'br\"ien\n"]`, "ERR bad …"},
		{"ERR bad o'br\"ien\n", `["SET","k","o'br\"ien\n"]`, "ERR bad …"},
		{"ERR bad 'say \"hi\"\n'", `["SET","k","say \"hi\"\n"]`, "ERR bad '…'"},
		{`ERR bad long j\u00e9j\u00e9`, `["SET","k","j\u00e9j\u00e9"]`, "ERR bad long …"},
		{`ERR not found: /get/a%2fb here`, `["GET","a/b"]`, "ERR not found: …"},
		{`ERR not found: /get/a+b here`, `["GET","a b"]`, "ERR not found: /get/… here"},
		{"Not found: /get/long j&amp;j &#34;x here", `["GET","long j&j \"x"]`, "Not found: /get/long …"},
		{"Not found: <b>a&#39;b</b>", `["GET","a'b"]`, "Not found: …"},
		{"ERR this & that; &; &such", one, "ERR this & that; &; &such"},
		{"ERR it's 100% of the memory", one, "ERR it's 100% of the memory"}, // neither a quote nor an escape

		// Texts are cut, and arguments in them.
		{"ERR bad long-item-w", `["SADD","k","long-item-which-is-cut"]`, "ERR bad …"},
		{"ERR bad long-item-which-is-cut!", `["SADD","k","long-item-which-is-cut"]`, "ERR bad …!"},
		{"ERR bad long-item-w\u8ab0!", "[\"SADD\",\"k\",\"long-item-w\u8a9e\"]", "ERR bad …!"}, // begins with the same bytes
		{"ERR bad 'bo", one, "ERR bad …"},
		{"ERR bad `bo", one, "ERR bad …"},
		{`ERR 'x' of ["GET","us`, one, "ERR …"},
		{"ERR " + strings.Repeat("x", 2000), one, "ERR " + strings.Repeat("x", 999) + "…"},
		{"ERR a 'b' " + strings.Repeat("x", 1000), one, "ERR a …"},
		{"ERR unknown command 'X', with args beginning with: 'user:4", one, "ERR unknown command 'X'"},

		// All commands of a batch.
		{"ERR user:421", many, "ERR …"}, // and not …1
		{"ERR user:42, user:421", many, "ERR …, …"},
		{"ERR GET", one, "ERR GET"}, // a command's name

		{"", one, ""},
		{"ERR x", "not JSON", "ERR x"},
		{"ERR x", `[1,null,[["a"]]]`, "ERR x"},
	} {
		if got := redactOne(tt.message, tt.body); got != tt.want {
			t.Errorf("redact(%q, %s) = %q, want %q", tt.message, tt.body, got, tt.want)
		}
	}
}

// A response may have more errors than are searched. All have their code.
func TestRedactMany(t *testing.T) {
	errs := make([]serverError, 5000)
	for i := range errs {
		errs[i].words = fmt.Sprintf("ERR number %4d of user:42, and words", i)
		if i%2 == 0 {
			errs[i].words = "WRONGTYPE of user:42"
		}
	}
	texts := asked(`["GET","user:42"]`).redact(errs...)
	for i, text := range texts {
		want := fmt.Sprintf("ERR number %4d of …, and words", i)
		switch {
		case i%2 == 0: // the same as the first
			want = "WRONGTYPE of …"
		case i > 4500:
			want = "ERR …"
		case i > 3000:
			continue
		}
		if text != want {
			t.Fatalf("text %d is %q, want %q", i, text, want)
		}
	}
}

// A server cannot make a client compare for ever.
func TestRedactingEnds(t *testing.T) {
	args := make([]string, 200_000)
	for i := range args {
		args[i] = strings.Repeat("a", 100)
	}
	request := Cmd("MSET", args...).body()
	got := redact([]string{strings.Repeat("a", 900) + "b", "no"}, request)
	if got[0] != "…" || got[1] != "…" {
		t.Errorf("got %q, want none of the texts", got)
	}
}

// escapes matches what escape writes. No argument has its digits.
var escapes = regexp.MustCompile(`\\([abfnrtv]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})`)

// FuzzRedact: no argument of three bytes or more survives whole, whatever the
// server says around it, except in the code.
func FuzzRedact(f *testing.F) {
	f.Add("ERR ", "user:42", "bob", " is bad")
	f.Add("ERR bad '", `o'br"ien`, "\n\t", "'")
	f.Add("x", "\u65e5\u672c\u8a9e", "KEEPTTL", "\u65e5\u672c")
	f.Add("", "0001", "1", "\U000195de")
	f.Fuzz(func(t *testing.T, before, arg, other, after string) {
		cmd := Cmd("SET", arg, other)
		if cmd.err != nil || len(arg) < shortArg || strings.ContainsAny(arg, redacted) {
			return
		}
		message := before + arg + after
		got := redactOne(message, string(cmd.body()))
		if !utf8.ValidString(got) && utf8.ValidString(message) {
			t.Errorf("redact(%q) = %q, which is not UTF-8", message, got)
		}
		rest := escapes.ReplaceAllString(strings.TrimPrefix(got, codeOf(got)), redacted)
		if strings.Contains(rest, arg) {
			t.Errorf("redact(%q, %q, %q) = %q", message, arg, other, got)
		}
	})
}

// quotations are the ways in which a text may quote an argument.
var quotations = map[string]func(arg string) string{
	"as it is":        func(arg string) string { return arg },
	"in quotes":       func(arg string) string { return "'" + arg + "'" },
	"in Go":           strconv.Quote,
	"in ASCII":        strconv.QuoteToASCII,
	"in Go, escaped":  func(arg string) string { return strings.Trim(strconv.QuoteToASCII(arg), `"`) },
	"in JSON":         func(arg string) string { b, _ := json.Marshal(arg); return string(b) },
	"in JSON in Go":   func(arg string) string { b, _ := json.Marshal([]string{"SET", arg}); return strconv.Quote(string(b)) },
	"in a path":       url.PathEscape,
	"in a query":      url.QueryEscape,
	"twice in a path": func(arg string) string { return url.PathEscape(url.PathEscape(arg)) },
	"as it was sent":  func(arg string) string { var b strings.Builder; escapeSegment(&b, arg); return b.String() },
	"cut":             func(arg string) string { return arg[:max(headArg, len(arg)/2)] },
	"cut in quotes":   func(arg string) string { return "`" + arg[:len(arg)-1] },
	"cut in JSON":     func(arg string) string { b, _ := json.Marshal([]string{"SET", arg}); return string(b[:len(b)-3]) },
}

// TestNoErrorShowsAnArgument: whatever a server or a transport quotes of any
// command, however, no error of it shows an argument of three bytes or more, in no
// form of a log.
func TestNoErrorShowsAnArgument(t *testing.T) {
	names := slices.Sorted(maps.Keys(quotations))
	var shown []error
	observe := WithObserver(func(_ context.Context, e Event) { shown = append(shown, e.Err) })
	var said string
	c := clientOver(t, transportFunc(func(req *Request, resp *Response) error {
		switch body, _ := json.Marshal(said); {
		case strings.HasPrefix(said, "dial"):
			return fmt.Errorf("sdk: %w", &net.OpError{Op: "dial", Net: "tcp", Err: errors.New(said)})
		case strings.HasSuffix(req.URL, "/pipeline"):
			resp.Body = fmt.Appendf(nil, `[{"error":%s},{"error":"ERR no"}]`, body)
		case len(req.Header) > 3: // RESP2
			resp.Body = fmt.Appendf(nil, "*1\r\n-%s\r\n", strings.NewReplacer("\r", "", "\n", "").Replace(said))
		default:
			resp.StatusCode, resp.Body = 400, fmt.Appendf(nil, `{"error":%s}`, body)
		}
		return nil
	}), WithRetry(0), observe)
	rapid.Check(t, func(t *rapid.T) {
		// No word of this package begins like these arguments.
		arg := rapid.StringMatching(`zq[a-z0-9 é世"'\\%+/\n\x1b{}<&-]{1,24}`).Draw(t, "arg")
		form := rapid.SampledFrom(names).Draw(t, "quotation")
		if strings.HasPrefix(form, "cut") && len(arg) <= headArg {
			return
		}
		quoted := quotations[form](arg)
		if !utf8.ValidString(quoted) {
			return
		}
		said = rapid.SampledFrom([]string{"ERR bad ", "dial ", "ERR it's no 'index': "}).Draw(t, "before") +
			quoted + rapid.SampledFrom([]string{"", " here", "/0 is 'wrong'"}).Draw(t, "after")
		shown = nil
		var reply Reply
		var replies []Reply
		var err error
		switch rapid.IntRange(0, 3).Draw(t, "command") {
		case 0:
			_, err = c.Do(context.Background(), Cmd("SET", "a key", arg))
		case 1:
			_, err = c.Do(context.Background(), RawCmd("SET", []byte("value of "+arg), arg))
		case 2:
			replies, err = c.Pipeline(context.Background(), Cmd("GET", "a key"), Cmd("GET", arg))
		case 3:
			reply, err = c.Do(context.Background(), Cmd("SMEMBERS", arg).Binary())
			replies, _ = reply.Array()
		}
		shown = append(shown, err)
		for _, r := range replies {
			shown = append(shown, r.Err())
		}
		if errors.Join(shown...) == nil {
			t.Fatalf("no error: %v", reply)
		}
		for _, err := range shown {
			if err == nil {
				continue
			}
			for _, text := range append(printed(t, err), wholeChain(err)) {
				for _, secret := range []string{arg, strings.Trim(quoted, "\"'`")} {
					escaped := strings.Trim(strconv.Quote(secret), `"`)
					if strings.Contains(text, secret) || strings.Contains(text, escaped) {
						t.Fatalf("%q of %q shows %q: %s", form, said, secret, text)
					}
				}
			}
		}
	})
}

// TestTransportErrorsHideTheRequest: an error may quote the whole request, plain, as
// Go strings or cut, in whatever type.
func TestTransportErrorsHideTheRequest(t *testing.T) {
	for _, form := range []string{"no route: %s %s %s", "no route: %q %q %q", "no route: %.30s %.30s %.30s"} {
		for name, as := range map[string]func(error) error{
			"plain":       func(err error) error { return err },
			"not sent":    NotSent,
			"wrapped":     func(err error) error { return fmt.Errorf("sdk: %w", err) },
			"network":     func(err error) error { return &net.OpError{Op: "read", Net: "tcp", Err: err} },
			"certificate": func(err error) error { return &tls.CertificateVerificationError{Err: err} },
		} {
			c := clientOver(t, transportFunc(func(req *Request, _ *Response) error {
				return as(fmt.Errorf(form, req.URL, req.Header[1].Value, req.Body))
			}), WithRetry(0))
			_, ofJSON := c.Do(t.Context(), Cmd("SET", secretKey, secretItem))
			_, ofRaw := c.Do(t.Context(), RawCmd("SET", []byte(secretItem), secretKey))
			shown := wholeChain(ofJSON) + wholeChain(ofRaw)
			if strings.Count(shown, "no route") < 2 {
				t.Errorf("%s, %s: got %v and %v, want the cause", name, form, ofJSON, ofRaw)
			}
			for _, secret := range []string{testToken, secretKey, secretItem} {
				if strings.Contains(shown, secret) {
					t.Errorf("%s, %s: shows %s: %s", name, form, secret, shown)
				}
			}
		}
	}
}

// wholeChain returns the texts of all errors that err wraps.
func wholeChain(err error) string {
	text := fmt.Sprintf("%v %+v %#v", err, err, err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if next := e.Unwrap(); next != nil {
			text += wholeChain(next)
		}
	case interface{ Unwrap() []error }:
		for _, next := range e.Unwrap() {
			text += wholeChain(next)
		}
	}
	return text
}

// TestErrorsOfTheSystemStay: errors.As finds them, wherever a transport puts them.
func TestErrorsOfTheSystemStay(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	for _, want := range []error{
		reset, syscall.EPIPE, &net.DNSError{Err: "no such host", Name: "db.test", IsNotFound: true},
		x509.UnknownAuthorityError{},
		&tls.CertificateVerificationError{Err: x509.HostnameError{}},
		context.DeadlineExceeded, &fs.PathError{Op: "open", Path: "/dev/null", Err: fs.ErrNotExist},
	} {
		sent := fmt.Errorf("%s: %w", testToken, errors.Join(errors.New(testToken), fmt.Errorf("%s: %w", testToken, want)))
		c, _ := newFake(t, []answer{{err: sent}}, WithRetry(0))
		_, err := c.Do(t.Context(), Cmd("GET", "k"))
		if found := reflect.New(reflect.TypeOf(want)); !errors.As(err, found.Interface()) {
			t.Errorf("%T: not found in %v", want, err)
		}
		if text := wholeChain(err); strings.Contains(text, testToken) {
			t.Errorf("%T: the chain has the token: %s", want, text)
		}
	}
}

// The causes and addresses people need stay, unless an argument says the same.
func TestNetworkErrorsAreLeftAlone(t *testing.T) {
	const said = "dial tcp 127.0.0.1:36615: connect: connection refused"
	cause := NotSent(errors.New(said))
	c, _ := newFake(t, []answer{{err: cause}}, WithRetry(0))
	for _, tt := range []struct {
		cmd  Command
		want string
	}{
		{Cmd("SET", "36", "ip"), said},
		{NewBitField("key").Get("u63", 36615).Command(), said},
		{Cmd("MGET", "127.0.0.1", "36615"), "dial tcp …:…: connect: connection refused"},
		{RawCmd("SET", []byte("36615"), "k"), "dial tcp 127.0.0.1:…: connect: connection refused"},
	} {
		if _, err := c.Do(t.Context(), tt.cmd); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want one that says %q", err, tt.want)
		}
	}
}

// TestAnArgumentHidesNoKind: the sentinel is found before the message is
// redacted, even if an argument equals its words.
func TestAnArgumentHidesNoKind(t *testing.T) {
	const daily = "ERR max daily request limit exceeded. Limit: 10000, Usage: 10000"
	const all = "ERR max requests limit exceeded. Limit: 500000, Usage: 500007"
	for _, tt := range []struct {
		status  int
		message string
		want    error
	}{
		{429, all, ErrQuota},
		{200, daily, ErrQuota},
		{413, "ERR max request size exceeded", ErrRequestTooLarge},
		{200, "ERR max single record size exceeded", ErrRecordTooLarge},
		{400, "ERR DB capacity quota exceeded", ErrOutOfMemory},
	} {
		for key := range strings.FieldsSeq("limit daily max quota record requests request DB size exceeded") {
			body := fmt.Sprintf(`{"error":%q}`, tt.message)
			c, f := newFake(t, []answer{{status: tt.status, body: body}})
			_, err := c.Do(t.Context(), Cmd("GET", key))
			if !errors.Is(err, tt.want) || f.count() != 1 {
				t.Errorf("GET %s: %v after %d attempts, want %v", key, err, f.count(), tt.want)
			}
			c, _ = newFake(t, []answer{{body: "[" + body + "]"}})
			replies, err := c.Pipeline(t.Context(), Cmd("GET", key))
			if err != nil || tt.status == 200 && !errors.Is(replies[0].Err(), tt.want) {
				t.Errorf("GET %s in a batch: %v, %v, want %v", key, replies, err, tt.want)
			}
		}
	}
	// Redis' quotation of the command does not count as its own words.
	c, _ := newFake(t, []answer{{status: 400, body: `{"error":"ERR unknown command 'X', with args` +
		` beginning with: 'max requests limit exceeded'"}`}})
	if _, err := c.Do(t.Context(), Cmd("X", "max requests limit exceeded")); errors.Is(err, ErrQuota) {
		t.Errorf("an argument makes a quota's error: %v", err)
	}
}

// TestServerWordsAreEscaped: the words of a server or a network cannot forge a
// line of a log or control a terminal.
func TestServerWordsAreEscaped(t *testing.T) {
	const raw = "ERR a\r\nlevel=INFO \x1b]0;title\x07\x1b[2J\u202egnp\u2066\u009b31m\u2028\u200f\x7f\x00 é世"
	const want = `ERR a\r\nlevel=INFO \x1b]0;title\a\x1b[2J\u202egnp\u2066\u009b31m\u2028\u200f\x7f\x00 é世`
	quoted := strings.NewReplacer("\r", `\r`, "\n", `\n`, "\x1b", `\u001b`, "\a", `\u0007`, "\x00", `\u0000`,
		"\x7f", `\u007f`).Replace(raw)
	for name, a := range map[string]answer{
		"an error object": {status: 400, body: `{"error":"` + quoted + `"}`},
		"RESP2":           {body: "-ERR a" + strings.ReplaceAll(raw[5:], "\r\n", "\n") + "\r\n"},
		"a network":       {err: errors.New(raw)},
	} {
		c, _ := newFake(t, []answer{a})
		_, err := c.Do(t.Context(), Cmd("INCR", "k").Binary())
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprint(errors.Unwrap(err))} {
			if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%s: byte %d is raw: %q", name, i, text)
			}
		}
		if name != "RESP2" && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %s\nwant %s", name, err, want)
		}
	}
}

// None of this package's own words is taken for an argument. In the server's
// words every argument is redacted, at any place of the command.
func TestWhatIsRedacted(t *testing.T) {
	for _, key := range []string{"a", "proxy", "or", "bytes"} {
		c, _ := newFake(t, []answer{{status: 502, body: "<html>"}}, WithRetry(0))
		_, err := c.Do(t.Context(), Cmd("GET", key))
		if err == nil || !strings.Contains(err.Error(), noMessage(6)) {
			t.Errorf("GET %s: own words are redacted: %v", key, err)
		}
	}
	args := make([]string, 100_000)
	for i := range args {
		args[i] = fmt.Sprintf("item-%06d", i)
	}
	for _, i := range []int{0, 63, 64, 70, 99_999} {
		body := `{"error":"ERR bad value '` + args[i] + `' here"}`
		c, _ := newFake(t, []answer{{status: 400, body: body}})
		_, err := c.Do(t.Context(), Cmd("MSET", args...))
		if err == nil || !strings.Contains(err.Error(), "bad value '…' here") {
			t.Errorf("argument %d: %v", i+1, err)
		}
	}
}

const (
	secretKey  = "key-of-a-user"
	secretItem = "item@example.test"
)

// TestNothingSecretIsPrinted prints every type that programs log, in every
// way.
func TestNothingSecretIsPrinted(t *testing.T) {
	c, f := newFake(t, []answer{
		{body: `{"result":"` + secretItem + `"}`},
		{status: 400, body: `{"error":"ERR '` + secretKey + `', ` + secretItem + `, ` + testToken + `"}`},
		{body: secretItem},
	}, WithRetry(0))
	cmd := Cmd("SET", secretKey, secretItem)
	reply, err := c.Do(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	_, serverErr := c.Do(t.Context(), cmd)
	_, callErr := c.Do(t.Context(), cmd)
	_, typeErr := reply.Int64()
	_, argumentErr := c.Do(t.Context(), Cmd("SET", secretKey, secretItem+"\xff"))
	_, offsetErr := c.BitField(t.Context(), NewBitField(secretKey).Get("u1", 1<<40))
	var server *Error
	var call *CallError
	if !errors.As(serverErr, &server) || !errors.As(callErr, &call) {
		t.Fatalf("got %v and %v", serverErr, callErr)
	}
	bit := NewBitField(secretKey).Get("u1", 0)
	wantNoSecrets(t, map[string]any{
		"Client": c, "Command": cmd, "*Command": &cmd, "Commands": []Command{cmd}, "BitField": bit,
		"BitField.Command": bit.Command(), "Reply": reply, "Replies": []Reply{reply}, "*Reply": &reply,
		"*Error": serverErr, "Error": *server, "*CallError": callErr, "CallError": *call, "type error": typeErr,
		"argument error": argumentErr, "offset error": offsetErr,
		"Request": f.requests[0], "*Request": &f.requests[0], "Header": f.requests[0].Header,
		"failed reply": failedReply("SET", serverErr),
	})
	if s := fmt.Sprint(c); !strings.Contains(s, testURL) {
		t.Errorf("%s does not show the URL", s)
	}
	if s := fmt.Sprintf("%v %+v", cmd, bit); !strings.Contains(s, "SET") || !strings.Contains(s, "BITFIELD") {
		t.Errorf("%s does not show the commands' names", s)
	}
}

// fmt opens the fields of any struct, and calls no method of an unexported one.
func TestNothingSecretIsPrintedInAField(t *testing.T) {
	c, _ := newFake(t, []answer{
		{body: `{"result":"` + secretItem + `"}`},
		{body: "*1\r\n$17\r\n" + secretItem + "\r\n"},
		{body: `[{"result":["` + secretItem + `"]}]`},
	})
	text, err1 := c.Do(t.Context(), Cmd("GET", secretKey))
	list, err2 := c.Do(t.Context(), Cmd("SMEMBERS", secretKey).Binary())
	batch, err3 := c.Pipeline(t.Context(), Cmd("SMEMBERS", secretKey))
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	elements, err := batch[0].Array()
	if s, _ := elements[0].Text(); err != nil || s != secretItem {
		t.Fatalf("got %q, %v, want %q", s, err, secretItem)
	}
	bits := NewBitField(secretKey).Get("u1", 0)
	wantNoSecrets(t, map[string]any{
		"Command":  struct{ cmd Command }{Cmd("SET", secretKey, secretItem)},
		"commands": struct{ cmds []Command }{[]Command{bits.Command()}},
		"BitField": struct{ b *BitField }{bits}, "BitField itself": struct{ b BitField }{*bits},
		"Client": struct{ c *Client }{c},
		"text":   struct{ r Reply }{text}, "list": struct{ r Reply }{list},
		"batch": struct{ r []Reply }{batch}, "elements": struct{ r []Reply }{elements},
	})
}

// wantNoSecrets prints values in every form of a log.
func wantNoSecrets(t *testing.T, values map[string]any) {
	t.Helper()
	for name, v := range values {
		for _, text := range printed(t, v) {
			for _, secret := range []string{testToken, secretKey, secretItem} {
				if shows(text, secret) {
					t.Errorf("%s shows %s: %s", name, secret, text)
				}
			}
		}
	}
}

// shows reports whether text has the secret in it, plain, as numbers or in hex.
func shows(text, secret string) bool {
	numbers := strings.Trim(fmt.Sprint([]byte(secret)), "[]")
	return strings.Contains(text, secret) || strings.Contains(text, numbers) ||
		strings.Contains(text, fmt.Sprintf("%x", secret))
}

// printed returns v in every form of a log.
func printed(t interface {
	Helper()
	Errorf(format string, args ...any)
}, v any,
) []string {
	t.Helper()
	var out []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		out = append(out, fmt.Sprintf(verb, v))
	}
	var buf bytes.Buffer
	slog.New(slog.NewTextHandler(&buf, nil)).Info("x", "v", v)
	slog.New(slog.NewJSONHandler(&buf, nil)).Info("x", "v", v)
	b, err := json.Marshal(v)
	if err != nil {
		t.Errorf("%T: %v", v, err)
	}
	return append(out, buf.String(), string(b))
}
