package json

import (
	"bytes"
	"encoding/json" // the reader that ours is compared with
	"strings"
	"testing"
)

var seeds = []string{
	`{"result":null}`, `{"result":[1,null,-2]}`, `{"error":"ERR x"}`, `[{"result":"OK"},{"error":"a"}]`,
	`{"a":1,"a":2}`, `{"result":1,"result":2,"Result":3,"RESULT":4}`, `{"Error":"a"}`, `{"r\u0065sult":[1]}`,
	`{"error":{"error":1}}`, `{"result":{"a":[1,{}],"b":"\u00e9"},"error":null}`, `{"result":1}x`, "{\"result\":1}\x00",
	`{"result":1-1}`, `{"result":nulll}`, `{"result":0x1}`, `{"result":1;"a":2}`, `{"result":1,,"a":2}`, ` { "a" : [ ] , "b" : { } } `, `{"\u0061":"\ud83d\ude00\ud800x\n\/"}`,
	"\"\xff\xc3\"", `"\ud800\u0041"`, "\"a\xe2\x82b\xed\xa0\x80\xff\xff\"", "\"\xc3\\n\xa4\xf4\x90\x80\x80\"",
	`"\udc00\ud800"`, `"\ud800\ud800\udc00"`, `"\uD83D\uDE00 \u0000\u001f"`, "\"\x7f\u2028\"", "\"a\x1f\"", "\"\t\"", `"\ud83d`,
	`"a\"b"`, `[1.5e+3,-0,0.1E-2,true,false]`,
	``, ` `, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[01]`, `[-]`, `[1.]`, `[1e]`, `[+1]`, `"a`, `"\x"`,
	`"\u12"`, "\"\n\"", `[1]x`, `tru`, `{1:2}`, `[nul]`, `"\u+123"`,
}

// check compares how one input is read with encoding/json.
func check(t *testing.T, data []byte) {
	t.Helper()
	trimmed := strings.TrimLeft(string(data), " \t\r\n")
	if trimmed == "" {
		trimmed = " "
	}

	for reader, envelope := range map[string]func([]byte) ([]byte, []byte, error){
		"Envelope": Envelope, "BoundedEnvelope": BoundedEnvelope,
	} {
		var want map[string]json.RawMessage
		ok := json.Unmarshal(data, &want) == nil && trimmed[0] == '{' && !saysTwice(data)
		result, message, err := envelope(data)
		if (err == nil) != ok {
			t.Fatalf("%s(%q): %v, encoding/json says %v", reader, data, err, ok)
		}
		if ok && (string(result) != string(want["result"]) || string(message) != string(want["error"])) {
			t.Fatalf("%s(%q) = %q, %q; want %q", reader, data, result, message, want)
		}
	}

	var wantArray []json.RawMessage
	var array [][]byte
	err := Array(data, func(from, to int) { array = append(array, data[from:to]) })
	ok := json.Unmarshal(data, &wantArray) == nil && trimmed[0] == '['
	if (err == nil) != ok {
		t.Fatalf("Array(%q): %v, encoding/json says %v", data, err, ok)
	}
	if ok && len(array) != len(wantArray) {
		t.Fatalf("Array(%q) has %d elements, want %d", data, len(array), len(wantArray))
	}
	for i, raw := range array {
		if ok && string(raw) != string(wantArray[i]) {
			t.Fatalf("Array(%q)[%d] = %s, want %s", data, i, raw, wantArray[i])
		}
	}

	for reader, text := range map[string]func([]byte) (string, error){
		"String": String, "boundedString": boundedString,
	} {
		var want string
		ok := json.Unmarshal(data, &want) == nil && trimmed[0] == '"'
		got, err := text(data)
		if (err == nil) != ok {
			t.Fatalf("%s(%q): %v, encoding/json says %v", reader, data, err, ok)
		}
		if ok && got != want {
			t.Fatalf("%s(%q) = %q, want %q", reader, data, got, want)
		}
	}
}

// saysTwice reports whether an object has two members "result", or "error".
func saysTwice(data []byte) bool {
	d, seen := json.NewDecoder(bytes.NewReader(data)), map[json.Token]int{}
	_, _ = d.Token()
	for d.More() {
		name, _ := d.Token()
		seen[name]++
		if d.Decode(new(json.RawMessage)) != nil {
			break
		}
	}
	return seen["result"] > 1 || seen["error"] > 1
}

func TestAgainstEncodingJSON(t *testing.T) {
	for _, s := range seeds {
		check(t, []byte(s))
	}
	check(t, []byte(strings.Repeat("[", 20000)))
	check(t, []byte(strings.Repeat("[", 9999)+strings.Repeat("]", 9999)))
	check(t, []byte(strings.Repeat("[", 10000)+strings.Repeat("]", 10000)))
	check(t, []byte(strings.Repeat("[", 10001)+strings.Repeat("]", 10001)))
	check(t, []byte(`{"result":`+strings.Repeat("[", 20000)+strings.Repeat("]", 20000)+"}"))
}

func FuzzAgainstEncodingJSON(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(check)
}
