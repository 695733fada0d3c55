package upstash

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"pgregory.net/rapid"
)

func jsonReply(raw string) Reply { return replyOf(received{body: []byte(raw)}) }

func base64Reply(raw string) Reply {
	return replyOf(received{body: []byte(raw), form: formBase64})
}

func respReply(t *testing.T, raw string) Reply {
	t.Helper()
	r, err := decodeRESP2([]byte(raw))
	if err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return r
}

func replyOf(a received) Reply {
	a.name = "TEST"
	return newReply(&hidden[received]{v: a})
}

// decodeRESP2 reads a reply whose errors are not redacted.
func decodeRESP2(body []byte) (Reply, error) {
	places, err := checkRESP2(body)
	if err != nil {
		return Reply{}, err
	}
	a := received{body: body, form: formRESP2, errs: make(map[uint32]*Error)}
	for _, at := range places {
		line, _ := respLine(body[at:])
		a.errs[at] = &Error{StatusCode: 200, Message: string(line)}
	}
	return replyOf(a), nil
}

func TestReplyInt64(t *testing.T) {
	for raw, want := range map[string]int64{
		"0": 0, "1": 1, "-1": -1, "9007199254740993": 9007199254740993, // past a float's precision
		"999999999999999999": 999999999999999999, "1000000000000000000": 1000000000000000000,
		"9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
	} {
		if got, err := jsonReply(raw).Int64(); got != want || err != nil {
			t.Errorf("JSON %s: got %d, %v", raw, got, err)
		}
		if got, err := respReply(t, ":"+raw+"\r\n").Int64(); got != want || err != nil {
			t.Errorf("RESP2 %s: got %d, %v", raw, got, err)
		}
	}
	for _, raw := range []string{
		"9223372036854775808", "-9223372036854775809", "99999999999999999999999999", "1.0", "1e3",
		`"1"`, `"OK"`, "[1]", "true", "{}", "01", "00000000000000000001", "-", "-01", "1 2",
	} {
		if got, err := jsonReply(raw).Int64(); !errors.Is(err, ErrBadResponse) || got != 0 {
			t.Errorf("%s: got %d, %v; want ErrBadResponse", raw, got, err)
		}
	}
	for _, raw := range []string{"$1\r\n1\r\n", "*0\r\n", "+1\r\n"} {
		if got, err := respReply(t, raw).Int64(); !errors.Is(err, ErrBadResponse) || got != 0 {
			t.Errorf("%q: got %d, %v; want ErrBadResponse", raw, got, err)
		}
	}
}

func TestReplyNull(t *testing.T) {
	for name, r := range map[string]Reply{
		"zero value": {}, "JSON": jsonReply("null"),
		"bulk": respReply(t, "$-1\r\n"), "array": respReply(t, "*-1\r\n"),
	} {
		if !r.IsNil() || r.Err() != nil {
			t.Errorf("%s: IsNil = %v, Err = %v, want null", name, r.IsNil(), r.Err())
		}
		_, errInt := r.Int64()
		_, errText := r.Text()
		_, errBytes := r.Bytes()
		_, errArray := r.Array()
		_, errInts := r.Ints(nil)
		for i, err := range []error{errInt, errText, errBytes, errArray, errInts} {
			if err != ErrNil {
				t.Errorf("%s: accessor %d returned %v, want ErrNil", name, i, err)
			}
		}
	}
	if jsonReply("0").IsNil() || jsonReply(`""`).IsNil() || jsonReply("[]").IsNil() {
		t.Error("0, an empty string or an empty array is taken for null")
	}
}

