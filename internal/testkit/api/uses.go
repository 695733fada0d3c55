//go:build api

package api

import (
	"go/ast"
	"go/types"
)

// used returns the names in use in a declaration, each as import path, a dot
// and the name in the package. A method belongs to the type through which it is
// called, a field to the struct that declares it.
func used(d ast.Decl, info *types.Info) map[string]bool {
	found := make(map[string]bool)
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if s, ok := info.Selections[n]; ok {
				selected(s, found)
			}
		case *ast.CompositeLit:
			written(n, info, found)
		case *ast.Ident:
			o := info.Uses[n]
			if o == nil || o.Pkg() == nil || o.Parent() != o.Pkg().Scope() {
				break
			}
			found[o.Pkg().Path()+"."+o.Name()] = true
			for _, name := range typesOf(o) { // Unit by Byte
				found[name] = true
			}
		}
		return true
	})
	return found
}

// selected adds the type and the method or field of a selector, and the fields
// on the way to them.
func selected(s *types.Selection, found map[string]bool) {
	t := s.Recv()
	if key := nameOf(t); key != "" {
		found[key] = true
		if s.Kind() != types.FieldVal {
			found[key+"."+s.Obj().Name()] = true
		}
	}
	path := s.Index()
	if s.Kind() != types.FieldVal {
		path = path[:len(path)-1]
	}
	for _, i := range path {
		under, ok := pointed(t).Underlying().(*types.Struct)
		if !ok {
			return
		}
		if key := nameOf(t); key != "" {
			found[key], found[key+"."+under.Field(i).Name()] = true, true
		}
		t = under.Field(i).Type()
	}
}

// written adds the fields in a literal of a struct.
func written(n *ast.CompositeLit, info *types.Info, found map[string]bool) {
	t := info.TypeOf(n)
	if t == nil {
		return
	}
	key := nameOf(t)
	under, ok := pointed(t).Underlying().(*types.Struct)
	if key == "" || !ok {
		return
	}
	found[key] = true
	for i, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if field, ok := kv.Key.(*ast.Ident); ok {
				found[key+"."+field.Name] = true
			}
		} else if i < under.NumFields() {
			found[key+"."+under.Field(i).Name()] = true
		}
	}
}

func pointed(t types.Type) types.Type {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

// nameOf returns the name of a type, or of the type it points to, or "".
func nameOf(t types.Type) string {
	if named, ok := types.Unalias(pointed(t)).(*types.Named); ok && named.Obj().Pkg() != nil {
		return named.Obj().Pkg().Path() + "." + named.Obj().Name()
	}
	return ""
}

// typesOf returns the names of an object's types: a constant's or variable's
// type, or those of a function's results.
func typesOf(o types.Object) (names []string) {
	list := []types.Type{o.Type()}
	if f, ok := o.(*types.Func); ok {
		list = nil
		for v := range f.Signature().Results().Variables() {
			list = append(list, v.Type())
		}
	}
	for _, t := range list {
		if name := nameOf(t); name != "" {
			names = append(names, name)
		}
	}
	return names
}
