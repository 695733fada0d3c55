package database

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	luajson "github.com/alicebob/miniredis/v2/gopher-json"
	lua "github.com/yuin/gopher-lua"
)

// The stack of a script, in values. With it, unpack takes about as many values
// as in Redis, which has 8,000.
const (
	luaStack     = 1 << 10
	luaStackMost = 8000
)

// eval returns EVAL, EVALSHA or one of their read-only forms.
func eval(byName, readOnly bool) func(*Memory, []string) Reply {
	return func(d *Memory, args []string) Reply {
		n, ok := parseInt(args[2])
		switch {
		case !ok:
			return errNotInt
		case n > int64(len(args)-3):
			return errTooManyKeys
		case n < 0:
			return errNegativeKeys
		}
		s, f := d.scriptOf(args[1], byName)
		if f != "" {
			return f
		}
		if readOnly && s.head.mayWrite() {
			return errNotReadOnly
		}
		run := &luaRun{
			db: d, script: s,
			readOnly: readOnly || s.head.has(flagNoWrites),
			full:     d.full && !s.head.has(flagAllowOOM),
		}
		return run.run(args[3:3+n], args[3+n:])
	}
}

// scriptOf returns the script with this text, or with this sum. A full database
// keeps no text that it refuses.
func (d *Memory) scriptOf(text string, byName bool) (*script, Failure) {
	if byName {
		s := d.scripts[strings.ToLower(text)]
		if s == nil {
			return nil, errNoScript
		}
		if d.full && s.head.refusedWhenFull() {
			return nil, ErrFull
		}
		return s, ""
	}
	head, f := parseShebang(text)
	if f == "" && d.full && head.refusedWhenFull() {
		return nil, ErrFull
	}
	return d.load(text)
}

func (d *Memory) load(text string) (*script, Failure) {
	s, f := d.scripts.load(text)
	if f == "" {
		d.written[s.sum] = s
	}
	return s, f
}

// scriptCommand is SCRIPT LOAD, EXISTS and FLUSH.
func (d *Memory) scriptCommand(args []string) Reply {
	switch sub := strings.ToUpper(args[1]); {
	case sub == "LOAD" && len(args) == 3:
		s, f := d.load(args[2])
		if f != "" {
			return f
		}
		return Bulk(s.sum)
	case sub == "EXISTS" && len(args) > 2:
		out := make(Array, len(args)-2)
		for i, sum := range args[2:] {
			out[i] = int64(0)
			if d.scripts[strings.ToLower(sum)] != nil {
				out[i] = int64(1)
			}
		}
		return out
	case sub == "FLUSH" && len(args) <= 3:
		if mode := strings.ToUpper(args[len(args)-1]); len(args) == 3 && mode != "SYNC" && mode != "ASYNC" {
			return errScriptFlush
		}
		clear(d.scripts)
		return Status("OK")
	case sub == "LOAD" || sub == "EXISTS" || sub == "FLUSH":
		return wrongNumber("script|" + strings.ToLower(sub))
	}
	return Failure("ERR unknown subcommand '" + args[1] + "'. Try SCRIPT HELP.")
}

// luaRun is one run of a script.
type luaRun struct {
	db       *Memory
	script   *script
	readOnly bool
	full     bool // refuses what takes memory, until the script has written
}

// run runs the script until it ends, its time is over, or the database closes.
// The last two end it between two of its instructions.
func (r *luaRun) run(keys, argv []string) Reply {
	l := lua.NewState(lua.Options{
		SkipOpenLibs: true, RegistrySize: luaStack, RegistryMaxSize: luaStackMost, RegistryGrowStep: luaStack,
	})
	defer l.Close()
	ctx, cancel := context.WithTimeout(r.db.life, r.db.limits.Timeout)
	defer cancel()
	r.prepare(ctx, l, keys, argv)
	l.SetContext(ctx)
	l.Push(l.NewFunctionFromProto(r.script.code))
	err := l.PCall(0, 1, nil)
	switch {
	case r.db.broken != "":
		return r.db.broken
	case r.db.life.Err() != nil:
		return Lost("ERR the server was closed while a script ran")
	case ctx.Err() != nil:
		return Lost(fmt.Sprintf("ERR a script ran for %v and was ended", r.db.limits.Timeout))
	case err != nil:
		return r.failure(err)
	}
	var size replySize
	reply := size.fromLua(l.Get(-1), 0)
	if size.over {
		return errScriptReply
	}
	return reply
}

