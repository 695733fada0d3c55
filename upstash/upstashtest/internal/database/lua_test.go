package database

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// TestScriptsLikeRedis runs scripts on both databases, in this order, and
// compares their results and errors.
func TestScriptsLikeRedis(t *testing.T) {
	p := newPair(t)
	p.same(t, "SET", "s", "text")
	p.same(t, "RPUSH", "l", "a", "b")
	for _, script := range []string{
		`return {1,'x',false,{2},nil,3}`, `return`, `return true`, `return -3.99`, `return 1e15`,
		`return {ok='FINE'}`, `return {err='ODD reply'}`, `return {ok='a',1}`, `return {}`,
		`return redis.status_reply('OK')`, `return redis.error_reply('one')`,
		`return redis.error_reply('TWO words')`, `return redis.error_reply('-MINUS it')`,
		`return {KEYS[1],ARGV[1],#KEYS,#ARGV}`, `return redis.sha1hex('')`,
		`return redis.call('GET','s')`, `return redis.call('get','none')`, `return redis.call('SET','a',1)`,
		`return redis.call('SET','a',3.7) and redis.call('GET','a')`,
		`return redis.call('SET','a',2^53) and redis.call('GET','a')`,
		`return redis.call('SET','a',1e17) and redis.call('GET','a')`,
		`return redis.call('SET','a',-0.1) and redis.call('GET','a')`,
		`return type(redis.call('GET','none'))`, `return redis.call('TYPE','l').ok`,
		`return redis.call('BITFIELD','b','SET','u8',0,255,'GET','u4',2)`,
		`return redis.call('BITFIELD','b','OVERFLOW','FAIL','INCRBY','u8',0,1)`,
		`redis.call('SET','c','a') return redis.call('BITFIELD','c','SET','u8','0','98','GET','u8','0')`,
		`return redis.call('BITCOUNT','c','0','3','BIT')`,
		`redis.call('EXPIRE','c','900','NX') return redis.call('TTL','c') > 0`,
		`return redis.pcall('BITFIELD','c','NOPE').err`, `return redis.pcall('BITFIELD')`,
		`return redis.call('LRANGE','l',0,-1)`,
		`return redis.call('INCR','s')`, `return redis.pcall('INCR','s')`, `return redis.pcall('GET','l').err`,
		"\n\nreturn redis.call('GET','l')", `return redis.call('NOPE')`, `return redis.pcall('NOPE').err`,
		`return redis.call('GET')`, `return redis.pcall('GET','a','b').err`,
		`return redis.call('EVAL','return 1',0)`, `return redis.pcall('SUBSCRIBE','x').err`,
		`return redis.call()`, `return redis.call('GET',{})`, `return redis.pcall('GET',true).err`,
		`error('boom')`, "\nerror('boom')", `error({err='MINE it is'})`, `return pcall(error,'x')`,
		`local ok, e = pcall(redis.call,'INCR','s') return e`,
		`local t = {} return unpack(t)`, `return math.floor(3.7)`, `return string.format('%05.1f',2)`,
		`return tostring(nil)`, `return cjson.encode({1,2,'x'})`, `return cjson.decode('{"a":[1,2]}').a`,
		`local t = {} for i = 1, 7000 do t[i] = 'a' end return redis.call('MGET', unpack(t))[7000]`,
		`return redis.REPL_ALL`, `return {pcall(error,{x=1})}`, `return os`,
		`return {pcall(function(a,b) return b,a end,1,2)}`,
		`return {tostring(2^53),tostring(1e14),tostring(1/3),tostring(1/0),tostring(100)}`,
		`return {tostring(-0),tostring(0/0),tostring(math.huge),tostring(-math.huge)}`,
		`return 2^46 .. '|' .. 1 .. 0.1 .. -1.5`, `local function f() return 1e13,2 end return 'x' .. f()`,
		`return tostring(2^53) .. '|' .. string.format('%s', 1e15) .. tostring(-1/3)`,
		`return table.concat({1.5,2^53,'x',-7},',')`, `return table.concat({1,{},3})`,
		`return table.concat({1,2,3},',',2,3)`, `return table.concat({},',')`,
		`return table.concat({1,2},',',2,1)`,
		`return string.format('%s %d %5.1f%% %10s|%-4s %s',2^53,3,2.55,1e15,7,1/3)`,
		`return redis.call('SET','a',1/0) and redis.call('GET','a')`,
		`return redis.call('SET','a',1e300) and redis.call('GET','a')`,
		`return redis.call('SET','a',-2^63) and redis.call('GET','a')`,
		`return #unpack({{1,2,3}})`, `local t = {} for i = 1, 7990 do t[i] = i end return #{unpack(t)}`,
		`return {string.find('abc','()b()')}`, `return string.gsub('abc','b','<%0>')`,
		`return string.gsub('abc','b','%2')`,
		`return string.match('x(a(b)c)y','%b()')`, `return {string.match('k=v','(%w+)=(%w+)')}`,
		`return string.match('aa','(a)%1')`, `return string.find('a]b','[]]')`, `return string.find('x\0y','%z')`,
		`return string.match('hello','l+',-2)`, `return string.find('a.b','.',1,true)`,
		`return string.match('abc','.-')`,
		`return {string.match('ab12','^(%a+)(%d+)$')}`, `return {string.gsub('abc def','%w+','<%0>',1)}`,
		`return string.gsub('abc','','x')`, `return string.gsub('abc','b',{b=1.5})`,
		`return string.match('äb','[^b]+')`,
		`local t = {} for w in string.gmatch('one two','%a+') do t[#t+1] = w end return t`,
		`return {string.rep('ab',3),string.rep('ab',-1)}`, `return _printregs`,
		`x = 1`, `return x`, `return print`, `return loadfile`, `return require`,
		"#!lua\nreturn 1", "#!lua flags=allow-oom,no-cluster\nreturn 1",
		"#!lua flags=no-writes\nreturn redis.call('SET','a',1)",
		"#!lua flags=no-writes\nreturn redis.call('GET','s')",
		"#!lua flags=nope\nreturn 1", "#!lua what=ever\nreturn 1", "#!js\nreturn 1", "#!lua return 1",
		"#!lua flags=no-writes\nerror('third line')",
	} {
		ours := show(p.mem.Do([]string{"EVAL", script, "1", "k", "v"}))
		redis := show(p.red.Do([]string{"EVAL", script, "1", "k", "v"}))
		if ours != redis {
			t.Errorf("%s:\n ours  %s\n redis %s", script, ours, redis)
		}
	}
	for _, args := range [][]string{
		{"EVAL", "return 1", "x"},
		{"EVAL", "return 1", "-1"},
		{"EVAL", "return 1", "1"},
		{"EVALSHA", strings.Repeat("F", 40), "0"},
		{"EVAL_RO", "return redis.call('SET','a',1)", "0"},
		{"EVAL_RO", "return redis.call('GET','s')", "0"},
		{"SCRIPT", "LOAD", "return 7"},
		{"EVALSHA", scriptSum("return 7"), "0"},
		{"EVALSHA", strings.ToUpper(scriptSum("return 7")), "0"},
		{"EVALSHA_RO", scriptSum("return 7"), "0"},
		{"SCRIPT", "EXISTS", scriptSum("return 7"), scriptSum("return 8")},
		{"SCRIPT", "FLUSH", "ASYNC"},
		{"SCRIPT", "EXISTS", scriptSum("return 7")},
		{"SCRIPT", "EXISTS"},
		{"SCRIPT", "LOAD"},
		{"SCRIPT", "FLUSH", "NOW"},
	} {
		p.same(t, args...)
	}
}