func TestReplyText(t *testing.T) {
	for name, tt := range map[string]struct {
		r    Reply
		want string
		bad  bool
	}{
		"plain":                  {jsonReply(`"abc"`), "abc", false},
		"empty":                  {jsonReply(`""`), "", false},
		"escapes":                {jsonReply(`"\u00e9\n\"\ud83d\ude42"`), "é\n\"🙂", false},
		"number":                 {jsonReply(`1`), "", true},
		"array":                  {jsonReply(`["a"]`), "", true},
		"cut":                    {jsonReply(`"abc`), "", true},
		"base64":                 {base64Reply(`"AP+A"`), "\x00\xff\x80", false},
		"base64 empty":           {base64Reply(`""`), "", false},
		"base64 status":          {base64Reply(`"OK"`), "OK", false},
		"base64 of OK":           {base64Reply(`"T0s="`), "OK", false},
		"base64 refused":         {base64Reply(`"hello world"`), "", true},
		"base64 without pads":    {base64Reply(`"T0s"`), "", true},
		"RESP2 status":           {respReply(t, "+OK\r\n"), "OK", false},
		"RESP2 bulk":             {respReply(t, "$4\r\n\x00\r\n\xff\r\n"), "\x00\r\n\xff", false},
		"RESP2 bulk, empty":      {respReply(t, "$0\r\n\r\n"), "", false},
		"RESP2 integer":          {respReply(t, ":1\r\n"), "", true},
		"base64 alphabet of URL": {base64Reply(`"_-8="`), "", true},
	} {
		got, err := tt.r.Text()
		if got != tt.want || errors.Is(err, ErrBadResponse) != tt.bad {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestReplyBytesRefusesReplacedBytes(t *testing.T) {
	for name, tt := range map[string]struct {
		r  Reply
		ok bool
	}{
		"replaced":         {jsonReply(`"a` + "\ufffd" + `b"`), false},
		"replaced, escape": {jsonReply(`"\ufffd"`), false},
		"not UTF-8":        {jsonReply("\"\xff\""), false},
		"half a pair":      {jsonReply(`"\ud83d"`), false},
		"utf-8":            {jsonReply(`"é"`), true},
		"base64":           {base64Reply(`"77+9"`), true}, // U+FFFD that was stored
		"RESP2":            {respReply(t, "$3\r\n\xef\xbf\xbd\r\n"), true},
	} {
		b, err := tt.r.Bytes()
		if tt.ok != (err == nil) || !tt.ok && (!errors.Is(err, ErrBadResponse) || b != nil) {
			t.Errorf("%s: got %q, %v", name, b, err)
		}
	}
}

func TestReplyArray(t *testing.T) {
	list, err := base64Reply(`["OK", "T0s=", 7, null, ["YQ=="]]`).Array()
	if err != nil || len(list) != 5 {
		t.Fatalf("got %d elements, %v", len(list), err)
	}
	ok, _ := list[0].Text()
	decoded, _ := list[1].Text()
	n, _ := list[2].Int64()
	inner, _ := list[4].Array()
	if ok != "OK" || decoded != "OK" || n != 7 || !list[3].IsNil() || len(inner) != 1 {
		t.Errorf("got %q, %q, %d, nil %v, %d inner", ok, decoded, n, list[3].IsNil(), len(inner))
	}
	if s, _ := inner[0].Text(); s != "a" {
		t.Errorf("nested: %q, want a", s)
	}

	list, err = respReply(t, "*3\r\n:1\r\n-WRONGTYPE no\r\n*0\r\n").Array()
	if err != nil || len(list) != 3 {
		t.Fatalf("RESP2: got %d elements, %v", len(list), err)
	}
	var server *Error
	if !errors.As(list[1].Err(), &server) || server.Code() != "WRONGTYPE" {
		t.Errorf("RESP2: element error %v, want WRONGTYPE", list[1].Err())
	}
	if _, err := list[1].Int64(); !errors.Is(err, list[1].Err()) {
		t.Errorf("RESP2: the value of an error: %v", err)
	}
	for _, r := range []Reply{
		jsonReply("1"), jsonReply(`"[]"`), jsonReply("{}"), jsonReply("[1"), respReply(t, ":1\r\n"),
	} {
		if _, err := r.Array(); !errors.Is(err, ErrBadResponse) {
			t.Errorf("%s: got %v, want ErrBadResponse", r.raw(), err)
		}
	}
}

// Two readers of one reply may each sort their result.
func TestReplyMap(t *testing.T) {
	for name, tt := range map[string]struct {
		reply Reply
		want  map[string]string // nil for ErrBadResponse
	}{
		"pairs":            {jsonReply(`["a","1","b",""]`), map[string]string{"a": "1", "b": ""}},
		"none":             {jsonReply(`[]`), map[string]string{}},
		"numbers":          {jsonReply(`[1,-2.5e3,"b",0]`), map[string]string{"1": "-2.5e3", "b": "0"}},
		"twice":            {jsonReply(`["a","1","a","2"]`), map[string]string{"a": "2"}},
		"RESP2":            {respReply(t, "*4\r\n$1\r\na\r\n:-7\r\n+b\r\n$1\r\n\xff\r\n"), map[string]string{"a": "-7", "b": "\xff"}},
		"base64":           {base64Reply(`["YQ==","MQ==","Yg==",7]`), map[string]string{"a": "1", "b": "7"}},
		"odd":              {jsonReply(`["a","1","b"]`), nil},
		"nested":           {jsonReply(`["a",["1"]]`), nil},
		"a nested name":    {jsonReply(`[["a"],"1"]`), nil},
		"an object":        {jsonReply(`["a",{"b":1}]`), nil},
		"null":             {jsonReply(`["a",null]`), nil},
		"true":             {jsonReply(`["a",true]`), nil},
		"null in RESP2":    {respReply(t, "*2\r\n$1\r\na\r\n$-1\r\n"), nil},
		"nested in RESP2":  {respReply(t, "*2\r\n$1\r\na\r\n*0\r\n"), nil},
		"a text":           {jsonReply(`"a"`), nil},
		"an object itself": {jsonReply(`{"a":"1"}`), nil},
	} {
		got, err := tt.reply.Map()
		if tt.want != nil && (err != nil || got == nil || !maps.Equal(got, tt.want)) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, tt.want)
		}
		if tt.want == nil && (got != nil || !errors.Is(err, ErrBadResponse)) {
			t.Errorf("%s: got %q, %v, want ErrBadResponse", name, got, err)
		}
	}
	if got, err := (Reply{}).Map(); got != nil || err != ErrNil {
		t.Errorf("null: got %q, %v, want ErrNil", got, err)
	}
}

func TestArraysOfAReplyAreIndependent(t *testing.T) {
	for name, r := range map[string]Reply{
		"JSON": jsonReply("[1,2]"), "RESP2": respReply(t, "*2\r\n:1\r\n:2\r\n"),
	} {
		first, _ := r.Array()
		slices.Reverse(first)
		second, err := r.Array()
		if err != nil || len(second) != 2 {
			t.Fatalf("%s: %d elements, want 2: %v", name, len(second), err)
		}
		if n, err := second[0].Int64(); n != 1 || err != nil {
			t.Errorf("%s: the first element is %d, %v after a change of another array", name, n, err)
		}
	}
}

func TestReplyInts(t *testing.T) {
	keep := []NullInt64{{7, true}}
	for raw, want := range map[string]int{"[]": 0, " [ ] ": 0, "[1]": 1, "[0,null,-5]": 3, "[ 1 , 0 ]\n": 2} {
		got, err := jsonReply(raw).Ints(keep[:1:1])
		if err != nil || len(got) != 1+want || got[0] != keep[0] {
			t.Errorf("%s: got %v, %v", raw, got, err)
		}
	}
	for _, raw := range []string{
		"[1,]", "[,1]", "[1 2]", "[1]]", "[", "[1", "[nul]", "[01]", "[1.0]", `["1"]`, "[true]", "[[1]]", "{}", "1",
	} {
		if got, err := jsonReply(raw).Ints(keep); !errors.Is(err, ErrBadResponse) || len(got) != 1 {
			t.Errorf("%s: got %v, %v; want ErrBadResponse", raw, got, err)
		}
	}
	want := []NullInt64{{1, true}, {}, {-3, true}}
	for _, reply := range []Reply{respReply(t, "*3\r\n:1\r\n$-1\r\n:-3\r\n"), jsonReply("[1,null,-3]")} {
		if got, err := reply.Ints(nil); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: got %v, %v; want %v", reply, got, err, want)
		}
	}
	for _, raw := range []string{"*1\r\n$1\r\n1\r\n", "*1\r\n-ERR x\r\n", ":1\r\n", "*1\r\n*0\r\n"} {
		if got, err := respReply(t, raw).Ints(keep); !errors.Is(err, ErrBadResponse) || len(got) != 1 {
			t.Errorf("%q: got %v, %v; want ErrBadResponse", raw, got, err)
		}
	}
}

