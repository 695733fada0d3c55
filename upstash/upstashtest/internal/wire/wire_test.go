package wire

import (
	"bytes"
	"encoding/json" // what ours is compared with
	"slices"
	"strings"
	"testing"
)

// FuzzCommand compares the reading of a command with encoding/json.
func FuzzCommand(f *testing.F) {
	for _, s := range []string{
		`["GET","k"]`, ` [ "GET" , "k" ] `, `["SET","k",1,-2.5e3,true,false]`, `["GET",null]`, `["GET",["k"]]`,
		`["GET",{"a":1}]`, `[]`, `[""]`, `["GET","k"]x`, `["GET","k",]`, `["GET","k"`, `{"a":1}`, ``,
		`["E\u0043HO","a\"b\\\ud83d\ude00\ud800"]`, "[\"ECHO\",\"a\xff\"]", "[\"ECHO\",\"é\"]", "[\"ECHO\",\"a\nb\"]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := parseCommand(body)
		want, ok := commandOf(body)
		if (err == nil) != ok || ok && !slices.Equal(got, want) {
			t.Errorf("%q is %q, %v; want %q, %v", body, got, err, want, ok)
		}
	})
}

// commandOf reads a command by encoding/json.
func commandOf(body []byte) (cmd []string, ok bool) {
	var items []json.RawMessage
	if json.Unmarshal(body, &items) != nil {
		return nil, false
	}
	for _, item := range items {
		arg := string(item)
		if bytes.ContainsAny(item[:1], "n[{") || item[0] == '"' && json.Unmarshal(item, &arg) != nil {
			return nil, false
		}
		cmd = append(cmd, arg)
	}
	return cmd, len(cmd) > 0 && cmd[0] != ""
}

// FuzzWriteString compares the writing of a string with encoding/json.
func FuzzWriteString(f *testing.F) {
	for _, s := range []string{
		"", "plain", "\x00\b\f\n\r\t\x1f\x7f", `"\`, "<&>", "\u2028\u2029\ufffd", "é日😀",
		"\xff", "a\xe2\x80", "\xed\xa0\x80", strings.Repeat("😀é\x80", 4000),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		writeString(&got, s)
		if got.String() != strings.TrimSuffix(want.String(), "\n") {
			t.Errorf("%q is %s, want %s", s, &got, &want)
		}
	})
}