// TestScriptsReadAndWriteNumbersLikeRedis evaluates expressions in both databases.
func TestScriptsReadAndWriteNumbersLikeRedis(t *testing.T) {
	p := newPair(t)
	for _, list := range []string{
		`tonumber('1e2') tonumber('-0x10') tonumber('0x1p4') tonumber('0X1F') tonumber('0x.8') tonumber('0x')
		tonumber('9223372036854775808') tonumber('18446744073709551616') tonumber('0xffffffffffffffffff')
		tonumber('') tonumber('\v12\n') tonumber('1_000') tonumber('0x1_0') tonumber('0b1') tonumber('0o7')
		tonumber('010') tonumber('inf') tonumber('-Infinity') tonumber('1e400') tonumber('1e-400')
		tonumber('1\0') tonumber('12a') tonumber('--5') tonumber('+5') tonumber('5.') tonumber('.5')
		tonumber({}) tonumber(nil) tonumber(5) tonumber('1e2',10) tonumber('zz',36) tonumber('8',8)
		tonumber('ff',16) tonumber('+ff',16) tonumber('-ff',16) tonumber('0x10',16) tonumber(10,16)
		tonumber('1_0',16) tonumber('ffffffffffffffff',16) tonumber('1ffffffffffffffff',16)`,

		`('%g'):format(1/3) ('%g'):format(123456789) ('%G'):format(1e20) ('%.3g'):format(1234567) ('%.g'):format(15)
		('%x'):format(-1) ('%X'):format(-255) ('%o'):format(-8) ('%#x'):format(255) ('%08x'):format(2^53)
		('%u'):format(5) ('%u'):format(-1) ('%i'):format('1.9') ('%d'):format('0x10') ('%5d|'):format(-1.9)
		('%f'):format(1/0) ('%8.1f|'):format(-1/0) ('%08f'):format(1/0) ('%-6g|'):format(0/0) ('%d'):format(1/0)
		('%5.1f'):format('3.14159') ('%e'):format(1.5) ('%.0f'):format(0.5) ('%010.3f'):format(-1.5)
		('%c%5c|'):format(256+65,200) ('%q'):format('a\n"b\\\0c\r') ('%5s'):format('é') ('%.1s'):format('é')
		('%-10.4s|'):format('abcdefg') ('%%%d%%'):format(5) ('%%\255%d\254'):format(1) ('%s'):format(1e15)`,

		`('abc'):find('',10) ('abc'):find('',4) ('abc'):find('',3) ('abc'):find('',-10) ('abc'):find('',10,true)
		(''):find('',2) ('abc'):find('$',9) ('abc'):find('()',9) ('abc'):find('b',-1) ('abc'):find('c',100)
		('a.b'):find('.',2,true) ('abc'):find('(b)(c)',2) ('abc'):match('',10) ('abc'):match('^',9)
		('abc'):match('(b)(c)',2)`,
	} {
		for _, expression := range strings.Fields(list) {
			p.same(t, "EVAL", "local r = {"+expression+"} for i = 1, #r do r[i] = tostring(r[i]) end return r", "0")
		}
	}
	for _, bad := range []string{
		`('%y'):format(1)`, `('%------d'):format(1)`, `('%123d'):format(1)`, `('%.123f'):format(1)`, `('%d'):format('x')`,
		`('%d'):format(nil)`, `('%s'):format(true)`, `('%s'):format()`, `('%'):format(1)`, `tonumber('1',37)`,
		`tonumber()`, `tonumber({},16)`,
	} {
		for _, db := range []DB{p.mem, p.red} {
			if r, failed := db.Do([]string{"EVAL", "return " + bad, "0"}).(Failure); !failed {
				t.Errorf("%T: %s: got %v, want an error", db, bad, r)
			}
		}
	}
}

