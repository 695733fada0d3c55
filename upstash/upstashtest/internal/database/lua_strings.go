package database

import (
	"context"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// mostString is the longest string a script may make, in bytes.
const mostString = 128 << 20

// boundStrings replaces the functions of the string and table libraries whose
// time or memory has no bound of its own.
func boundStrings(ctx context.Context, l *lua.LState) {
	p := patterns{stop: ctx.Err}
	str := l.GetGlobal(lua.StringLibName).(*lua.LTable)
	l.SetFuncs(str, map[string]lua.LGFunction{
		"find":   p.find,
		"match":  p.first,
		"gmatch": p.all,
		"gfind":  p.all,
		"gsub":   p.replace,
		"rep":    luaRepeat,
	})
	str.RawSetString("format", l.NewFunction(within(str.RawGetString("format"), func(l *lua.LState) int {
		writeNumbers(l)
		size := 0
		for i := 1; i <= l.GetTop(); i++ {
			size += len(l.ToString(i))
		}
		return size
	})))
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
		tooLong(l, out.Len())
	}
	l.Push(lua.LString(out.String()))
	return 1
}

// tooLong ends a script that would make a string of more than mostString
// bytes.
func tooLong(l *lua.LState, size int) {
	if size > mostString {
		l.RaiseError("a string of more than %d bytes", mostString)
	}
}

// within returns a function that fails if the size of its result, computed in
// advance, is too large.
func within(f lua.LValue, size func(*lua.LState) int) lua.LGFunction {
	return func(l *lua.LState) int {
		tooLong(l, size(l))
		l.Insert(f, 1)
		l.Call(l.GetTop()-1, lua.MultRet)
		return l.GetTop()
	}
}

func luaRepeat(l *lua.LState) int {
	text, n := l.CheckString(1), l.CheckNumber(2)
	if n < 1 || text == "" {
		l.Push(lua.LString(""))
		return 1
	}
	if float64(n)*float64(len(text)) > mostString {
		tooLong(l, mostString+1)
	}
	l.Push(lua.LString(strings.Repeat(text, int(n))))
	return 1
}

// patterns has the functions of the string library that take a pattern.
type patterns struct{ stop func() error }

// matcher parses the pattern at an argument. anchored reports whether it only
// matches at the start.
func (p patterns) matcher(l *lua.LState, src, pattern string, anchors bool) (m *matcher, anchored bool) {
	if anchors {
		pattern, anchored = strings.CutPrefix(pattern, "^")
	}
	items, err := parsePattern(pattern)
	if err != nil {
		l.RaiseError("%v", err)
	}
	return &matcher{src: src, items: items, stop: p.stop}, anchored
}

// next finds the first match from s on.
func (m *matcher) next(l *lua.LState, s int, anchored bool) (start, end int) {
	for ; s <= len(m.src); s++ {
		end := m.at(s)
		if m.err != nil {
			l.RaiseError("%v", m.err)
		}
		if end >= 0 {
			return s, end
		}
		if anchored {
			break
		}
	}
	return 0, -1
}

// value returns a capture as Lua has it.
func (m *matcher) value(l *lua.LState, c capture) lua.LValue {
	switch c.len {
	case captureOpen:
		l.RaiseError("unfinished capture")
	case capturePosition:
		return lua.LNumber(c.start + 1)
	}
	return lua.LString(m.text(c))
}

// push pushes the captures, or the whole match if there are none.
func (m *matcher) push(l *lua.LState, start, end int) int {
	if len(m.captures) == 0 {
		l.Push(lua.LString(m.src[start:end]))
		return 1
	}
	for _, c := range m.captures {
		l.Push(m.value(l, c))
	}
	return len(m.captures)
}

// from returns where a search begins: the third argument, counted from 1, or
// from the end if it is negative.
func from(l *lua.LState, src string) int {
	n := l.OptInt(3, 1)
	if n < 0 {
		n += len(src) + 1
	}
	return min(max(n-1, 0), len(src))
}