// encodeRESP2 writes the results of a reply's methods.
func encodeRESP2(r Reply) string {
	var server *Error
	if errors.As(r.Err(), &server) {
		return "-" + server.Message + "\r\n"
	}
	if r.IsNil() {
		return "$-1\r\n"
	}
	if n, err := r.Int64(); err == nil {
		return fmt.Sprintf(":%d\r\n", n)
	}
	if b, err := r.Bytes(); err == nil {
		return fmt.Sprintf("$%d\r\n%s\r\n", len(b), b)
	}
	list, err := r.Array()
	if err != nil {
		panic("a value of no kind")
	}
	wire := fmt.Sprintf("*%d\r\n", len(list))
	for _, e := range list {
		wire += encodeRESP2(e)
	}
	return wire
}

// genRESP2 draws a value as encodeRESP2 writes it.
func genRESP2(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kinds := 3
		if depth > 0 {
			kinds = 4
		}
		switch rapid.IntRange(0, kinds).Draw(t, "kind") {
		case 0:
			return "$-1\r\n"
		case 1:
			return fmt.Sprintf(":%d\r\n", rapid.Int64().Draw(t, "int"))
		case 2:
			b := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
			return fmt.Sprintf("$%d\r\n%s\r\n", len(b), b)
		case 3:
			return "-" + rapid.StringMatching(`[A-Z]{1,9} [a-z ]{0,9}`).Draw(t, "error") + "\r\n"
		}
		list := rapid.SliceOfN(genRESP2(depth-1), 0, 4).Draw(t, "array")
		return fmt.Sprintf("*%d\r\n%s", len(list), strings.Join(list, ""))
	})
}

