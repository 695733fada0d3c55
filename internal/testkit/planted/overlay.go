package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// chosen is the variable that chooses a bug of an overlay.
const chosen = "UPBLOOM_PLANTED"

// The package that the files of an overlay import. It exists in overlays alone.
const (
	chooser     = "internal/testkit/planted/chooser"
	chooserText = `package chooser

import "os"

var on = os.Getenv("` + chosen + `")

func Is(name string) bool { return name == on }

func Pick[T any](name string, with, without T) T {
	if Is(name) {
		return with
	}
	return without
}
`
)

// An edit puts a text at an offset, in place of the bytes up to end.
type edit struct {
	at, end int
	text    string
	closes  bool // it ends a pair around size bytes
	size    int
}

// plant writes an overlay with the bugs into dir, and returns its path. Each is
// chosen by name.
func (t *tree) plant(bugs []*bug, dir string) (overlay string, err error) {
	touched, err := t.edit(bugs)
	if err != nil {
		return "", err
	}
	return t.write(touched, dir)
}

// edit edits the files of the bugs.
func (t *tree) edit(bugs []*bug) (touched map[*source]bool, err error) {
	byPlace := map[string][]*bug{}
	var failed []error
	for _, b := range bugs {
		key := b.pkg + " " + b.decl
		byPlace[key] = append(byPlace[key], b)
	}
	touched = map[*source]bool{}
	for _, key := range slices.Sorted(maps.Keys(byPlace)) {
		bugs := byPlace[key]
		p, err := t.find(bugs[0].pkg, bugs[0].decl)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", bugs[0].name, err))
			continue
		}
		if p.fn != nil {
			err = p.copies(bugs)
		} else {
			err = p.picks(bugs)
		}
		touched[p.source] = true
		if err != nil {
			failed = append(failed, err)
		}
	}
	return touched, errors.Join(failed...)
}

// copies adds a copy of the function for each bug, which a call goes to if the bug
// is chosen.
func (p *place) copies(bugs []*bug) error {
	fn := p.fn
	args := p.name(fn.Type.Params, "arg")
	of := ""
	if fn.Recv != nil {
		of = p.name(fn.Recv, "receiver")[0] + "."
	}
	types := ""
	if fn.Type.TypeParams != nil {
		types = "[" + strings.Join(p.name(fn.Type.TypeParams, "T"), ", ") + "]"
	}
	at := p.offset(fn.Name.Pos()) - p.offset(fn.Pos())
	for _, b := range bugs {
		text, err := b.apply(p.of(fn))
		if err != nil {
			return err
		}
		name := fn.Name.Name + "__" + strings.ReplaceAll(b.name, "-", "_")
		fmt.Fprintf(&p.tail, "\n%s%s%s\n", text[:at], name, text[at+len(fn.Name.Name):])
		call := of + name + types + "(" + strings.Join(args, ", ") + ")"
		if fn.Type.Results == nil {
			call += "; return"
		} else {
			call = "return " + call
		}
		p.insert(p.offset(fn.Body.Lbrace)+1, fmt.Sprintf(" if chooser.Is(%q) { %s };", b.name, call))
	}
	return nil
}

func (s *source) insert(at int, text string) {
	s.edits = append(s.edits, edit{at: at, end: at, text: text})
}

// name gives each parameter a name, and returns them as arguments of a call.
func (p *place) name(list *ast.FieldList, stem string) (args []string) {
	for _, f := range list.List {
		dots := ""
		if _, ok := f.Type.(*ast.Ellipsis); ok {
			dots = "..."
		}
		if len(f.Names) == 0 {
			made := fmt.Sprint(stem, len(args))
			p.insert(p.offset(f.Type.Pos()), made+" ")
			args = append(args, made+dots)
		}
		for _, id := range f.Names {
			called := id.Name
			if called == "_" {
				called = fmt.Sprint(stem, len(args))
				at := p.offset(id.Pos())
				p.edits = append(p.edits, edit{at: at, end: at + 1, text: called})
			}
			args = append(args, called+dots)
		}
	}
	return args
}

// picks makes the variable's value depend on the bug that is chosen.
func (p *place) picks(bugs []*bug) error {
	value := p.of(p.node)
	for _, b := range bugs {
		with, err := b.apply(p.of(p.node))
		if err != nil {
			return err
		}
		value = fmt.Sprintf("chooser.Pick(%q, %s, %s)", b.name, with, value)
	}
	p.edits = append(p.edits, edit{at: p.offset(p.node.Pos()), end: p.offset(p.node.End()), text: value})
	return nil
}

// write writes the changed files, and forgets their edits.
func (t *tree) write(touched map[*source]bool, dir string) (overlay string, err error) {
	made := filepath.Join(dir, "chooser.go")
	replace := map[string]string{filepath.Join(t.root, filepath.FromSlash(chooser), "chooser.go"): made}
	files := map[string]string{made: chooserText}
	for s := range touched {
		to := filepath.Join(dir, fmt.Sprint(len(files), "_", filepath.Base(s.path)))
		replace[s.path], files[to] = to, s.edited()
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	files[overlay] = string(list)
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return overlay, nil
}

// edited returns the text with its edits, and forgets them.
func (s *source) edited() string {
	// At one offset, an inner pair is closed before an outer one, an outer one is
	// opened before an inner one, and closing comes first.
	sort.SliceStable(s.edits, func(i, j int) bool {
		a, b := s.edits[i], s.edits[j]
		switch {
		case a.at != b.at:
			return a.at < b.at
		case a.closes != b.closes:
			return a.closes
		case a.closes:
			return a.size < b.size
		}
		return a.size > b.size
	})
	var text strings.Builder
	at := 0
	for _, e := range s.edits {
		text.WriteString(s.text[at:e.at] + e.text)
		at = e.end
	}
	text.WriteString(s.text[at:])
	result := text.String() + s.tail.String()
	s.edits = nil
	s.tail.Reset()
	if strings.Contains(result, "chooser.") {
		end := s.offset(s.file.Name.End())
		result = result[:end] + "; import \"" + module + "/" + chooser + "\"" + result[end:]
	}
	return result
}