// prepare sets the globals, and then makes them read-only as Redis does.
func (r *luaRun) prepare(ctx context.Context, l *lua.LState, keys, argv []string) {
	for _, lib := range []struct {
		name string
		open lua.LGFunction
	}{
		{lua.BaseLibName, lua.OpenBase},
		{lua.TabLibName, lua.OpenTable},
		{lua.StringLibName, lua.OpenString},
		{lua.MathLibName, lua.OpenMath},
		{lua.CoroutineLibName, lua.OpenCoroutine},
	} {
		l.Push(l.NewFunction(lib.open))
		l.Push(lua.LString(lib.name))
		l.Call(1, 0)
	}
	for _, name := range []string{"_printregs", "dofile", "loadfile", "module", "newproxy", "print", "require"} {
		l.SetGlobal(name, lua.LNil)
	}
	l.GetGlobal(lua.MathLibName).(*lua.LTable).RawSetString("huge", lua.LNumber(math.Inf(1)))
	l.SetGlobal("pcall", luaPcall(l))
	luajson.Loader(l)
	l.SetGlobal("cjson", l.Get(-1))
	l.Pop(1)
	likeC(l)
	l.SetGlobal("redis", r.library(l))
	l.SetGlobal("KEYS", luaStrings(l, keys))
	l.SetGlobal("ARGV", luaStrings(l, argv))
	l.SetMetatable(l.G.Global, l.SetFuncs(l.NewTable(), map[string]lua.LGFunction{
		"__index": func(l *lua.LState) int {
			l.RaiseError("Script attempted to access nonexistent global variable '%s'", l.ToString(2))
			return 0
		},
		"__newindex": func(l *lua.LState) int {
			l.RaiseError("Attempt to modify a readonly table")
			return 0
		},
	}))
}

// call is redis.call: an error reply ends the script.
func (r *luaRun) call(l *lua.LState) int {
	reply := r.do(l)
	if f, bad := reply.(error); bad {
		l.Error(luaError(l, f.Error()), 1)
		return 0
	}
	l.Push(toLua(l, reply))
	return 1
}

// pcall is redis.pcall: an error reply is a table.
func (r *luaRun) pcall(l *lua.LState) int {
	l.Push(toLua(l, r.do(l)))
	return 1
}

// do runs a command of a script, within the limits, and counts it.
func (r *luaRun) do(l *lua.LState) Reply {
	args, ok := luaArguments(l)
	if !ok {
		return Failure("ERR Lua redis lib command arguments must be strings or integers")
	}
	if len(args) == 0 {
		return Failure("ERR Please specify at least one argument for this redis lib call")
	}
	name := upper(args[0])
	c, known := inMemory[name]
	byText, byName := runsScript(name)
	switch {
	case byText, byName, name == "SCRIPT", refused[name], blocks(name, args):
		return Failure("ERR This Redis command is not allowed from script")
	case !known:
		return Failure("ERR Unknown Redis command called from script")
	case !c.fits(len(args)):
		return Failure("ERR Wrong number of args calling Redis command from script")
	case r.db.readOnly && ownersOnly[name]:
		return NoPermission(name)
	case r.readOnly && c.write:
		return Failure("ERR Write commands are not allowed from read-only scripts.")
	case r.full && Grows(args):
		return ErrFull
	}
	if f := OverLimit(r.db, args, r.db.limits.MaxRecord); f != "" {
		return f
	}
	r.db.called.add(inMemory, name, 1)
	r.full = r.full && !c.write
	return r.db.Do(args)
}

// failure returns Redis' reply to an error in a script: the text of an error
// reply, or of a Lua error with the code ERR, and the line.
func (r *luaRun) failure(err error) Failure {
	api, ok := errors.AsType[*lua.ApiError](err)
	if !ok {
		return Failure("ERR " + oneLine(err.Error()))
	}
	text, line := "", "1"
	if t, ok := api.Object.(*lua.LTable); ok {
		text = lua.LVAsString(t.RawGetString("err"))
		if s, known := t.RawGetString("line").(lua.LString); known {
			line = string(s)
		}
	} else if api.Object != nil {
		text = "ERR " + api.Object.String()
		_, rest, _ := strings.Cut(text, scriptName+":")
		line, _, _ = strings.Cut(rest, ":")
	}
	return Failure(fmt.Sprintf("%s script: %s, on @%s:%s.", oneLine(text), r.script.sum, scriptName, line))
}

// library returns the table redis of scripts.
func (r luaRun) library(l *lua.LState) *lua.LTable {
	t := l.SetFuncs(l.NewTable(), map[string]lua.LGFunction{
		"call":         r.call,
		"pcall":        r.pcall,
		"error_reply":  luaErrorReply,
		"status_reply": luaStatusReply,
		"sha1hex": func(l *lua.LState) int {
			l.Push(lua.LString(scriptSum(l.CheckString(1))))
			return 1
		},
		"log":     func(*lua.LState) int { return 0 },
		"setresp": func(*lua.LState) int { return 0 }, // replies are as in RESP2
		// Nothing here is replicated.
		"set_repl": func(*lua.LState) int { return 0 },
		"replicate_commands": func(l *lua.LState) int {
			l.Push(lua.LTrue)
			return 1
		},
	})
	for i, name := range []string{"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"} {
		t.RawSetString(name, lua.LNumber(i))
	}
	for name, n := range map[string]int{
		"REPL_NONE": 0, "REPL_AOF": 1, "REPL_SLAVE": 2, "REPL_REPLICA": 2, "REPL_ALL": 3,
	} {
		t.RawSetString(name, lua.LNumber(n))
	}
	return t
}

