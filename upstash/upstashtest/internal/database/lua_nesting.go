package database

import (
	"context"
	"errors"
	"reflect"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

const (
	// mostLevels is how deep a script's text may be nested. It bounds the depth
	// of the compiler's stack: Go ends a process whose stack is too large.
	mostLevels = 10_000
	// mostText is the longest text to compile, in bytes. The parser cannot be
	// interrupted.
	mostText = 1 << 20
	// mostCoroutines is how many coroutines a script may make.
	mostCoroutines = 1000
	// mostJSONLevels is the deepest table for cjson.encode, as in Redis.
	mostJSONLevels = 1000
	// mostJSONWork bounds the product of a table's depth and length: the
	// encoder copies a value once for each level around it.
	mostJSONWork = 1 << 30
	// concatCheck names the function that checks each result of the operator
	// "..", and concatText the one that writes its numbers. A script cannot write
	// the names, because of their NUL.
	concatCheck = "\x00concat"
	concatText  = "\x00text"
)

var (
	errLevels = errors.New("chunk has too many syntax levels")
	errText   = errors.New("chunk has too many bytes")
)

// compile compiles a script or a part of one.
func compile(body, name string) (*lua.FunctionProto, error) {
	if len(body) > mostText {
		return nil, errText
	}
	chunk, err := parse.Parse(strings.NewReader(body), name)
	if err != nil {
		return nil, err
	}
	if err := rewrite(reflect.ValueOf(chunk), 0); err != nil {
		return nil, err
	}
	return lua.Compile(chunk, name)
}

// rewrite checks how deep a part of a script is nested, and puts each
// concatenation into a call of concatCheck, and its operands into concatText.
func rewrite(v reflect.Value, depth int) error {
	if depth > mostLevels {
		return errLevels
	}
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			if err := rewrite(v.Index(i), depth); err != nil {
				return err
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return rewrite(v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Anonymous { // the line numbers
				continue
			}
			if err := rewrite(v.Field(i), depth); err != nil {
				return err
			}
		}
	case reflect.Interface:
		if v.IsNil() {
			return nil
		}
		err := rewrite(v.Elem(), depth)
		if concat, ok := v.Interface().(*ast.StringConcatOpExpr); ok {
			concat.Lhs, concat.Rhs = written(concat.Lhs), written(concat.Rhs)
			v.Set(reflect.ValueOf(called(concatCheck, concat)))
		}
		return err
	}
	return nil
}

// written returns the call of the function that writes a number, or operand if
// it cannot be a number.
func written(operand ast.Expr) ast.Expr {
	switch e := operand.(type) {
	case *ast.StringExpr:
		return e
	case *ast.FuncCallExpr:
		if f, ok := e.Func.(*ast.IdentExpr); ok && f.Value == concatCheck {
			return e
		}
	}
	return called(concatText, operand)
}

// called returns the call of a function with one argument.
func called(name string, argument ast.Expr) ast.Expr {
	f := &ast.IdentExpr{Value: name}
	call := &ast.FuncCallExpr{Func: f, Args: []ast.Expr{argument}}
	for _, e := range []ast.Expr{f, call} {
		e.SetLine(argument.Line())
		e.SetLastLine(argument.LastLine())
	}
	return call
}

// boundNesting replaces the functions for text or tables of any depth, and adds
// concatCheck.
func boundNesting(ctx context.Context, l *lua.LState) {
	l.SetGlobal(concatCheck, l.NewFunction(func(l *lua.LState) int {
		if s, ok := l.Get(1).(lua.LString); ok {
			tooLong(l, len(s))
		}
		return 1
	}))
	l.SetGlobal(concatText, l.NewFunction(func(l *lua.LState) int {
		l.Push(withText(l.Get(1)))
		return 1
	}))
	l.SetGlobal("loadstring", l.NewFunction(func(l *lua.LState) int {
		return luaLoad(l, l.CheckString(1), l.OptString(2, "<string>"))
	}))
	l.SetGlobal("load", l.NewFunction(luaLoadParts))
	boundCoroutines(l)
	json := l.GetGlobal("cjson").(*lua.LTable)
	json.RawSetString("encode", l.NewFunction(within(json.RawGetString("encode"), func(l *lua.LState) int {
		n := jsonSize{ctx: ctx}
		n.add(l.Get(1), 1)
		if n.depth > mostJSONLevels {
			l.RaiseError("Cannot serialise, excessive depth (%d)", n.depth)
		}
		if n.heavy() {
			l.RaiseError("Cannot serialise, too long for its depth (%d)", n.depth)
		}
		return n.size
	})))
	for _, name := range []string{"encode", "decode"} {
		json.RawSetString(name, l.NewFunction(orFail(json.RawGetString(name))))
	}
}

// orFail returns a function that fails as that of Redis if f returns nil and an
// error.
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

// boundCoroutines bounds the number of a script's coroutines. A coroutine that
// resumes another takes more of Go's stack.
func boundCoroutines(l *lua.LState) {
	made := 0
	lib := l.GetGlobal(lua.CoroutineLibName).(*lua.LTable)
	for _, name := range []string{"create", "wrap"} {
		lib.RawSetString(name, l.NewFunction(within(lib.RawGetString(name), func(l *lua.LState) int {
			if made++; made > mostCoroutines {
				l.RaiseError("more than %d coroutines", mostCoroutines)
			}
			return 0
		})))
	}
}

// luaLoad is loadstring.
func luaLoad(l *lua.LState, text, name string) int {
	code, err := compile(text, name)
	if err != nil {
		l.Push(lua.LNil)
		l.Push(lua.LString(err.Error()))
		return 2
	}
	l.Push(l.NewFunctionFromProto(code))
	return 1
}

// luaLoadParts is load: it calls a function for each part of the text.
func luaLoadParts(l *lua.LState) int {
	next, name := l.CheckFunction(1), l.OptString(2, "=(load)")
	var text strings.Builder
	for {
		l.Push(next)
		l.Call(0, 1)
		part := l.Get(-1)
		l.Pop(1)
		if part == lua.LNil || part == lua.LString("") {
			return luaLoad(l, text.String(), name)
		}
		if !lua.LVCanConvToString(part) {
			l.Push(lua.LNil)
			l.Push(lua.LString("reader function must return a string"))
			return 2
		}
		text.WriteString(lua.LVAsString(part))
		tooLong(l, text.Len())
	}
}

// jsonSize is the depth and about the length of a value in JSON.
type jsonSize struct {
	ctx         context.Context
	depth, size int
}

// add counts v at depth. It stops when the value is known to be too large.
func (n *jsonSize) add(v lua.LValue, depth int) {
	n.depth = max(n.depth, depth)
	n.size += 3
	switch v := v.(type) {
	case lua.LString:
		n.size += len(v)
	case lua.LNumber:
		n.size += 20
	case *lua.LTable:
		v.ForEach(func(key, value lua.LValue) {
			if n.depth <= mostJSONLevels && !n.heavy() && n.ctx.Err() == nil {
				n.size += len(lua.LVAsString(key))
				n.add(value, depth+1)
			}
		})
	}
}

func (n *jsonSize) heavy() bool { return int64(n.size)*int64(n.depth) > mostJSONWork }
