package database

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// likeC makes functions of the libraries read and write numbers, and report
// errors, as the Lua of Redis does.
func likeC(l *lua.LState) {
	str := l.GetGlobal(lua.StringLibName).(*lua.LTable)
	str.RawSetString("format", l.NewFunction(luaFormat))
	for _, name := range []string{"find", "match"} {
		str.RawSetString(name, l.NewFunction(fromWithin(str.RawGetString(name), name == "find")))
	}
	l.GetGlobal(lua.TabLibName).(*lua.LTable).RawSetString("concat", l.NewFunction(luaConcat))
	l.SetGlobal("tonumber", l.NewFunction(luaToNumber))
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

// luaToNumber is tonumber.
func luaToNumber(l *lua.LState) int {
	base := l.OptInt(2, 10)
	if base < 2 || base > 36 {
		l.ArgError(2, "base out of range")
	}
	var n float64
	ok := false
	if base != 10 {
		n, ok = cUnsigned(l.CheckString(1), base)
	} else if v, isNumber := toNumber(l.CheckAny(1)); isNumber {
		n, ok = v, true
	}
	if !ok {
		l.Push(lua.LNil)
		return 1
	}
	l.Push(lua.LNumber(n))
	return 1
}

// toNumber returns a number, or that of a text.
func toNumber(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		return cNumber(string(v))
	}
	return 0, false
}

const cSpace = " \t\n\v\f\r"

// cNumber reads a number as C's strtod does: decimal or hexadecimal, infinite if
// it is too large.
func cNumber(text string) (float64, bool) {
	text = strings.Trim(cString(text), cSpace)
	if isHex(text) && !strings.ContainsAny(text, "pP") {
		text += "p0"
	}
	n, err := strconv.ParseFloat(text, 64)
	ok := err == nil || errors.Is(err, strconv.ErrRange)
	return n, ok && !strings.Contains(text, "_")
}

func isHex(text string) bool {
	text = strings.ToLower(strings.TrimLeft(text, "+-"))
	return strings.HasPrefix(text, "0x")
}

// cUnsigned reads an integer as C's strtoul does. One below 0 is counted from
// 2^64, and one above becomes the largest.
func cUnsigned(text string, base int) (float64, bool) {
	text = strings.Trim(cString(text), cSpace)
	digits, negative := strings.CutPrefix(strings.TrimPrefix(text, "+"), "-")
	if base == 16 && isHex(digits) {
		digits = digits[2:]
	}
	n, err := strconv.ParseUint(digits, base, 64)
	if negative {
		n = -n
	}
	return float64(n), err == nil || errors.Is(err, strconv.ErrRange)
}

// formatItem is one item of string.format: flags, width, precision and verb. A
// sixth flag or a third digit is taken for the verb, and refused.
var formatItem = regexp.MustCompile(`(?s)%([-+ #0]{0,5})([0-9]{0,2})(\.[0-9]{0,2})?(.?)`)

// luaQuotes is what %q replaces.
var luaQuotes = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", "\\\n", "\r", `\r`, "\x00", `\000`)

// luaFormat is string.format.
func luaFormat(l *lua.LState) int {
	argument := 1
	text := formatItem.ReplaceAllStringFunc(l.CheckString(1), func(item string) string {
		if item == "%%" {
			return "%"
		}
		argument++
		m := formatItem.FindStringSubmatch(item)
		return formatOne(l, argument, m[1], m[2], m[3], m[4])
	})
	l.Push(lua.LString(text))
	return 1
}

// formatOne writes an argument. Package fmt counts runes where C counts bytes, so
// it gets each byte as a rune.
func formatOne(l *lua.LState, argument int, flags, width, precision, verb string) string {
	spec := "%" + flags + width + precision
	switch verb {
	case "d", "i":
		return fmt.Sprintf(spec+"d", integerAt(l, argument))
	case "u":
		return fmt.Sprintf(spec+"d", uint64(integerAt(l, argument)))
	case "o", "x", "X":
		return fmt.Sprintf(spec+verb, uint64(integerAt(l, argument)))
	case "c":
		return toBytes(fmt.Sprintf(spec+"c", rune(byte(integerAt(l, argument)))))
	case "e", "E", "f", "g", "G":
		n := numberAt(l, argument)
		if math.IsInf(n, 0) || math.IsNaN(n) {
			return fmt.Sprintf("%"+strings.ReplaceAll(flags, "0", "")+width+"s", luaNumber(n, 0))
		}
		if precision == "" {
			spec += ".6"
		}
		return fmt.Sprintf(spec+verb, n)
	case "q":
		return `"` + luaQuotes.Replace(l.CheckString(argument)) + `"`
	case "s":
		l.Replace(argument, withText(l.CheckAny(argument)))
		text := l.CheckString(argument)
		if spec == "%" {
			return text
		}
		return toBytes(fmt.Sprintf(spec+"s", toRunes(text)))
	}
	l.RaiseError("invalid option '%%%s%s%s%s' to 'format'", flags, width, precision, verb)
	return ""
}

// integerAt is numberAt without its fraction. What has no such integer is the
// smallest one, as on amd64: Go leaves that to the processor.
func integerAt(l *lua.LState, n int) int64 {
	if x := numberAt(l, n); x >= math.MinInt64 && x < 1<<63 {
		return int64(x)
	}
	return math.MinInt64
}

// numberAt returns an argument that is a number, or the text of one.
func numberAt(l *lua.LState, argument int) float64 {
	if n, ok := toNumber(l.Get(argument)); ok {
		return n
	}
	return float64(l.CheckNumber(argument)) // raises the error
}

// toRunes makes a rune of each byte, and toBytes a byte of each rune.
func toRunes(text string) string {
	out := make([]rune, len(text))
	for i := range len(text) {
		out[i] = rune(text[i])
	}
	return string(out)
}

func toBytes(text string) string {
	out := make([]byte, 0, len(text))
	for _, r := range text {
		out = append(out, byte(r))
	}
	return string(out)
}

// fromWithin returns string.find or string.match. They begin behind the text at
// most. The library's own find an empty pattern at the beginning only.
func fromWithin(f lua.LValue, isFind bool) lua.LGFunction {
	return func(l *lua.LState) int {
		text, pattern, from := l.CheckString(1), l.CheckString(2), l.OptInt(3, 1)
		if from < 0 {
			from += len(text) + 1
		}
		from = min(max(from, 1), len(text)+1)
		if isFind && pattern == "" {
			l.Push(lua.LNumber(from))
			l.Push(lua.LNumber(from - 1))
			return 2
		}
		l.SetTop(4)
		l.Replace(3, lua.LNumber(from))
		l.Insert(f, 1)
		l.Call(4, lua.MultRet)
		return l.GetTop()
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
