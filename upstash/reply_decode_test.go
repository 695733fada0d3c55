//go:build !wasm

package upstash

import (
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"
)

type visit struct {
	Page  string   `json:"page"`
	Count int64    `json:"count"`
	Tags  []string `json:"tags"`
}

// asBase64 and asRESP2 are a text in the other two forms.
func asBase64(text string) Reply {
	return base64Reply(`"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"`)
}

func asRESP2(t *testing.T, text string) Reply {
	t.Helper()
	return respReply(t, fmt.Sprintf("$%d\r\n%s\r\n", len(text), text))
}

func TestDecodeOfAText(t *testing.T) {
	const stored = `{"page":"/ä\n","count":9007199254740993,"tags":["a","b"]}`
	quoted, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	want := visit{"/ä\n", 9007199254740993, []string{"a", "b"}}
	for name, r := range map[string]Reply{
		"JSON": jsonReply(string(quoted)), "base64": asBase64(stored), "RESP2": asRESP2(t, stored),
	} {
		var got visit
		if err := r.Decode(&got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
	}
}

func TestDecodeOfAResult(t *testing.T) {
	type list = []any
	for raw, tt := range map[string]struct {
		form replyForm
		want any
	}{
		`12`:                        {formJSON, 12.0},
		` 12`:                       {formJSON, 12.0},
		`[1,null,["a",{"b":true}]]`: {formJSON, list{1.0, nil, list{"a", map[string]any{"b": true}}}},
		`["YWI=",["w6Q="],null,-3,"OK",1.5,true]`: {formBase64, list{"ab", list{"ä"}, nil, -3.0, "OK", 1.5, true}},
		`[]`: {formBase64, list{}},
		"*4\r\n$2\r\nab\r\n*1\r\n+OK\r\n$-1\r\n:-3\r\n": {formRESP2, list{"ab", list{"OK"}, nil, -3.0}},
		":9\r\n": {formRESP2, 9.0},
		"*0\r\n": {formRESP2, list{}},
	} {
		r := replyOf(received{body: []byte(raw), form: tt.form})
		var got any
		if err := r.Decode(&got); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q: got %v, %v, want %v", raw, got, err, tt.want)
		}
	}
	var n int64
	if err := jsonReply("9223372036854775807").Decode(&n); err != nil || n != 1<<63-1 {
		t.Errorf("the largest integer: got %d, %v", n, err)
	}
}

func TestDecodeOfNull(t *testing.T) {
	for name, r := range map[string]Reply{
		"zero": {}, "JSON": jsonReply("null"), "base64": base64Reply("null"), "RESP2": respReply(t, "$-1\r\n"),
	} {
		v := 5
		if err := r.Decode(&v); err != ErrNil || v != 5 {
			t.Errorf("%s: got %d, %v, want ErrNil", name, v, err)
		}
	}
	// A stored null is a value.
	v := new(int)
	if err := jsonReply(`"null"`).Decode(&v); err != nil || v != nil {
		t.Errorf("a stored null: got %v, %v", v, err)
	}
}

// words is a slice with a method of its own for text.
type words []string

func (w *words) UnmarshalText(text []byte) error {
	*w = strings.Fields(string(text))
	return nil
}

// TestDecodeOfNullIntoTheOlderValue: the doc of Decode names what encoding/json
// would set to nil. If this fails, the reader of JSON was mended: reword the doc.
func TestDecodeOfNullIntoTheOlderValue(t *testing.T) {
	v := struct {
		Bytes []byte
		Words words
		Plain []string
	}{[]byte("old"), words{"old"}, []string{"old"}}
	err := jsonReply(`"{\"Bytes\":null,\"Words\":null,\"Plain\":null}"`).Decode(&v)
	if err != nil || string(v.Bytes) != "old" || len(v.Words) != 1 || v.Plain != nil {
		t.Errorf("got %+v, %v", v, err)
	}
}

// picky refuses its JSON and quotes it, as time.Time does.
type picky struct{}

func (*picky) UnmarshalJSON(b []byte) error { return fmt.Errorf("cannot take %s", b) }

