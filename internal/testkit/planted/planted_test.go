package main

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/typed"
)

// linux is the platform whose files have the bugs, on whatever this test runs.
func linux(t *testing.T) *tree {
	t.Helper()
	c := build.Default
	c.GOOS, c.GOARCH = "linux", "amd64"
	tr, err := newTree(c)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func bugs(t *testing.T) []bug {
	t.Helper()
	all, err := readBugs()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each bug changes a text that stands once in its function, and has a name of its
// own, in the list of its package.
func TestBugsCanBePlanted(t *testing.T) {
	tr, seen, lists := linux(t), map[string]bool{}, map[string]string{}
	for _, b := range bugs(t) {
		if seen[b.name] {
			t.Errorf("two bugs are called %s", b.name)
		}
		seen[b.name] = true
		if in := lists[b.file]; in != "" && in != b.pkg {
			t.Errorf("%s has bugs of %s and of %s", b.file, in, b.pkg)
		}
		lists[b.file] = b.pkg
		p, err := tr.find(b.pkg, b.decl)
		if err != nil {
			t.Errorf("%s: %v", b.name, err)
			continue
		}
		text := p.of(p.node)
		with, err := b.apply(text)
		if err != nil {
			t.Error(err)
		} else if with == text {
			t.Errorf("%s changes nothing", b.name)
		}
	}
	if len(seen) < 30 {
		t.Errorf("only %d bugs", len(seen))
	}
}

// Each bug compiles where it stands.
func TestBugsCompile(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("go list would compile all packages for linux")
	}
	tr, packages := linux(t), map[string]bool{}
	var all []*bug
	for _, b := range bugs(t) {
		all, packages["./"+b.pkg] = append(all, &b), true
	}
	deps := withChooser(t, typed.Importer(t, tr.root, slices.Collect(maps.Keys(packages))...))
	touched, err := tr.edit(all)
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range packages {
		compile(t, tr, folder(pkg), touched, deps)
	}
}

var mark = regexp.MustCompile(`\w+__\w+\(|chooser\.Pick\("[^"]+"`)

// compile parses a package with its edits, and checks its types.
func compile(t *testing.T, tr *tree, pkg string, touched map[*source]bool, deps importer) {
	t.Helper()
	sources, err := tr.sources(pkg)
	if err != nil {
		t.Fatal(err)
	}
	set, texts, files := token.NewFileSet(), map[string]string{}, []*ast.File(nil)
	report := func(at token.Position, why any) {
		t.Helper()
		last := "the top"
		for _, m := range mark.FindAllString(texts[at.Filename][:at.Offset], -1) {
			last = m
		}
		t.Errorf("%s: behind %s: %v", pkg, last, why)
	}
	for _, s := range sources {
		name, text := filepath.Base(s.path), s.text
		if touched[s] {
			text = s.edited()
		}
		texts[name] = text
		f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if wrong, ok := err.(scanner.ErrorList); ok {
			report(wrong[0].Pos, err)
			return
		}
		files = append(files, f)
	}
	check := types.Config{Importer: deps, Error: func(err error) {
		report(set.Position(err.(types.Error).Pos), err)
	}}
	_, _ = check.Check(module+"/"+pkg, set, files, nil)
}

type importer func(path string) (*types.Package, error)

func (i importer) Import(path string) (*types.Package, error) { return i(path) }

// withChooser adds the package that is in overlays alone.
func withChooser(t *testing.T, compiled types.Importer) importer {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "chooser.go", chooserText, 0)
	if err != nil {
		t.Fatal(err)
	}
	made, err := (&types.Config{Importer: compiled}).Check(module+"/"+chooser, set, []*ast.File{f}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(path string) (*types.Package, error) {
		if path == made.Path() {
			return made, nil
		}
		return compiled.Import(path)
	}
}

func TestNamedTestsOfBugsExist(t *testing.T) {
	root, texts := linux(t).root, map[string]string{}
	for _, b := range bugs(t) {
		if texts[b.by.pkg] == "" {
			files, _ := filepath.Glob(filepath.Join(root, filepath.FromSlash(b.by.pkg), "*_test.go"))
			for _, name := range files {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				texts[b.by.pkg] += string(text)
			}
		}
		name, _, _ := strings.Cut(b.by.name, "/")
		if !strings.Contains(texts[b.by.pkg], "\nfunc "+name+"(t *testing.T)") {
			t.Errorf("%s: there is no %s", b.name, b.by)
		}
	}
}

var (
	row  = regexp.MustCompile(`(?m)^\| (\*\*.*?) \|`)
	rule = regexp.MustCompile(`(?m)^//  (\d+)\. `)
)

// Each row of ARCHITECTURE's table and each rule of a Mirror has a bug, and each
// bug breaks a claim that stands where it says.
func TestEachClaimHasABug(t *testing.T) {
	root := linux(t).root
	claims := map[claim]int{}
	for _, m := range row.FindAllStringSubmatch(read(t, root, ".github/ARCHITECTURE.md"), -1) {
		c := claim{"table", plain(strings.ReplaceAll(m[1], "**", ""))}
		if _, twice := claims[c]; twice {
			t.Errorf("two rows of the table begin with %s", c.text)
		}
		claims[c] = 0
	}
	for _, m := range rule.FindAllStringSubmatch(read(t, root, "bloom/mirror.go"), -1) {
		claims[claim{"rule", m[1]}] = 0
	}
	docs := docs(t, root)
	for _, b := range bugs(t) {
		if _, known := claims[b.claim]; known {
			claims[b.claim]++
		} else if b.claim.kind != "doc" || !strings.Contains(docs, plain(b.claim.text)) {
			t.Errorf("%s: no such %s: %s", b.name, b.claim.kind, b.claim.text)
		}
	}
	for c, n := range claims {
		if n == 0 {
			t.Errorf("no bug breaks the %s: %s", c.kind, c.text)
		}
	}
	if len(claims) < 40 {
		t.Errorf("only %d rows and rules were found", len(claims))
	}
}

func read(t *testing.T, root, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// docs returns the comments of the product and its pages.
func docs(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	all.WriteString(read(t, root, "README.md"))
	for _, dir := range []string{"bloom", "upstash", "internal"} {
		err := fs.WalkDir(os.DirFS(root), dir, func(name string, d fs.DirEntry, err error) error {
			if d.IsDir() || err != nil || strings.HasPrefix(name, "internal/testkit/planted") {
				return err
			}
			switch {
			case path.Ext(name) == ".md", path.Dir(name) == "bloom/cmd/upbloom/help":
				all.WriteString("\n" + read(t, root, name))
			case path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go"):
				all.WriteString("\n" + strings.Join(comment.FindAllString(read(t, root, name), -1), "\n"))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return plain(all.String())
}

var (
	comment = regexp.MustCompile(`//.*`)
	slashes = regexp.MustCompile(`(?m)^\s*//\s?`)
)

// plain returns a text without marks, in one line.
func plain(text string) string {
	text = slashes.ReplaceAllString(text, "")
	return strings.Join(strings.Fields(strings.NewReplacer("[", "", "]", "", "`", "").Replace(text)), " ")
}

// The bug that CONTRIBUTING.md shows is one of the list.
func TestBugOfThePage(t *testing.T) {
	root := linux(t).root
	_, text, _ := strings.Cut(read(t, root, ".github/CONTRIBUTING.md"), "```\n-- ")
	text, _, _ = strings.Cut(text, "```")
	shown, err := parse("CONTRIBUTING.md", "-- "+text)
	if err != nil || len(shown) != 1 {
		t.Fatalf("%d bugs, %v; want one", len(shown), err)
	}
	if list := read(t, root, "internal/testkit/planted/bugs/engine.txt"); !strings.Contains(list, "\n-- "+text) {
		t.Errorf("the list has no such bug: %s", shown[0].name)
	}
}

// Each explained side stands in its function.
func TestExplainedSidesExist(t *testing.T) {
	explained, err := readExplained()
	if err != nil {
		t.Fatal(err)
	}
	tr := linux(t)
	for key := range explained {
		sources, err := tr.sources(key.pkg)
		if err != nil {
			t.Error(err)
			continue
		}
		if !slices.ContainsFunc(sources, func(s *source) (found bool) {
			s.sides(func(x side, _ ast.Expr) { found = found || x.in == key.in && x.text == key.text })
			return found
		}) {
			t.Errorf("%s %s has no side %s", key.pkg, key.in, key.text)
		}
	}
}

// A list that is wrong is refused, and so is a text that stands twice.
func TestWrongBugsAreRefused(t *testing.T) {
	const good = "-- a --\nin: bloom F\nclaim: rule: 1\nby: ./bloom TestF\n- x := 1\n- y()\n+ y()\n"
	bugs, err := parse("list", good)
	if err != nil || len(bugs) != 1 {
		t.Fatalf("parse = %v, %v", bugs, err)
	}
	for text, want := range map[string]string{
		"x := 1\n\t\ty()":              "y()",
		"x := 1":                       "",
		"x := 1\n\ty(); x := 1\n\ty()": "",
	} {
		if got, err := bugs[0].apply(text); got != want || err == nil != (want != "") {
			t.Errorf("in %q: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, line := range []string{"in: bloom F\n", "claim: rule: 1\n", "by: ./bloom TestF\n", "- x := 1\n- y()\n"} {
		if _, err := parse("list", strings.Replace(good, line, "", 1)); err == nil {
			t.Errorf("parse takes a bug without %q", line)
		}
	}
	for _, text := range []string{good + "what\n", strings.Replace(good, "./bloom TestF", "simulation filter many", 1)} {
		if _, err := parse("list", text); err == nil {
			t.Errorf("parse takes %q", text)
		}
	}
}