func TestRESP2RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wire := genRESP2(3).Draw(t, "reply")
		got, err := decodeRESP2([]byte(wire))
		if err != nil {
			t.Fatalf("%q: %v", wire, err)
		}
		if again := encodeRESP2(got); again != wire {
			t.Fatalf("%q came back as %q", wire, again)
		}
		cut := wire[:rapid.IntRange(0, len(wire)-1).Draw(t, "cut")]
		if got, err := decodeRESP2([]byte(cut)); err == nil {
			t.Fatalf("%q, cut from %q, returned %v", cut, wire, got)
		}
	})
}

func TestRESP2Refuses(t *testing.T) {
	for _, wire := range []string{
		"", "\r\n", "$-0\r\n\r\n", "+OK", "+OK\n", ":\r\n", ":1.5\r\n", ":9223372036854775808\r\n", "$\r\n", "$-2\r\n",
		"$3\r\nab\r\n",
		"$2\r\nabc\r\n", "$9999999999999999999\r\n", "*-2\r\n", "*1\r\n", "*1000000000\r\n:1\r\n", "*x\r\n",
		"+OK\r\n+OK\r\n", "?\r\n", strings.Repeat("*1\r\n", 100) + ":1\r\n",
	} {
		if r, err := decodeRESP2([]byte(wire)); !errors.Is(err, ErrBadResponse) {
			t.Errorf("%q: got %v, %v; want ErrBadResponse", wire, r, err)
		}
	}
}

// Binary asks for RESP2. If a server answers in JSON all the same, it is
// understood.
func TestDoBinary(t *testing.T) {
	for body, want := range map[string]string{
		"$2\r\n\xff\x00\r\n": "\xff\x00",
		`{"result":"text"}`:  "text",
	} {
		c, f := newFake(t, always(body))
		r, err := c.Do(t.Context(), Cmd("GET", "k").Binary())
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		if got, err := r.Bytes(); string(got) != want || err != nil {
			t.Errorf("%q: got %q, %v", body, got, err)
		}
		if format, _ := f.last("Upstash-Response-Format"); format != "resp2" {
			t.Errorf("asked for format %q, want resp2", format)
		}
	}
	for body, want := range map[string]string{"-WRONGTYPE no\r\n": "WRONGTYPE", `{"error":"ERR no"}`: "ERR"} {
		c, _ := newFake(t, []answer{{status: 400, body: body}})
		_, err := c.Do(t.Context(), Cmd("GET", "k").Binary())
		var server *Error
		if !errors.As(err, &server) || server.Code() != want || server.StatusCode != 400 {
			t.Errorf("%q: got %v", body, err)
		}
	}
}

