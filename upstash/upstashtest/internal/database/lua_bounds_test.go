package database

import (
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// TestBoundedScripts runs scripts whose result or stack has no end.
func TestBoundedScripts(t *testing.T) {
	db, err := OpenMemory(testLimits)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	deep := "2e4"
	if testenv.Long() {
		deep = "1e6"
	}
	for _, tt := range []struct{ name, script, want string }{
		{"a table in itself", `local t={} t[1]=t return t`, string(errScriptReply)},
		{"a table twice in another", `local t={} for i=1,60 do t={t,t} end return t`, string(errScriptReply)},
		{"a deep table", `local t={} for i=1,` + deep + ` do t={t} end return t`, string(errScriptReply)},
		{"one string often", `local s=string.rep('x',1e8) return {s,s,s,s,s,s}`, string(errScriptReply)},
		{"a string too long for any machine", `return ('xy'):rep(2^62)`, "output length overflow"},
		{"deep calls", `local function f() return 1+f() end return f()`, "stack overflow"},
		{"deep pcall", `local f f=function() return (select(2,pcall(f))) end return f()`, "stack overflow"},
		{"unpack", `local t={} for i=1,8000 do t[i]=i end return #{unpack(t)}`, "registry overflow"},
		{"concat of nothing for ever", `return table.concat({}, '', 1, 2^31-1)`, "invalid value (nil) at index 1"},
		{"JSON that is none", `return cjson.decode('[1,')`, "unexpected end of JSON"},
		{"JSON of a function", `return cjson.encode(redis.call)`, "cannot encode function"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := show(db.Do([]string{"EVAL", tt.script, "0"}))
			if !strings.Contains(got, tt.want) {
				t.Errorf("%.300s, want %s", got, tt.want)
			}
		})
	}
}

// TestEndlessScriptsEnd runs scripts that would never end, and which catch the
// error at their end.
func TestEndlessScriptsEnd(t *testing.T) {
	for _, script := range []string{
		`while true do end`,
		`while true do pcall(function() while true do end end) end`,
		`while true do pcall(string.find, string.rep('a',300), string.rep('a-',2)..'b') end`,
		`while true do string.gsub('abc', '%w', function(c) return c..c end) end`,
		`local function f() return f() end return f()`,
	} {
		db, err := OpenMemory(Limits{MaxRecord: 1 << 20, Timeout: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if r := db.Do([]string{"EVAL", script, "0"}); r != Lost("ERR a script ran for 20ms and was ended") {
			t.Errorf("%s: got %v, want the end after 20 ms", script, r)
		}
		if r := db.Do([]string{"ECHO", "x"}); r != Bulk("x") {
			t.Errorf("ECHO afterwards: got %v, want x", r)
		}
		_ = db.Close()
		if r := db.Do([]string{"EVAL", script, "0"}); r != Lost("ERR the server was closed while a script ran") {
			t.Errorf("%s: got %v, want the end with the server", script, r)
		}
	}
}
