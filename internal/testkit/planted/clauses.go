package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A side is one side of an && or ||. A side that is itself such an operation of
// the same kind is not one, but its sides are.
type side struct {
	in   string // the function
	at   string // file and line
	op   token.Token
	text string
}

// neutralize makes each side in files whose names match decide nothing, one after
// another, runs the package's tests of these names, and reports whether each that
// they let through is explained.
func (t *tree) neutralize(pkg string, files *regexp.Regexp, tests, dir string) (ok bool, err error) {
	sources, err := t.sources(pkg)
	if err != nil {
		return false, err
	}
	explained, err := readExplained()
	if err != nil {
		return false, err
	}
	var sides []side
	touched := map[*source]bool{}
	for _, s := range sources {
		if !files.MatchString(filepath.Base(s.path)) {
			continue
		}
		s.sides(func(x side, n ast.Expr) {
			name := strconv.Itoa(len(sides))
			sides = append(sides, x)
			tail := " || chooser.Is(" + strconv.Quote(name) + "))"
			if x.op == token.LOR {
				tail = " && !chooser.Is(" + strconv.Quote(name) + "))"
			}
			a, z := s.offset(n.Pos()), s.offset(n.End())
			s.edits = append(s.edits, edit{at: a, end: a, text: "((", size: z - a},
				edit{at: z, end: z, text: ")" + tail, closes: true, size: z - a})
			touched[s] = true
		})
	}
	if len(sides) == 0 {
		return false, fmt.Errorf("no file of %s with a side of && or || matches %s", pkg, files)
	}
	overlay, err := t.write(touched, dir)
	if err != nil {
		return false, err
	}
	if err := t.build(overlay, dir, []string{pkg}); err != nil {
		return false, err
	}
	if out, err := t.run(dir, pkg, tests, ""); err != nil {
		return false, fmt.Errorf("the tests fail as they are: %s", last(out))
	}
	passed := make([]bool, len(sides))
	each(len(sides), func(i int) {
		out, err := t.run(dir, pkg, tests, strconv.Itoa(i), "-test.failfast")
		passed[i] = !found(out, err)
	})
	through, unexplained := 0, 0
	for i, x := range sides {
		if !passed[i] {
			continue
		}
		through++
		why, known := explained[explainedKey{pkg, x.in, x.text}]
		if !known {
			unexplained++
			why = "NOT EXPLAINED"
		}
		fmt.Printf("%s %s, a side of %s: %s\n    %s\n", x.at, x.in, x.op, x.text, why)
	}
	fmt.Printf("%d of %d sides are found, %d are explained, %d are not\n",
		len(sides)-through, len(sides), through-unexplained, unexplained)
	return unexplained == 0, nil
}

// sides calls do for each side in the functions of a file.
func (s *source) sides(do func(x side, n ast.Expr)) {
	for _, d := range s.file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			b, ok := n.(*ast.BinaryExpr)
			if !ok || b.Op != token.LAND && b.Op != token.LOR {
				return true
			}
			for _, n := range []ast.Expr{b.X, b.Y} {
				if inner, ok := n.(*ast.BinaryExpr); ok && inner.Op == b.Op {
					continue
				}
				at := fmt.Sprintf("%s:%d", filepath.Base(s.path), s.set.Position(n.Pos()).Line)
				do(side{funcName(fn), at, b.Op, strings.Join(strings.Fields(s.of(n)), " ")}, n)
			}
			return true
		})
	}
}

// An explainedKey is a side that no test can miss.
type explainedKey struct{ pkg, in, text string }

// readExplained reads why some sides are not missed. A line of explained.txt is
// "package function", the side and why, with tabs between them.
func readExplained() (map[explainedKey]string, error) {
	text, err := lists.ReadFile("explained.txt")
	if err != nil {
		return nil, err
	}
	all := map[explainedKey]string{}
	for n, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 3 || f[2] == "" {
			return nil, fmt.Errorf("explained.txt:%d: package and function, side, why, with tabs between them", n+1)
		}
		pkg, in, _ := strings.Cut(f[0], " ")
		all[explainedKey{pkg, in, f[1]}] = f[2]
	}
	return all, nil
}
