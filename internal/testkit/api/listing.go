//go:build api

package api

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// Listing returns a sorted line for each export of the package, without the
// names of parameters. A method of an embedded type counts as the outer type's.
func Listing(p *types.Package) []string {
	l := lister{pkg: p}
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			l.object(o)
		}
	}
	slices.Sort(l.lines)
	return l.lines
}

type lister struct {
	pkg   *types.Package
	lines []string
}

func (l *lister) add(format string, args ...any) {
	l.lines = append(l.lines, "pkg "+strings.TrimPrefix(l.pkg.Path(), module)+", "+fmt.Sprintf(format, args...))
}

// text writes a type. Types of the package itself are not qualified.
func (l *lister) text(t types.Type) string {
	if s, ok := t.(*types.Signature); ok {
		return "func" + l.signature(s)
	}
	return types.TypeString(t, func(p *types.Package) string {
		if p == l.pkg {
			return ""
		}
		return p.Name()
	})
}

// signature writes parameters and results without their names.
func (l *lister) signature(s *types.Signature) string {
	list := func(t *types.Tuple, variadic bool) string {
		var parts []string
		for i := range t.Len() {
			if text := l.text(t.At(i).Type()); variadic && i == t.Len()-1 {
				parts = append(parts, "..."+strings.TrimPrefix(text, "[]"))
			} else {
				parts = append(parts, text)
			}
		}
		return strings.Join(parts, ", ")
	}
	results := list(s.Results(), false)
	if s.Results().Len() > 1 {
		results = "(" + results + ")"
	}
	return strings.TrimRight("("+list(s.Params(), s.Variadic())+") "+results, " ")
}

func (l *lister) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		l.add("const %s %s = %s", o.Name(), l.text(o.Type()), o.Val().ExactString())
	case *types.Var:
		l.add("var %s %s", o.Name(), l.text(o.Type()))
	case *types.Func:
		l.add("func %s%s", o.Name(), l.signature(o.Signature()))
	case *types.TypeName:
		l.named(o)
	}
}

func (l *lister) named(o *types.TypeName) {
	if o.IsAlias() {
		l.add("type %s = %s", o.Name(), l.text(types.Unalias(o.Type())))
		return
	}
	switch under := o.Type().Underlying().(type) {
	case *types.Struct:
		comparable := "not comparable"
		if types.Comparable(under) {
			comparable = "comparable"
		}
		l.add("type %s struct, %s", o.Name(), comparable)
		for _, f := range fields(o) {
			l.add("field %s.%s %s", o.Name(), f.Name(), l.text(f.Type()))
		}
	case *types.Interface:
		closed := ""
		for m := range under.Methods() {
			if !m.Exported() {
				closed = ", with methods that are not exported"
			}
		}
		l.add("type %s interface%s", o.Name(), closed)
		for m := range under.Methods() {
			if m.Exported() {
				l.add("method %s.%s%s", o.Name(), m.Name(), l.signature(m.Signature()))
			}
		}
		return
	default:
		l.add("type %s %s", o.Name(), l.text(under))
	}
	ofValue := types.NewMethodSet(o.Type())
	for _, m := range methods(o) {
		receiver := "*"
		if ofValue.Lookup(l.pkg, m.Name()) != nil {
			receiver = ""
		}
		l.add("method (%s%s) %s%s", receiver, o.Name(), m.Name(), l.signature(m.Signature()))
	}
}

// fields returns the exported fields of a type if it is a struct.
func fields(o *types.TypeName) (list []*types.Var) {
	if under, ok := o.Type().Underlying().(*types.Struct); ok {
		for f := range under.Fields() {
			if f.Exported() {
				list = append(list, f)
			}
		}
	}
	return list
}

// methods returns the exported methods of a type and of its pointer.
func methods(o *types.TypeName) (list []*types.Func) {
	t := o.Type()
	if !types.IsInterface(t) {
		t = types.NewPointer(t)
	}
	for s := range types.NewMethodSet(t).Methods() {
		if m := s.Obj().(*types.Func); m.Exported() {
			list = append(list, m)
		}
	}
	return list
}
