package database

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// TestBoundedScripts runs scripts that would use all memory or the whole stack.
// Either would end a Go process.
func TestBoundedScripts(t *testing.T) {
	db, err := OpenMemory(testLimits)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const long = "a string of more than 134217728 bytes"
	const levels = "chunk has too many syntax levels"
	deep := "2e4"
	if testenv.Long() {
		deep = "1e6"
	}
	for _, tt := range []struct{ name, script, want string }{
		{"a table in itself", `local t={} t[1]=t return t`, string(errScriptReply)},
		{"a table twice in another", `local t={} for i=1,60 do t={t,t} end return t`, string(errScriptReply)},
		{"a deep table", `local t={} for i=1,` + deep + ` do t={t} end return t`, string(errScriptReply)},
		{"one string often", `local s=string.rep('x',1e8) return {s,s,s,s,s,s}`, string(errScriptReply)},
		{"rep", `return string.rep('x',1e12)`, long},
		{"rep by method", `return ('xy'):rep(2^62)`, long},
		{"doubling", `local s='x' while true do s=s..s end`, long},
		{"a long chain", `local s=string.rep('x',1e8) return #(s..s..s..s)`, long},
		{"concat", `local s,t=string.rep('x',1e6),{} for i=1,200 do t[i]=s end return table.concat(t)`, long},
		{"format", `local s=string.rep('x',1e8) return string.format('%s%s',s,s)`, long},
		{"gsub", `local s=string.rep('x',1e6) return (string.gsub(s,'.',s))`, long},
		{"not", `return ` + strings.Repeat("not ", 2_400_000) + `1`, "chunk has too many bytes"},
		{"minus", `return ` + strings.Repeat("- ", 200_000) + `1`, levels},
		{"tables", `return ` + strings.Repeat("{", 20_000) + strings.Repeat("}", 20_000), levels},
		{"brackets", strings.Repeat("do ", 20_000) + strings.Repeat("end ", 20_000), levels},
		{"calls", `return f` + strings.Repeat("()", 20_000), levels},
		{"loadstring", `return select(2,loadstring('return '..string.rep('not ',2e4)..'1'))`, levels},
		{"load", `local n=0 return select(2,load(function() n=n+1 if n>1 then return nil end
			return 'return '..string.rep('not ',2e4)..'1' end))`, levels},
		{"deep JSON", `local t={} for i=1,` + deep + ` do t={t} end return cjson.encode(t)`, "excessive depth (1001)"},
		{"wide JSON", `local t={} for i=1,60 do t={t,t} end return cjson.encode(t)`, "too long for its depth (61)"},
		{"deep calls", `local function f() return 1+f() end return f()`, "stack overflow"},
		{"deep pcall", `local f f=function() return (select(2,pcall(f))) end return f()`, "stack overflow"},
		{"deep coroutines", `local f f=function() return 1+coroutine.wrap(f)() end return f()`, "more than 1000 coroutines"},
		{"unpack", `local t={} for i=1,8000 do t[i]=i end return #{unpack(t)}`, "registry overflow"},
		{"concat of nothing for ever", `return table.concat({}, '', 1, 2^31-1)`, "invalid value (nil) at index 1"},
		{"JSON that is none", `return cjson.decode('[1,')`, "unexpected end of JSON"},
		{"JSON of a function", `return cjson.encode(redis.call)`, "cannot encode function"},
		{"captures", `return string.find('x', string.rep('(',40)..string.rep(')',40))`, "too many captures"},
		{"complex", `return string.find('x', string.rep('x*',` + deep + `))`, "pattern too complex"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := show(db.Do([]string{"EVAL", tt.script, "0"}))
			if !strings.Contains(got, tt.want) {
				t.Errorf("%.300s, want %s", got, tt.want)
			}
		})
	}
}

// TestEndlessScriptsEnd runs scripts that would take years, and which catch
// the error at their end.
func TestEndlessScriptsEnd(t *testing.T) {
	const backtracks = `string.find(string.rep('a',3000),string.rep('a-',40)..'b')`
	for _, script := range []string{
		`while true do end`,
		`while true do pcall(function() while true do end end) end`,
		`return ` + backtracks,
		`while true do pcall(function() return ` + backtracks + ` end) end`,
		`return (string.gsub(string.rep('a',3000),string.rep('.*',40)..'b','x'))`,
		`for x in string.gmatch(string.rep('a',3000),string.rep('a?',150)..'b') do end`,
		`return string.match(string.rep('(',1e5),string.rep('.-',40)..'%b()')`,
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

var genPattern = rapid.Custom(func(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{
		"a", "b", ".", "%a", "%D", "%s", "[ab]", "[^a]", "[a-c%d]", "[]]", "[^]-]", "[%w_]", "a*", "b-", ".-", "[ab]+",
		"%d?", "(", ")", "()", "(a)", "(.-)", "%1", "%2", "%bab", "%b()", "%f[a]", "%f[^a]", "^", "$", "%%", "%.", "-", "*",
		"%z", "%X", "[a-]", "%", "[",
	}), 0, 6).Draw(t, "parts")
	return strings.Join(parts, "")
})

// TestPatternDifferential compares the patterns here with those of Redis.
func TestPatternDifferential(t *testing.T) {
	p := newPair(t)
	const script = `local s, p, r, n = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local out = {}
local function try(...)
	local got = {pcall(...)}
	if not got[1] then
		got = {'error'}
	end
	for i = 1, 12 do
		out[#out+1] = tostring(got[i])
	end
end
try(string.find, s, p, n)
try(string.find, s, p, n, true)
try(string.match, s, p, n)
try(string.gsub, s, p, r, n > 2 and n or nil)
try(string.gsub, s, p, {a='A', b=false, ab=1})
try(string.gsub, s, p, function(x, y) return y end)
pcall(function() for x, y in string.gmatch(s, p) do out[#out+1] = tostring(x)..','..tostring(y) end end)
return out`
	checkMany(t, func(t *rapid.T) {
		subject := rapid.StringOfN(rapid.SampledFrom([]rune("aab()1]- \x00_%")), 0, 10, -1).Draw(t, "subject")
		p.same(t, "EVAL", script, "0", subject, genPattern.Draw(t, "pattern"),
			rapid.SampledFrom([]string{"", "x", "%0", "%1", "<%1%%>", "%2", "%"}).Draw(t, "replacement"),
			rapid.SampledFrom([]string{"1", "0", "-1", "3", "-20", "20"}).Draw(t, "init"))
	})
}
