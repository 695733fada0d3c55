package database

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

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
		"setresp": func(*lua.LState) int { return 0 }, // replies are those of RESP2
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

// luaNumber writes a number as C does with this many digits: 17 for a command,
// 14 for the text of a script.
func luaNumber(n float64, digits int) string {
	switch {
	case math.IsInf(n, 1):
		return "inf"
	case math.IsInf(n, -1):
		return "-inf"
	case math.IsNaN(n) && math.Signbit(n):
		return "-nan"
	case math.IsNaN(n):
		return "nan"
	}
	return strconv.FormatFloat(n, 'g', digits, 64)
}

// withText returns a number's text, and any other value as it is.
func withText(v lua.LValue) lua.LValue {
	if n, ok := v.(lua.LNumber); ok {
		return lua.LString(luaNumber(float64(n), 14))
	}
	return v
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
	if n.over = n.over || depth > mostReplyDepth || n.values > mostReplyValues; n.over {
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
