package upstash

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

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

func TestNestedErrorsAreRedacted(t *testing.T) {
	c, _ := newFake(t, always("*2\r\n:1\r\n*1\r\n-WRONGTYPE of "+secretKey+"\r\n"))
	r, err := c.Do(t.Context(), Cmd("EVAL", "return 1", "1", secretKey).Binary())
	if err != nil {
		t.Fatal(err)
	}
	outer, _ := r.Array()
	inner, err := outer[1].Array()
	if err != nil || inner[0].Err() == nil || strings.Contains(inner[0].Err().Error(), secretKey) {
		t.Errorf("got %v, %v", inner, err)
	}
	if SafeToRetry(inner[0].Err()) {
		t.Error("an error within a script's answer counts as not executed")
	}
}

// Only the first errors of an answer keep their words. Those of the others might
// quote the request: they keep their code alone.
func TestManyNestedErrors(t *testing.T) {
	const errs = maxRESPErrors + 2
	one := "-NOPERM for " + secretKey + ", ask\r\n"
	c, _ := newFake(t, always(fmt.Sprintf("*%d\r\n", errs)+strings.Repeat(one, errs)))
	r, err := c.Do(t.Context(), Cmd("EVAL", "return 1", "1", secretKey).Binary())
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.Array()
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
