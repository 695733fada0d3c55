// Package pages cuts the code out of pages and doc comments. Tests compile it
// and run it, and its own test finds code that no test does.
//
// A test that runs code of a page takes it by [Code], [Program], [Text],
// [Command] or [Request], with the page and the language or the first words as
// literals: TestEveryBlock looks for these calls.
package pages

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-json"
)

// A Block is code of a page or of a doc comment.
type Block struct {
	Line     int    // of its first line
	Language string // of the fence; "" if the block is indented
	Text     string
}

var (
	fence   = regexp.MustCompile("^ *```(.*)$")
	comment = regexp.MustCompile(`^\s*//\t`)
)

// Cut returns the blocks of a file: of a page in Markdown those in fences and
// the indented ones, of a Go file the indented ones in comments.
func Cut(file, text string) (blocks []Block) {
	isGo := strings.HasSuffix(file, ".go")
	var open *Block // nil between blocks
	fenced, after := false, true
	end := func() {
		if open != nil {
			open.Text = strings.TrimRight(open.Text, "\n")
			blocks = append(blocks, *open)
		}
		open, fenced = nil, false
	}
	for i, line := range strings.Split(text, "\n") {
		code, indented := strings.CutPrefix(line, "    ")
		if isGo {
			code = comment.ReplaceAllString(line, "")
			indented = code != line
		}
		empty := strings.Trim(line, " \t/") == "" && (!isGo || strings.Contains(line, "//"))
		mark := fence.FindStringSubmatch(line)
		switch {
		case fenced && mark != nil:
			end()
		case fenced:
			open.Text += line + "\n"
		case !isGo && mark != nil:
			end()
			open, fenced = &Block{Line: i + 2, Language: mark[1]}, true
		case open == nil && indented && (isGo || after):
			open = &Block{Line: i + 1, Text: code + "\n"}
		case open != nil && indented:
			open.Text += code + "\n"
		case open != nil && empty:
			open.Text += "\n"
		default:
			end()
		}
		after = empty // in Markdown, only then an indented line is code
	}
	end()
	return blocks
}

// Commands returns the lines of a block in a shell, each in one line and
// without its comment. Of a block with prompts only the lines after them are
// commands.
func (b Block) Commands() (commands []string) {
	text := strings.ReplaceAll(b.Text, "\\\n", " ")
	prompts := strings.HasPrefix(text, "$ ")
	for line := range strings.Lines(text) {
		line, isCommand := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		line, _, _ = strings.Cut(line, "  #")
		for one := range strings.SplitSeq(line, " && ") {
			if one = strings.Join(strings.Fields(one), " "); one != "" && isCommand == prompts {
				commands = append(commands, one)
			}
		}
	}
	return commands
}

// Code returns the blocks of a page in a language, in order.
func Code(tb testing.TB, page, language string) (code []string) {
	tb.Helper()
	for _, b := range Cut(page, read(tb, page)) {
		if b.Language == language {
			code = append(code, b.Text+"\n")
		}
	}
	if len(code) == 0 {
		tb.Fatalf("pages: %s has no block of %s", page, language)
	}
	return code
}

// Text returns the one indented block of a page that begins so.
func Text(tb testing.TB, page, begins string) string {
	tb.Helper()
	var found []string
	for _, b := range Cut(page, read(tb, page)) {
		if b.Language == "" && strings.HasPrefix(b.Text, begins) {
			found = append(found, b.Text+"\n")
		}
	}
	if len(found) != 1 {
		tb.Fatalf("pages: %s has the blocks %q that begin with %q, want one", page, found, begins)
	}
	return found[0]
}

// Program returns the Go program of a page: the block with a package clause.
func Program(tb testing.TB, page string) string {
	tb.Helper()
	for _, code := range Code(tb, page, "go") {
		if strings.HasPrefix(code, "package ") {
			return code
		}
	}
	tb.Fatalf("pages: %s has no program", page)
	return ""
}

// A Line is a command of a shell as words.
type Line struct{ Env, Args []string }

// Command returns the one command of a page that begins so. The page may repeat
// it.
func Command(tb testing.TB, page, begins string) Line {
	tb.Helper()
	var found []string
	for _, b := range Cut(page, read(tb, page)) {
		for _, c := range b.Commands() {
			if strings.HasPrefix(c, begins) && !slices.Contains(found, c) {
				found = append(found, c)
			}
		}
	}
	if len(found) != 1 {
		tb.Fatalf("pages: %s has the commands %q that begin with %q, want one", page, found, begins)
	}
	l := Line{Args: words(found[0])}
	for len(l.Args) > 0 && assignment.MatchString(l.Args[0]) {
		l.Env, l.Args = append(l.Env, l.Args[0]), l.Args[1:]
	}
	return l
}

var assignment = regexp.MustCompile(`^[A-Z_]+=`)

// words splits a command as a shell does, without substitutions.
func words(command string) (all []string) {
	var word strings.Builder
	var quote rune
	inWord := false
	for _, c := range command {
		switch {
		case quote == c:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, inWord = c, true
		case quote == 0 && c == ' ':
			if inWord {
				all = append(all, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	if inWord {
		all = append(all, word.String())
	}
	return all
}

// Script returns the command behind "npm run" and a name.
func (l Line) Script(tb testing.TB, packageJSON string) Line {
	tb.Helper()
	var p struct{ Scripts map[string]string }
	err := json.Unmarshal([]byte(read(tb, packageJSON)), &p)
	name := l.Args[len(l.Args)-1]
	if err != nil || len(l.Args) != 3 || l.Args[1] != "run" || p.Scripts[name] == "" {
		tb.Fatalf("pages: %q, %v, want npm run and a script of %s", l.Args, err, packageJSON)
	}
	return Line{Args: words(p.Scripts[name])}
}

// Replace replaces a word.
func (l Line) Replace(tb testing.TB, word, by string) {
	tb.Helper()
	i := slices.Index(l.Args, word)
	if i < 0 {
		tb.Fatalf("pages: %q has no %s", l.Args, word)
	}
	l.Args[i] = by
}

// Request returns the request that a page's call of curl makes, to the server
// at url in place of the page's host.
func Request(tb testing.TB, page, begins, url string) *http.Request {
	tb.Helper()
	line := Command(tb, page, begins)
	method, body, target := http.MethodGet, "", ""
	header := make(http.Header)
	for i := 1; i < len(line.Args); i++ {
		value := line.Args[min(i+1, len(line.Args)-1)]
		switch arg := line.Args[i]; arg {
		case "-X":
			method = value
		case "-H":
			name, text, _ := strings.Cut(value, ": ")
			header.Set(name, text)
		case "-d":
			method, body = http.MethodPost, value
			header.Set("Content-Type", "application/x-www-form-urlencoded")
		default:
			target = arg
			continue
		}
		i++
	}
	_, path, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(target, "https://"), "http://"), "/")
	r, err := http.NewRequestWithContext(tb.Context(), method, url+"/"+path, strings.NewReader(body))
	if err != nil || line.Args[0] != "curl" {
		tb.Fatalf("pages: %q, %v, want a call of curl", line.Args, err)
	}
	r.Header = header
	return r
}

func read(tb testing.TB, file string) string {
	tb.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		tb.Fatalf("pages: %v", err)
	}
	return string(data)
}