// TestDecodeRefuses: the error says what does not fit, and neither its text nor
// what it wraps has the stored value.
func TestDecodeRefuses(t *testing.T) {
	deep := strings.Repeat("[", maxRESPDepth+2) + strings.Repeat("]", maxRESPDepth+2)
	for name, tt := range map[string]struct {
		r    Reply
		v    any
		want string
	}{
		"no JSON":     {jsonReply(`"secret"`), new(any), "the text is not JSON: use Text"},
		"cut":         {jsonReply(`"{\"secret\":1"`), new(visit), "the text is not JSON: use Text"},
		"two":         {jsonReply(`"1 secret"`), new(int), "the text is not JSON: use Text"},
		"a number":    {jsonReply(`"{\"count\":777777777777777777777}"`), new(visit), "is no int64"},
		"a fraction":  {jsonReply(`"77.7777"`), new(int), "is no int"},
		"a text":      {jsonReply(`"\"secret\""`), new(int), "is no int"},
		"time":        {jsonReply(`"\"secret\""`), new(time.Time), "a method of the type"},
		"its method":  {asRESP2(t, `["secret"]`), new([]picky), "a method of the type"},
		"no base64":   {base64Reply(`"secret!"`), new(any), "not base64"},
		"not UTF-8":   {respReply(t, "*1\r\n$1\r\n\xff\r\n"), new(any), "not valid UTF-8"},
		"nested":      {base64Reply(deep), new(any), "nested too deep"},
		"no pointer":  {jsonReply("1"), visit{}, "want a pointer"},
		"nil":         {jsonReply("1"), nil, "want a pointer"},
		"nil pointer": {jsonReply("1"), (*visit)(nil), "want a pointer"},
	} {
		err := tt.r.Decode(tt.v)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
			continue
		}
		wantKind := ErrBadResponse
		if strings.Contains(tt.want, "pointer") {
			wantKind = ErrArgument
		}
		if !errors.Is(err, wantKind) {
			t.Errorf("%s: got %v, want %v", name, err, wantKind)
		}
		for _, secret := range []string{"secret", "7777"} {
			if text := wholeChain(err); strings.Contains(text, secret) {
				t.Errorf("%s: the chain has the stored value: %s", name, text)
			}
		}
	}
	refused := &Error{StatusCode: 200, Message: "ERR no", Command: "TEST"}
	r := replyOf(received{err: refused})
	if err := r.Decode(new(any)); err != error(refused) {
		t.Errorf("an error of the server: got %v", err)
	}
	r = respReply(t, "*2\r\n:1\r\n-ERR no\r\n")
	var server *Error
	if err := r.Decode(new(any)); !errors.As(err, &server) {
		t.Errorf("an error in the array: got %v", err)
	}
}

// A stored text that is no JSON has a value all the same if it is to be a text.
func TestDecodeOfATextThatIsNoJSON(t *testing.T) {
	for _, stored := range []string{"hello, world", "", `{"a":`, "2026-11-28", "é"} {
		quoted, err := json.Marshal(stored)
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string]Reply{
			"JSON": jsonReply(string(quoted)), "base64": asBase64(stored), "RESP2": asRESP2(t, stored),
		} {
			var text string
			if err := r.Decode(&text); err != nil || text != stored {
				t.Errorf("%s: %q into a string: got %q, %v", name, stored, text, err)
			}
			var raw []byte
			if err := r.Decode(&raw); err != nil || string(raw) != stored {
				t.Errorf("%s: %q into bytes: got %q, %v", name, stored, raw, err)
			}
			for _, v := range []any{new(int), new(any), new(visit)} {
				err := r.Decode(v)
				if !errors.Is(err, ErrBadResponse) || !strings.Contains(err.Error(), "is not JSON: use Text") {
					t.Errorf("%s: %q into %T: got %v, want that it is not JSON", name, stored, v, err)
				}
			}
		}
	}
	var raw []byte
	if err := jsonReply(`"a \ufffd"`).Decode(&raw); !errors.Is(err, ErrBadResponse) {
		t.Errorf("bytes that were replaced: got %q, %v", raw, err)
	}
	// What is JSON is read as JSON.
	var text string
	if err := jsonReply(`"\"quoted\""`).Decode(&text); err != nil || text != "quoted" {
		t.Errorf("a string in JSON: got %q, %v", text, err)
	}
	if err := jsonReply(`"12"`).Decode(&text); !errors.Is(err, ErrBadResponse) {
		t.Errorf("a number into a string: got %q, %v", text, err)
	}
	var number any
	if err := jsonReply(`"9007199254740993"`).Decode(&number); err != nil || number != 9007199254740992.0 {
		t.Errorf("a number into an any: got %v, %v, want a float64", number, err)
	}
}