// If a server ignores the request of Binary, the error does not advise to use
// Binary.
func TestBinaryThatTheServerIgnores(t *testing.T) {
	const lossy = `{"result":["\ufffd"]}`
	for _, tt := range []struct {
		cmd  Command
		says string
	}{
		{Cmd("LRANGE", "k", "0", "-1"), "send the command with Binary()"},
		{Cmd("LRANGE", "k", "0", "-1").Binary(), "the server ignores the request for RESP2"},
	} {
		c, _ := newFake(t, always(lossy))
		r, err := c.Do(t.Context(), tt.cmd)
		if err != nil {
			t.Fatal(err)
		}
		list, err := r.Array()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := list[0].Bytes(); !errors.Is(err, ErrBadResponse) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("got %v, want one that says %q", err, tt.says)
		}
	}
}

// Only the first errors of an answer keep their words. Those of the others might
// quote the request: they keep their code alone.
func TestManyNestedErrors(t *testing.T) {
	const errs = maxRESPErrors + 2
	one := "-NOPERM for " + secretKey + ", ask\r\n"
	c, _ := newFake(t, always(fmt.Sprintf("*1\r\n*%d\r\n", errs)+strings.Repeat(one, errs)))
	r, err := c.Do(t.Context(), Cmd("EVAL", "return 1", "1", secretKey).Binary())
	if err != nil {
		t.Fatal(err)
	}
	outer, err := r.Array()
	if err != nil {
		t.Fatal(err)
	}
	list, err := outer[0].Array()
	if err != nil || len(list) != errs {
		t.Fatalf("%d elements, %v, want %d", len(list), err, errs)
	}
	for i, e := range list {
		var server *Error
		if !errors.As(e.Err(), &server) || server.Code() != "NOPERM" || server.Command != "EVAL" ||
			!errors.Is(server, ErrNoPermission) || SafeToRetry(server) {
			t.Fatalf("element %d: %v, want ErrNoPermission of EVAL, not safe to retry", i, e.Err())
		}
		text := server.Error()
		if words := i < maxRESPErrors; strings.Contains(text, "ask") != words || strings.Contains(text, secretKey) {
			t.Fatalf("element %d: %q, want its words: %t, and never the key", i, text, words)
		}
	}
}

// FuzzRESP2 looks for panics, and for values that do not survive a round trip.
func FuzzRESP2(f *testing.F) {
	for _, s := range []string{
		"+OK\r\n", "-ERR x\r\n", ":-1\r\n", "$3\r\na\r\n\r\n", "$-1\r\n", "*2\r\n:1\r\n*1\r\n$0\r\n\r\n", "*-1\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		r, err := decodeRESP2(wire)
		if err != nil {
			return
		}
		exercise(r)
		again := encodeRESP2(r)
		r, err = decodeRESP2([]byte(again))
		if err != nil || encodeRESP2(r) != again {
			t.Errorf("%q: became %q, %v", wire, again, err)
		}
	})
}

// A reply lives as long as its caller likes. Its request does not: with a large
// request, a kept reply of a few bytes would hold megabytes.
func TestAReplyDoesNotKeepItsRequest(t *testing.T) {
	for name, command := range map[string]func() (Command, *byte){
		"command": func() (Command, *byte) {
			cmd := Cmd("SET", "k", strings.Repeat("v", 1<<20))
			return cmd, &cmd.body()[0]
		},
		"raw body": func() (Command, *byte) {
			body := make([]byte, 1<<20)
			return RawCmd("SETRANGE", body, "k", "0"), &body[0]
		},
	} {
		reply, request := replyAndRequest(t, command)
		runtime.GC()
		if request.Value() != nil {
			t.Errorf("%s: the reply keeps the bytes of the request", name)
		}
		if n, err := reply.Int64(); n != 7 || err != nil {
			t.Errorf("%s: got %d, %v", name, n, err)
		}
	}
}

// replyAndRequest returns before the garbage collection, so that no variable of
// it holds the request.
//
//go:noinline
func replyAndRequest(t *testing.T, command func() (Command, *byte)) (Reply, weak.Pointer[byte]) {
	t.Helper()
	c := clientOver(t, transportFunc(func(_ *Request, resp *Response) error {
		resp.Body = []byte(`{"result":7}`)
		return nil
	}))
	cmd, first := command()
	reply, err := c.Do(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return reply, weak.Make(first)
}