func (p patterns) find(l *lua.LState) int {
	src, pattern := l.CheckString(1), l.CheckString(2)
	at := from(l, src)
	if l.ToBool(4) || !strings.ContainsAny(pattern, "^$*+?.([%-") {
		i := strings.Index(src[at:], pattern)
		if i < 0 {
			l.Push(lua.LNil)
			return 1
		}
		l.Push(lua.LNumber(at + i + 1))
		l.Push(lua.LNumber(at + i + len(pattern)))
		return 2
	}
	m, anchored := p.matcher(l, src, pattern, true)
	start, end := m.next(l, at, anchored)
	if end < 0 {
		l.Push(lua.LNil)
		return 1
	}
	l.Push(lua.LNumber(start + 1))
	l.Push(lua.LNumber(end))
	if len(m.captures) == 0 {
		return 2
	}
	return 2 + m.push(l, start, end)
}

func (p patterns) first(l *lua.LState) int {
	src := l.CheckString(1)
	m, anchored := p.matcher(l, src, l.CheckString(2), true)
	start, end := m.next(l, from(l, src), anchored)
	if end < 0 {
		l.Push(lua.LNil)
		return 1
	}
	return m.push(l, start, end)
}

// all is gmatch. An iterator has no anchor: ^ stands for itself.
func (p patterns) all(l *lua.LState) int {
	m, _ := p.matcher(l, l.CheckString(1), l.CheckString(2), false)
	at := 0
	l.Push(l.NewFunction(func(l *lua.LState) int {
		start, end := m.next(l, at, false)
		if end < 0 {
			at = len(m.src) + 1
			return 0
		}
		if at = end; start == end {
			at++
		}
		return m.push(l, start, end)
	}))
	return 1
}

func (p patterns) replace(l *lua.LState) int {
	src := l.CheckString(1)
	m, anchored := p.matcher(l, src, l.CheckString(2), true)
	most := l.OptInt(4, len(src)+1)
	with := l.Get(3)
	switch with.Type() {
	case lua.LTString, lua.LTNumber, lua.LTTable, lua.LTFunction:
	default:
		l.ArgError(3, fmt.Sprintf("string/function/table expected, got %s", with.Type()))
	}
	var out strings.Builder
	n, s := 0, 0
	for n < most {
		end := m.at(s)
		if m.err != nil {
			l.RaiseError("%v", m.err)
		}
		if end >= 0 {
			n++
			m.replacement(l, &out, with, s, end)
			tooLong(l, out.Len())
		}
		switch {
		case end > s:
			s = end
		case s < len(src):
			out.WriteByte(src[s])
			s++
		default:
			most = n
		}
		if anchored {
			break
		}
	}
	out.WriteString(src[s:])
	tooLong(l, out.Len())
	l.Push(lua.LString(out.String()))
	l.Push(lua.LNumber(n))
	return 2
}

// replacement writes what stands for a match.
func (m *matcher) replacement(l *lua.LState, out *strings.Builder, with lua.LValue, start, end int) {
	var v lua.LValue
	switch with := with.(type) {
	case *lua.LTable:
		key := lua.LValue(lua.LString(m.src[start:end]))
		if len(m.captures) > 0 {
			key = m.value(l, m.captures[0])
		}
		v = l.GetTable(with, key)
	case *lua.LFunction:
		l.Push(with)
		l.Call(m.push(l, start, end), 1)
		v = l.Get(-1)
		l.Pop(1)
	default:
		m.expand(l, out, lua.LVAsString(with), start, end)
		return
	}
	switch {
	case lua.LVIsFalse(v):
		out.WriteString(m.src[start:end])
	case lua.LVCanConvToString(v):
		out.WriteString(lua.LVAsString(v))
	default:
		l.RaiseError("invalid replacement value (a %s)", v.Type())
	}
}

// expand writes a replacement with its %0 to %9.
func (m *matcher) expand(l *lua.LState, out *strings.Builder, text string, start, end int) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '%' {
			c = 0 // of a % at the end, as in Redis
			if i++; i < len(text) {
				c = text[i]
			}
			switch n := int(c) - '1'; {
			case c == '0' || c == '1' && len(m.captures) == 0:
				out.WriteString(m.src[start:end])
				continue
			case isDigit(c) && n >= len(m.captures):
				l.RaiseError("invalid capture index")
			case isDigit(c):
				out.WriteString(lua.LVAsString(m.value(l, m.captures[n])))
				continue
			}
		}
		out.WriteByte(c)
	}
}
