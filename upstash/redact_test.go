package upstash

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRedact(t *testing.T) {
	one, many := `["GET","user:42","bob","INCRBY","7"]`, `[["GET","user:42"],["SET","user:421","v"]]`
	for _, tt := range []struct{ message, body, want string }{
		{"ERR no such key", one, "ERR no such key"},
		{"ERR user:42 is bad", one, "ERR … is bad"},
		{"ERR 'bob' is bad", one, "ERR '…' is bad"},
		{"ERR \"bob\" and `bob`", one, "ERR \"…\" and `…`"},
		{"ERR bobsled", one, "ERR bobsled"}, // three letters may be anything
		{"ERR INCRBY wants 7 arguments", one, "ERR … wants … arguments"},
		{"ERR no such user 7!", one, "ERR no such user …!"},
		{"bob: not JSON", one, "…: not JSON"},
		{"WRONGTYPE of user", `["GET","WRONGTYPE"]`, "WRONGTYPE of user"}, // the code stays
		{`ERR bad ["SET","o'br\"ien\n"]`, `["SET","k","o'br\"ien\n"]`, `ERR bad ["SET","…"]`},
		{"ERR bad long-item-w", `["SADD","k","long-item-which-is-cut"]`, "ERR bad …"},
		{"ERR bad long-item-which-is-cut!", `["SADD","k","long-item-which-is-cut"]`, "ERR bad …!"},
		{"dial tcp 10.0.0.130:443", `["BITFIELD","k","GET","u1","130"]`, "dial tcp 10.0.0.130:443"},
		{"dial tcp 127.0.0.1:443", `["SCAN","0"]`, "dial tcp 127.0.0.1:443"},
		{"ERR 0. Then 0.", `["SCAN","0"]`, "ERR …. Then …."},
		{"ERR key-1", `["BITFIELD","key-1","GET","u1","130"]`, "ERR …"},
		{"ERR value '7'", one, "ERR value '…'"},
		{"WRONGPASS " + testToken, one, "WRONGPASS …"},
		{"ERR user:421", many, "ERR …"}, // and not …1
		{"ERR user:42, user:421", many, "ERR …, …"},
		{"ERR unknown command 'X', with args beginning with: 'user:4", one, "ERR unknown command 'X'"},
		{"ERR GET", one, "ERR GET"},
		{"ERR " + strings.Repeat("x", 2000), one, "ERR " + strings.Repeat("x", 996) + "…"},
		{"", one, ""},
		{"ERR x", "not JSON", "ERR x"},
		{"ERR x", `[1,null,[["a"]]]`, "ERR x"},
	} {
		if got := redact(tt.message, []byte(tt.body), testToken); got != tt.want {
			t.Errorf("redact(%q, %s) = %q, want %q", tt.message, tt.body, got, tt.want)
		}
	}
}

// escapes matches what escape writes. Its digits are those of no argument.
var escapes = regexp.MustCompile(`\\([abfnrtv]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})`)

// FuzzRedact: no argument of four bytes or more survives whole, whatever the
// server says around it, except keywords and the code.
func FuzzRedact(f *testing.F) {
	f.Add("ERR ", "user:42", "bob", " is bad")
	f.Add("ERR bad '", `o'br"ien`, "\n\t", "'")
	f.Add("x", "\u65e5\u672c\u8a9e", "KEEPTTL", "\u65e5\u672c")
	f.Add("", "0001", "1", "\U000195de")
	f.Fuzz(func(t *testing.T, before, arg, other, after string) {
		cmd := Cmd("SET", arg, other)
		if cmd.err != nil || len(arg) < 4 || isKeyword(arg) || strings.ContainsAny(arg, redacted) {
			return
		}
		message := before + arg + after
		got := redact(message, cmd.body(), testToken)
		if !utf8.ValidString(got) && utf8.ValidString(message) {
			t.Errorf("redact(%q) = %q, which is not UTF-8", message, got)
		}
		rest := escapes.ReplaceAllString(strings.TrimPrefix(got, codeOf(got)), redacted)
		if strings.Contains(rest, arg) {
			t.Errorf("redact(%q, %q, %q) = %q", message, arg, other, got)
		}
	})
}
