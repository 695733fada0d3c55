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

// scriptName is what errors call a script, as in Redis.
const scriptName = "user_script"

// script is a compiled script.
type script struct {
	sum  string
	head shebang
	code *lua.FunctionProto
}

// scripts holds the scripts of EVAL and SCRIPT LOAD by their sums.
type scripts map[string]*script

// load returns a script by its text, and compiles it if it is new.
func (all scripts) load(text string) (*script, Failure) {
	sum := scriptSum(text)
	if s := all[sum]; s != nil {
		return s, ""
	}
	head, f := parseShebang(text)
	if f != "" {
		return nil, f
	}
	code, err := compile(head.body, scriptName)
	if err != nil {
		return nil, Failure("ERR Error compiling script (new function): " + oneLine(err.Error()))
	}
	s := &script{sum: sum, head: head, code: code}
	all[sum] = s
	return s, ""
}

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
		switch {
		case s == nil:
			return nil, errNoScript
		case d.full && s.head.refusedWhenFull():
			return nil, ErrFull
		}
		return s, ""
	}
	head, f := parseShebang(text)
	if f == "" && d.full && head.refusedWhenFull() {
		return nil, ErrFull
	}
	return d.scripts.load(text)
}

// scriptCommand is SCRIPT LOAD, EXISTS and FLUSH.
func (d *Memory) scriptCommand(args []string) Reply {
	switch sub := strings.ToUpper(args[1]); {
	case sub == "LOAD" && len(args) == 3:
		s, f := d.scripts.load(args[2])
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
		SkipOpenLibs: true, RegistrySize: luaStack, RegistryMaxSize: luaStackMost,
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
	name := strings.ToUpper(args[0])
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
	var api *lua.ApiError
	if !errors.As(err, &api) {
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

// oneLine returns s without line breaks, which an error reply cannot have.
func oneLine(s string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(strings.TrimSpace(s))
}