// TestKeyLocking runs scripts with the service's own flag. Such a
// script has the sum of the text as sent.
func TestKeyLocking(t *testing.T) {
	p := newPair(t)
	for _, script := range []string{
		"#!lua flags=allow-key-locking\nreturn redis.call('INCR', KEYS[1])",
		"#!lua flags=allow-key-locking,allow-oom\nreturn redis.call('INCR', KEYS[1])",
	} {
		for _, db := range []DB{p.mem, p.red} {
			if err := db.Flush(); err != nil {
				t.Fatal(err)
			}
			sum := scriptSum(script)
			for i, step := range []struct {
				args []string
				want Reply
			}{
				{[]string{"EVALSHA", sum, "1", "n"}, errNoScript},
				{[]string{"SCRIPT", "LOAD", script}, Bulk(sum)},
				{[]string{"EVALSHA", sum, "1", "n"}, int64(1)},
				{[]string{"EVAL", script, "1", "n"}, int64(2)},
				{[]string{"SCRIPT", "FLUSH"}, Status("OK")},
				{[]string{"EVAL", script, "1", "n"}, int64(3)},
				{[]string{"EVALSHA", sum, "1", "n"}, int64(4)},
			} {
				if got := db.Do(step.args); got != step.want {
					t.Errorf("%T, step %d: %v, want %v", db, i, got, step.want)
				}
			}
			if got := show(db.Do([]string{"SCRIPT", "EXISTS", sum})); got != "[1]" {
				t.Errorf("%T: SCRIPT EXISTS: got %s, want [1]", db, got)
			}
			got := multi(db, [][]string{{"EVALSHA", sum, "1", "n"}, {"SCRIPT", "LOAD", script}})
			if show(got) != show(Array{int64(5), Bulk(sum)}) {
				t.Errorf("%T: EVALSHA and SCRIPT LOAD in a transaction: got %s, want 5 and %s", db, show(got), sum)
			}
		}
	}
	only := "#!lua flags=no-writes,allow-key-locking\nreturn redis.call('INCR', KEYS[1])"
	for _, db := range []DB{p.mem, p.red} {
		got, _ := db.Do([]string{"EVAL", only, "1", "n"}).(Failure)
		if !strings.HasPrefix(string(got), "ERR Write commands are not allowed from read-only scripts") {
			t.Errorf("%T: a write in a script with no-writes: got %v, want its refusal", db, got)
		}
	}
}

