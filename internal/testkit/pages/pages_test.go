package pages

import (
	"io"
	"reflect"
	"testing"
)

func TestCut(t *testing.T) {
	page := "Text:\n\n    one\n\n      two\n\nNo\n    code.\n```go\nx := 1\n\n```\n- A list\n\n  ```sh\n  go run .\n  ```\n"
	source := "// Package p:\n//\n//\tx := 1\n//\n//\ty\n// Text.\n\nfunc f() {\n\t//\tz\n}\n"
	for _, tt := range []struct {
		file, text string
		want       []Block
	}{
		{"a.md", page, []Block{{3, "", "one\n\n  two"}, {10, "go", "x := 1"}, {16, "sh", "  go run ."}}},
		{"a.go", source, []Block{{3, "", "x := 1\n\ny"}, {9, "", "z"}}},
	} {
		if got := Cut(tt.file, tt.text); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", tt.file, got, tt.want)
		}
	}
}

func TestCommands(t *testing.T) {
	for text, want := range map[string][]string{
		"A=1 \\\n    go build -o x .\ncd x && ls  # why": {"A=1 go build -o x .", "cd x", "ls"},
		"$ curl x\nanswer\n$ curl y":                     {"curl x", "curl y"},
	} {
		if got := (Block{Text: text}).Commands(); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestRequest(t *testing.T) {
	r := Request(t, "testdata/page.md", "curl -H", "http://127.0.0.1:1")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if r.Method != "POST" || r.URL.String() != "http://127.0.0.1:1/a/b" || string(body) != `{"x": 1}` ||
		r.Header.Get("Id") != "evt 1" {
		t.Errorf("%s %v, %v, %s, want POST /a/b with its header and body", r.Method, r.URL, r.Header, body)
	}
	line := Command(t, "testdata/page.md", "A=1 B=2 go")
	want := Line{Env: []string{"A=1", "B=2"}, Args: []string{"go", "build", `-ldflags=-s -w`, "."}}
	if !reflect.DeepEqual(line, want) {
		t.Errorf("%q, want %q", line, want)
	}
}
