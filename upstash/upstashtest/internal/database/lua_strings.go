package database

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// compile compiles a script.
func compile(body, name string) (*lua.FunctionProto, error) {
	chunk, err := parse.Parse(strings.NewReader(body), name)
	if err != nil {
		return nil, err
	}
	return lua.Compile(chunk, name)
}

// likeC makes functions of the libraries write numbers and report errors as the
// Lua of Redis does.
func likeC(l *lua.LState) {
	str := l.GetGlobal(lua.StringLibName).(*lua.LTable)
	format := str.RawGetString("format")
	str.RawSetString("format", l.NewFunction(func(l *lua.LState) int {
		writeNumbers(l)
		l.Insert(format, 1)
		l.Call(l.GetTop()-1, lua.MultRet)
		return l.GetTop()
	}))
	l.GetGlobal(lua.TabLibName).(*lua.LTable).RawSetString("concat", l.NewFunction(luaConcat))
	tostring := l.GetGlobal("tostring")
	l.SetGlobal("tostring", l.NewFunction(func(l *lua.LState) int {
		l.Insert(tostring, 1)
		if l.GetTop() > 1 {
			l.Replace(2, withText(l.Get(2)))
		}
		l.Call(l.GetTop()-1, 1)
		return 1
	}))
	json := l.GetGlobal("cjson").(*lua.LTable)
	for _, name := range []string{"encode", "decode"} {
		json.RawSetString(name, l.NewFunction(orFail(json.RawGetString(name))))
	}
}

// writeNumbers turns the numbers among the arguments of string.format for %s
// into text.
func writeNumbers(l *lua.LState) {
	format, ok := l.Get(1).(lua.LString)
	if !ok {
		return
	}
	argument := 1
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		for i++; i < len(format) && strings.IndexByte("-+ #0123456789.", format[i]) >= 0; i++ {
		}
		if i == len(format) || format[i] == '%' {
			continue
		}
		if argument++; format[i] == 's' && argument <= l.GetTop() {
			l.Replace(argument, withText(l.Get(argument)))
		}
	}
}

// luaConcat is table.concat.
func luaConcat(l *lua.LState) int {
	t, between := l.CheckTable(1), l.OptString(2, "")
	from, to := l.OptInt(3, 1), l.OptInt(4, t.Len())
	var out strings.Builder
	for i := from; i <= to; i++ {
		v := withText(t.RawGetInt(i))
		text, ok := v.(lua.LString)
		if !ok {
			l.RaiseError("invalid value (%s) at index %d in table for 'concat'", v.Type(), i)
		}
		out.WriteString(string(text))
		if i < to {
			out.WriteString(between)
		}
	}
	l.Push(lua.LString(out.String()))
	return 1
}

// orFail turns f's results nil and a text into an error of that text.
func orFail(f lua.LValue) lua.LGFunction {
	return func(l *lua.LState) int {
		l.Insert(f, 1)
		l.Call(l.GetTop()-1, 2)
		if text, failed := l.Get(-1).(lua.LString); failed && l.Get(-2) == lua.LNil {
			l.RaiseError("%s", string(text))
		}
		l.Pop(1)
		return 1
	}
}