// TestNoKeyExpiresInAScript asks for a key again after a loop that outlasts its
// time to live.
func TestNoKeyExpiresInAScript(t *testing.T) {
	p := newPair(t)
	const script = `local before = redis.call('EXISTS', KEYS[1])
for i = 1, 1e6 do end
return {before, redis.call('EXISTS', KEYS[1])}`
	for _, db := range []DB{p.mem, p.red} {
		db.Do([]string{"SET", "k", "v", "PX", "5"})
		got, _ := db.Do([]string{"EVAL", script, "1", "k"}).(Array)
		if len(got) != 2 || got[0] != got[1] {
			t.Errorf("%T: %v, want the same twice", db, got)
		}
	}
}

// TestCalledCommandsAreCounted checks how both databases count the commands of
// scripts.
func TestCalledCommandsAreCounted(t *testing.T) {
	p := newPair(t)
	for _, step := range []struct {
		cmds [][]string
		want Calls
	}{
		{[][]string{{"SET", "a", "1"}}, Calls{}},
		{[][]string{{"EVAL", "return 1", "0"}}, Calls{}},
		{[][]string{{"EVAL", "redis.call('GET','a') return redis.call('INCR','a')", "0"}}, Calls{1, 1}},
		{[][]string{{"EVAL", "for i = 1, 50 do redis.call('SETBIT','b',i,1) end", "0"}}, Calls{0, 50}},
		{[][]string{{"EVAL", "redis.call('INCR','b') redis.call('GET','a')", "0"}}, Calls{0, 1}},
		{[][]string{{"EVALSHA", scriptSum("return 2"), "0"}}, Calls{}},
		{[][]string{{"GET", "a"}, {"EVAL", "return redis.call('GET','a')", "0"}, {"GET", "a"}}, Calls{1, 0}},
	} {
		for _, db := range []DB{p.mem, p.red} {
			before := db.Called()
			if len(step.cmds) == 1 {
				db.Do(step.cmds[0])
			} else {
				multi(db, step.cmds)
			}
			if got := db.Called().Minus(before); got != step.want {
				t.Errorf("%T: %q: %+v, want %+v", db, step.cmds, got, step.want)
			}
		}
	}
}

