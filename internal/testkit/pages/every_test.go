package pages

import (
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../../.."

// A corpus is what may prove a block.
type corpus struct {
	functions []function
	taken     map[taking]bool
	ci        []string // the commands of continuous integration
}

// A function of a test is its lines of code, and its lines of comments, such as
// an Example's output.
type function struct {
	name           string
	code, comments []string
}

// A taking is a test's call of [Code] or its like.
type taking struct{ call, page, what string }

var remark = regexp.MustCompile(`(?m)^\s*//.*$`)

var call = regexp.MustCompile("pages\\.(Code|Program|Text|Command|Request)\\(\\w+, (\"[^\"]+\")(?:,\\s+(\"[^\"]+\"|`[^`]+`))?")

var named = regexp.MustCompile(`\bTest[A-Z]\w*`)

// TestEveryBlock demands of each block of each page, and of each indented block
// in a doc comment, one of these:
//
//   - Go: its lines are in this order in a function of a test;
//   - text: so are its lines, in the comments of an Example, as its output;
//   - a shell: continuous integration runs each command, or a test takes it;
//   - another language, or a whole program: a test takes it;
//   - or the list of exceptions has it, with the reason.
func TestEveryBlock(t *testing.T) {
	c := corpus{taken: make(map[taking]bool)}
	blocks := make(map[string][]Block)
	for file, text := range repository(t, ".go", ".md", ".yml", ".ci/run") {
		switch {
		case strings.Contains(file, "/testdata/"):
		case strings.HasSuffix(file, "_test.go"):
			c.learn(t, file, text)
		case strings.HasSuffix(file, ".go"), strings.HasSuffix(file, ".md"):
			blocks[file] = Cut(file, text)
		case file == ".ci/run", file == ".github/workflows/ci.yml":
			c.ci = append(c.ci, steps(text)...)
		}
	}
	used := make(map[int]bool)
	n := 0
	for file, all := range blocks {
		for _, b := range all {
			n++
			for _, what := range c.unproven(file, b) {
				if i := slices.IndexFunc(exceptions, func(e exception) bool { return e.has(file, b.Language, what) }); i >= 0 {
					used[i] = true
				} else {
					t.Errorf("%s:%d: no test compiles or runs this, and it is no exception:\n%s", file, b.Line, what)
				}
			}
		}
	}
	for i, e := range exceptions {
		if !used[i] {
			t.Errorf("%s: the exception %q excepts nothing", e.file, e.begins)
		}
		if e.why == "" {
			t.Errorf("%s: the exception %q has no reason", e.file, e.begins)
		}
		for _, name := range named.FindAllString(e.why, -1) {
			if !slices.ContainsFunc(c.functions, func(f function) bool { return f.name == name }) {
				t.Errorf("%s: the exception %q names %s, and there is no such test", e.file, e.begins, name)
			}
		}
	}
	if n < 80 { // a walk that misses a folder; pages lose blocks now and then
		t.Errorf("%d blocks found, want 80 or more", n)
	}
}

// learn takes in a file of tests.
func (c *corpus) learn(t *testing.T, file, text string) {
	t.Helper()
	for _, m := range call.FindAllStringSubmatch(remark.ReplaceAllString(text, ""), -1) {
		var what string
		page, err := strconv.Unquote(m[2])
		if err == nil && m[3] != "" {
			what, err = strconv.Unquote(m[3])
		}
		if err != nil {
			t.Fatal(err)
		}
		c.taken[taking{m[1], path.Join(path.Dir(file), page), what}] = true
	}
	for _, source := range strings.Split(text, "\nfunc ")[1:] {
		source, _, _ = strings.Cut(source, "\n}\n")
		name, _, _ := strings.Cut(source, "(")
		f := function{name: name}
		for line := range strings.Lines(source) {
			line = strings.TrimSpace(line)
			if said, ok := strings.CutPrefix(line, "//"); ok {
				f.comments = append(f.comments, flat(said))
			} else {
				f.code = append(f.code, uncommented(line))
			}
		}
		c.functions = append(c.functions, f)
	}
}

// steps returns the commands in a script, or in a workflow. The function go_test
// of .ci/run is go test.
func steps(script string) (commands []string) {
	for line := range strings.Lines(script) {
		for _, one := range strings.FieldsFunc(line, func(r rune) bool { return r == ';' || r == '&' }) {
			one = strings.TrimSpace(strings.Replace(one, "- run: ", "", 1))
			one = strings.Replace(strings.TrimPrefix(one, "then "), "go_test ", "go test ", 1)
			commands = append(commands, one)
		}
	}
	return commands
}

// unproven returns what no test proves: the block, or commands of it.
func (c *corpus) unproven(file string, b Block) (left []string) {
	whole := []string{b.Text}
	switch {
	case b.Language == "" && c.takes("Text", file, b.Text):
		return nil
	case b.Language == "go" && strings.HasPrefix(b.Text, "package "):
		if c.taken[taking{"Program", file, ""}] {
			return nil
		}
	case b.Language == "go", b.Language == "" && isGo(b.Text):
		if slices.ContainsFunc(c.functions, func(f function) bool { return inOrder(goLines(b.Text), f.code) }) {
			return nil
		}
	case b.Language == "sh", b.Language == "" && isShell(b):
		for _, command := range b.Commands() {
			if !c.runs(file, command) {
				left = append(left, command)
			}
		}
		return left
	case b.Language != "":
		if c.taken[taking{"Code", file, b.Language}] {
			return nil
		}
	default:
		var lines []string
		for line := range strings.Lines(b.Text) {
			lines = append(lines, flat(line))
		}
		if slices.ContainsFunc(c.functions, func(f function) bool { return inOrder(lines, f.comments) }) {
			return nil
		}
	}
	return whole
}

// runs reports whether a test or continuous integration runs a command. It is
// enough for cd if the folder exists.
func (c *corpus) runs(file, command string) bool {
	if folder, ok := strings.CutPrefix(command, "cd "); ok {
		_, err1 := os.Stat(filepath.Join(root, folder))
		_, err2 := os.Stat(filepath.Join(root, path.Dir(file), folder))
		return err1 == nil || err2 == nil
	}
	if c.takes("Command", file, command) || c.takes("Request", file, command) {
		return true
	}
	return slices.ContainsFunc(c.ci, func(step string) bool {
		return strings.HasPrefix(step+" ", command+" ")
	})
}

// takes reports whether a test takes what begins so from a file.
func (c *corpus) takes(call, file, text string) bool {
	for t := range c.taken {
		if t.call == call && t.page == file && strings.HasPrefix(text, t.what) {
			return true
		}
	}
	return false
}

// isGo reports whether a block is statements in Go. Three dots stand for some
// that are left out.
func isGo(text string) bool {
	lines := strings.Join(goLines(text), "\n")
	_, err := parser.ParseFile(token.NewFileSet(), "", "package p; func _() {\n"+lines+"\n}", 0)
	return err == nil
}

var program = regexp.MustCompile(`^([A-Z_]+=\S* )*((aws|bash|cd|curl|docker|go|node|npm|npx|\./\S+) |$)`)

func isShell(b Block) bool {
	commands := b.Commands()
	return len(commands) > 0 && program.MatchString(commands[0]+" ")
}

// goLines returns the lines of code.
func goLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = uncommented(strings.TrimSpace(line)); line != "" && line != "..." {
			lines = append(lines, line)
		}
	}
	return lines
}

func uncommented(line string) string {
	if strings.HasPrefix(line, "//") {
		return ""
	}
	line, _, _ = strings.Cut(line, " //")
	return flat(line)
}

// flat makes one space of several.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// inOrder reports whether the lines are among others, in this order.
func inOrder(lines, others []string) bool {
	for _, line := range lines {
		i := slices.Index(others, line)
		if i < 0 {
			return false
		}
		others = others[i+1:]
	}
	return len(lines) > 0
}
