package upstash

import (
	"bytes"
	"encoding/json" // the reader that ours is compared with
	"errors"
	"fmt"
	"strings"
	"testing"
)

// readers are both readers of an envelope: that of the platform, and the bounded
// one for answers with a list.
var readers = map[string]func([]byte) (envelope, error){
	"decodeEnvelope": decodeEnvelope, "boundedEnvelope": boundedEnvelope,
}

func TestDecodeEnvelope(t *testing.T) {
	for _, tt := range []struct{ body, result, errMsg string }{
		{`{"result":1}`, "1", ""},
		{` { "result" : [ 1, null ] } ` + "\n", "[ 1, null ]", ""},
		{`{"result":null}`, "null", ""},
		{`{"result":"OK","extra":{"a":[1]}}`, `"OK"`, ""},
		{`{"error":"ERR no"}`, "", "ERR no"},
		{`{"result":null,"error":"ERR no"}`, "", "ERR no"},
		{`{"result":1,"error":null}`, "1", ""},
		{`{"error":""}`, "", ""},
	} {
		for name, read := range readers {
			env, err := read([]byte(tt.body))
			switch {
			case err != nil:
				t.Errorf("%s: %s: %v", name, tt.body, err)
			case env.errMsg != nil && *env.errMsg != tt.errMsg, env.errMsg == nil && tt.errMsg != "":
				t.Errorf("%s: %s: error %v, want %q", name, tt.body, env.errMsg, tt.errMsg)
			case string(env.result) != tt.result:
				t.Errorf("%s: %s: result %s, want %s", name, tt.body, env.result, tt.result)
			}
		}
	}
}

func TestDecodeEnvelopeRefuses(t *testing.T) {
	for _, body := range []string{
		"", " ", "null", "1", `"OK"`, "[]", "[1]", "{", "{}", `{"results":1}`, `{"result"}`, `{"result":`,
		`{"result":1`, `{"result":"OK`, `{"result":[1,2`, `{"result":1}x`, `{"result":1}{"result":2}`,
		`{"error":5}`, `{"error":["ERR"]}`, "<html><body>502 Bad Gateway</body></html>", "error code: 1016",
		`{"Result":1}`, `{"result":+1}`, `{"result":tru}`,
		`{"result":7,"result":8}`, `{"result":[7],"x":1,"result":[8]}`, `{"error":"ERR a","error":"ERR b"}`,
		`{"result":"7","result":"8"}`, `{"result":7,"error":"ERR x"}`, `{"error":"ERR x","result":["a"]}`,
		`{"error":"ERR x","result":7}`, "\v{\"result\":2}", "{\"result\":2}\u00a0",
	} {
		for name, read := range readers {
			env, err := read([]byte(body))
			if !errors.Is(err, ErrBadResponse) {
				t.Errorf("%s: %q: got %s, %v; want ErrBadResponse", name, body, env.result, err)
			}
			if strings.HasPrefix(body, "<") && !strings.Contains(fmt.Sprint(err), "a proxy may have answered; check the URL") {
				t.Errorf("%s: a web page: %v", name, err)
			}
		}
	}
}

func TestDecodeEnvelopes(t *testing.T) {
	envs, all, err := decodeEnvelopes([]byte(` [{"result":"OK"},{"error":"ERR no"},{"result":[1]}] `), 3)
	if err != nil || all != nil || len(envs) != 3 || envs[1].errMsg == nil || *envs[1].errMsg != "ERR no" {
		t.Errorf("got %v, %v, %v", envs, all, err)
	}
	_, all, err = decodeEnvelopes([]byte(`{"error":"EXECABORT"}`), 3)
	if err != nil || all == nil || *all != "EXECABORT" {
		t.Errorf("one error for all: got %v, %v", all, err)
	}
	for _, body := range []string{
		"", `{"result":[1]}`, "[1]", `[{"result":1}`, `[{"result":1},]`, "[[]]", "null", `[null]`,
		"[]", `[{"result":1},{"result":1}]`, "[{}]", `[{"result":1},{"result":`, `[{"result":7,"result":8}]`,
		"\f[{\"result\":1}]", "[{\"result\":1}]\u00a0",
	} {
		if _, all, err := decodeEnvelopes([]byte(body), 1); !errors.Is(err, ErrBadResponse) || all != nil {
			t.Errorf("%q: got %v, %v; want ErrBadResponse", body, all, err)
		}
	}
}

