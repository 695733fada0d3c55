package json

import (
	"encoding/json"
	"strings"
	"testing"
)

var seeds = []string{
	`{"result":null}`, `{"result":[1,null,-2]}`, `{"error":"ERR x"}`, `[{"result":"OK"},{"error":"a"}]`,
	`{"a":1,"a":2}`, ` { "a" : [ ] , "b" : { } } `, `{"\u0061":"\ud83d\ude00\ud800x\n\/"}`,
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

	var wantObject map[string]json.RawMessage
	object := make(map[string][]byte)
	err := Object(data, func(name string, raw []byte) { object[name] = raw })
	ok := json.Unmarshal(data, &wantObject) == nil && trimmed[0] == '{'
	if (err == nil) != ok {
		t.Fatalf("Object(%q): %v, encoding/json says %v", data, err, ok)
	}
	if len(object) != len(wantObject) && ok {
		t.Fatalf("Object(%q) has %d members, want %d", data, len(object), len(wantObject))
	}
	for name, raw := range object {
		if ok && string(raw) != string(wantObject[name]) {
			t.Fatalf("Object(%q)[%q] = %s, want %s", data, name, raw, wantObject[name])
		}
	}

	var wantArray []json.RawMessage
	var array [][]byte
	err = Array(data, func(from, to int) { array = append(array, data[from:to]) })
	ok = json.Unmarshal(data, &wantArray) == nil && trimmed[0] == '['
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

	var wantText string
	text, err := String(data)
	ok = json.Unmarshal(data, &wantText) == nil && trimmed[0] == '"'
	if (err == nil) != ok {
		t.Fatalf("String(%q): %v, encoding/json says %v", data, err, ok)
	}
	if ok && text != wantText {
		t.Fatalf("String(%q) = %q, want %q", data, text, wantText)
	}
}

func TestAgainstEncodingJSON(t *testing.T) {
	for _, s := range seeds {
		check(t, []byte(s))
	}
	check(t, []byte(strings.Repeat("[", 20000)))
	check(t, []byte(strings.Repeat("[", 9999)+strings.Repeat("]", 9999)))
	check(t, []byte(strings.Repeat("[", 10000)+strings.Repeat("]", 10000)))
	check(t, []byte(strings.Repeat("[", 10001)+strings.Repeat("]", 10001)))
}

func FuzzAgainstEncodingJSON(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(check)
}