// TestBoundedScripts runs scripts whose result or stack has no end.
func TestBoundedScripts(t *testing.T) {
	db := openTestMemory(t)
	deep := "2e4"
	if testenv.Long() {
		deep = "1e6"
	}
	for _, tt := range []struct{ name, script, want string }{
		{"a table in itself", `local t={} t[1]=t return t`, string(errScriptReply)},
		{"a table twice in another", `local t={} for i=1,60 do t={t,t} end return t`, string(errScriptReply)},
		{"a deep table", `local t={} for i=1,` + deep + ` do t={t} end return t`, string(errScriptReply)},
		{"one string often", `local s=string.rep('x',1e8) return {s,s,s,s,s,s}`, string(errScriptReply)},
		{"a string too long for any machine", fmt.Sprintf(`return ('xy'):rep(2^%d)`, strconv.IntSize-2), "output length overflow"},
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

// TestScriptsDifferAsThePageSays runs the points of doc.go in which scripts differ
// from Redis: a point that is none any more leaves the page.
func TestScriptsDifferAsThePageSays(t *testing.T) {
	p := newPair(t)
	for _, c := range []struct{ script, want string }{
		{`return tostring(rawget(_G,'bit') == nil)`, `true`},
		{`return tostring(rawget(_G,'cmsgpack') == nil)`, `true`},
		{`return tostring(rawget(_G,'struct') == nil)`, `true`},
		{`return tostring(redis.REDIS_VERSION == nil)`, `true`},
		{`return tostring(redis.acl_check_cmd == nil)`, `true`},
		{`return tostring(redis.breakpoint == nil)`, `true`},
		{`return tostring(redis.debug == nil)`, `true`},
		{`return tostring(table.foreach == nil)`, `true`},
		{`return tostring(cjson.encode_keep_buffer == nil)`, `true`},
		{`redis.setresp(3) return type(redis.call('HGETALL', 'none').map)`, `nil`},
		{`return tostring(cjson.null == nil)`, `true`},
		{`return tostring(cjson.decode('[null]')[1] == nil)`, `true`},
		{`return cjson.encode(1/3)`, `0.3333333333333333`},
		{`return cjson.encode({})`, `[]`},
		{`return cjson.encode('<>&/')`, `"\u003c\u003e\u0026/"`},
		{`return cjson.encode('\255')`, `"\ufffd"`},
		{`return #cjson.decode('"\255"')`, `3`},
		{`return tostring(pcall(cjson.encode,{[1]=1,[3]=3}))`, `false`},
		{`return tostring(pcall(cjson.encode,{1,a=2}))`, `false`},
		{`return 1/3 .. ''`, `0.3333333333333333`},
		{`return #string.format('%s','a\0b')`, `3`},
		{`return #string.format('%c',0)`, `1`},
		{`return '010' + 0`, `8`},
		{`return '1_0' + 0`, `10`},
		{`return string.gsub('THE (quick) fox','%f[%a]%a+','X')`, `THE (quick) X`},
		{`local n = 0 for _ in string.gmatch('aaa','^a') do n = n + 1 end return n`, `1`},
		{`return tostring(pcall(string.find,'a','%'))`, `true`},
		{`return string.upper('é')`, `É`},
		{`string.x = 1 return string.x`, `1`},
		{`redis.x = 1 return redis.x`, `1`},
		{`local function f(n) if n > 0 then return 1 + f(n-1) end return 0 end return tostring(pcall(f, 256))`, `false`},
		{
			`local function f(n) if n > 0 then local _, x = pcall(f,n-1) return x end return 'deep' end
			return tostring(f(90) == 'deep')`, `false`,
		},
		{`return (`, `ERR Error compiling script (new function): user_script at EOF:   syntax error`},
	} {
		ours, redis := p.mem.Do([]string{"EVAL", c.script, "0"}), p.red.Do([]string{"EVAL", c.script, "0"})
		if fmt.Sprint(ours) != c.want || show(redis) == show(ours) {
			t.Errorf("%s: %s, want %s, and Redis says %s", c.script, show(ours), c.want, show(redis))
		}
	}
}