func luaErrorReply(l *lua.LState) int {
	text := l.CheckString(1)
	if code, ok := strings.CutPrefix(text, "-"); ok {
		text = code
	} else if !strings.Contains(text, " ") {
		text = "ERR " + text
	}
	l.Push(luaField(l, "err", text))
	return 1
}

func luaStatusReply(l *lua.LState) int {
	l.Push(luaField(l, "ok", l.CheckString(1)))
	return 1
}

func luaField(l *lua.LState, name, value string) *lua.LTable {
	t := l.NewTable()
	t.RawSetString(name, lua.LString(value))
	return t
}

// luaError returns the value redis.call throws: the error reply, and the line
// of the call.
func luaError(l *lua.LState, text string) *lua.LTable {
	t := luaField(l, "err", text)
	// Where(1) returns "user_script:3:", the place of the call.
	if _, line, ok := strings.Cut(strings.TrimRight(l.Where(1), ": "), ":"); ok {
		t.RawSetString("source", lua.LString("@"+scriptName))
		t.RawSetString("line", lua.LString(line))
	}
	return t
}

// luaPcall returns a pcall that, as in Redis, returns the text of an error
// reply and not the table.
func luaPcall(l *lua.LState) *lua.LFunction {
	pcall := l.GetGlobal("pcall")
	return l.NewFunction(func(l *lua.LState) int {
		l.Insert(pcall, 1)
		l.Call(l.GetTop()-1, lua.MultRet)
		if t, ok := l.Get(2).(*lua.LTable); ok && l.Get(1) == lua.LFalse {
			if text, ok := t.RawGetString("err").(lua.LString); ok {
				l.Replace(2, text)
			}
		}
		return l.GetTop()
	})
}

func luaStrings(l *lua.LState, list []string) *lua.LTable {
	t := l.CreateTable(len(list), 0)
	for _, s := range list {
		t.Append(lua.LString(s))
	}
	return t
}

// luaArguments returns the arguments of a call. It reports false if one is
// neither a string nor a number.
func luaArguments(l *lua.LState) ([]string, bool) {
	args := make([]string, l.GetTop())
	for i := range args {
		switch v := l.Get(i + 1).(type) {
		case lua.LString:
			args[i] = string(v)
		case lua.LNumber:
			args[i] = luaNumber(float64(v), 17)
		default:
			return nil, false
		}
	}
	return args, true
}

// toLua converts a reply. Null becomes false; a status or an error becomes a
// table.
func toLua(l *lua.LState, r Reply) lua.LValue {
	switch r := r.(type) {
	case int64:
		return lua.LNumber(r)
	case Bulk:
		return lua.LString(r)
	case Status:
		return luaField(l, "ok", string(r))
	case error: // Failure or Lost
		return luaField(l, "err", r.Error())
	case Array:
		t := l.CreateTable(len(r), 0)
		for _, el := range r {
			t.Append(toLua(l, el))
		}
		return t
	}
	return lua.LFalse
}

// replySize bounds the result of a script. A table may hold itself, or one
// table many times.
type replySize struct {
	values, bytes int
	over          bool
}

// The most a script may return.
const (
	mostReplyDepth  = 1000
	mostReplyValues = 1 << 20
	mostReplyBytes  = 512 << 20
)

const errScriptReply = Failure("ERR the reply of the script is too deep or too long")

// fromLua converts the result of a script. A number loses its fraction, and an
// array ends before its first nil.
func (n *replySize) fromLua(v lua.LValue, depth int) Reply {
	n.values++
	n.over = n.over || depth > mostReplyDepth || n.values > mostReplyValues
	if n.over {
		return nil
	}
	switch v := v.(type) {
	case lua.LString:
		n.bytes += len(v)
		n.over = n.over || n.bytes > mostReplyBytes
		return Bulk(v)
	case lua.LNumber:
		return int64(v)
	case lua.LBool:
		if v {
			return int64(1)
		}
	case *lua.LTable:
		if s, ok := v.RawGetString("err").(lua.LString); ok {
			return Failure(oneLine(string(s)))
		}
		if s, ok := v.RawGetString("ok").(lua.LString); ok {
			return Status(oneLine(string(s)))
		}
		out := Array{}
		for i := 1; !n.over; i++ {
			el := v.RawGetInt(i)
			if el == lua.LNil {
				break
			}
			out = append(out, n.fromLua(el, depth+1))
		}
		return out
	}
	return nil
}