// FuzzDecodeReply compares the decoder with encoding/json. Every value it reads
// is there, a body other than JSON has no value, and nothing panics.
func FuzzDecodeReply(f *testing.F) {
	for _, s := range []string{
		`{"result":[0,1,null,-9223372036854775808]}`, `{"result":12}`, `{"result":"T0s="}`, `{"error":"ERR"}`,
		`[{"result":1},{"error":"E"}]`, `{"result":[1,[2,"a",{"b":1.5e3}]]}`, `{"result":[1,]}`, `{"result":[-]}`,
		`{"result":"\ud83d"}`, `{"result":00}`, `{"result":[nullnull]}`, `{"result":[1-2]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _, _ = decodeEnvelopes(body, 2)
		env, err := decodeEnvelope(body)
		bounded, boundedErr := boundedEnvelope(body)
		if fmt.Sprint(err) != fmt.Sprint(boundedErr) || !bytes.Equal(env.result, bounded.result) ||
			(env.errMsg == nil) != (bounded.errMsg == nil) || env.errMsg != nil && *env.errMsg != *bounded.errMsg {
			t.Fatalf("%q: got %s, %v; the bounded reader has %s, %v", body, env.result, err, bounded.result, boundedErr)
		}
		if err != nil || env.errMsg != nil {
			return
		}
		r := jsonReply(string(env.result))
		exercise(r)
		checkAgainstJSON(t, body, r)
	})
}

// exercise calls every accessor.
func exercise(r Reply) {
	_, err1 := r.Int64()
	_, err2 := r.Text()
	_, err3 := r.Bytes()
	_, err4 := r.Ints(nil)
	_, err5 := r.Map()
	list, err6 := r.Array()
	for _, err := range []error{r.Err(), err1, err2, err3, err4, err5, err6, r.Decode(new(any))} {
		texts.Add(err)
	}
	for _, e := range list {
		exercise(e)
	}
	if r.of().form != formRESP2 && r.answer != nil {
		encoded := base64Reply(string(r.raw()))
		_, _ = encoded.Text()
	}
}

func checkAgainstJSON(t *testing.T, body []byte, r Reply) {
	t.Helper()
	var doc map[string]json.RawMessage
	valid := json.Unmarshal(body, &doc) == nil
	want := bytes.TrimSpace(doc["result"])

	if n, err := r.Int64(); err == nil {
		var i int64
		if !valid || json.Unmarshal(want, &i) != nil || i != n {
			t.Errorf("%q: Int64 = %d, want %s", body, n, want)
		}
	}
	if ints, err := r.Ints(nil); err == nil {
		var list []*int64
		if !valid || json.Unmarshal(want, &list) != nil || len(list) != len(ints) {
			t.Fatalf("%q: Ints = %v, want %s", body, ints, want)
		}
		for i, p := range list {
			if (p != nil) != ints[i].Valid || p != nil && *p != ints[i].Int64 {
				t.Errorf("%q: Ints = %v, want %s", body, ints, want)
			}
		}
	}
	if list, err := r.Array(); err == nil {
		var raws []json.RawMessage
		if !valid || json.Unmarshal(want, &raws) != nil || len(raws) != len(list) {
			t.Errorf("%q: Array of %d, want %s", body, len(list), want)
		}
	}
	if s, err := r.Text(); err == nil && valid {
		var u string
		if json.Unmarshal(want, &u) != nil || strings.ToValidUTF8(s, "\ufffd") != strings.ToValidUTF8(u, "\ufffd") {
			t.Errorf("%q: Text %q, want %q", body, s, u)
		}
	}
	if r.IsNil() && (!valid || string(want) != "null") {
		t.Errorf("%q is taken for null", body)
	}
}

// White space before an answer changes nothing, in any form.
func TestWhiteSpaceBeforeAnAnswer(t *testing.T) {
	for _, space := range []string{" ", "\n", "\r\n\t "} {
		for body, cmd := range map[string]Command{
			`{"result":["1",null]}`: Cmd("MGET", "a", "b"), `{"result":[1,null]}`: Cmd("MGET", "a", "b").Binary(),
			`{"result":"a"}`: Cmd("GET", "a").Binary(), `{"error":"ERR no"}`: Cmd("GET", "a").Binary(),
		} {
			plain, _ := newFake(t, always(body))
			spaced, _ := newFake(t, always(space+body))
			want, wantErr := plain.Do(t.Context(), cmd)
			got, err := spaced.Do(t.Context(), cmd)
			if fmt.Sprint(err) != fmt.Sprint(wantErr) || string(got.raw()) != string(want.raw()) {
				t.Errorf("%q: got %s, %v, want %s, %v", space+body, got.raw(), err, want.raw(), wantErr)
			}
		}
		c, _ := newFake(t, always(space+`[{"result":1},{"error":"ERR no"}]`))
		if r, err := c.Pipeline(t.Context(), Cmd("INCR", "a"), Cmd("INCR", "b")); err != nil || r[1].Err() == nil {
			t.Errorf("a batch after %q: %v, %v", space, r, err)
		}
	}
}
