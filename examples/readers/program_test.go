package readers_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-json"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/pages"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A reader is a program with one of the files, which answers questions.
type reader struct {
	in  io.Writer
	out *bufio.Reader
}

// A question is a map: a program gets only the fields of the question at hand.
type question map[string]any

func start(t *testing.T, s *upstashtest.Server, exe string, args ...string) *reader {
	t.Helper()
	cmd := exec.Command(exe, append(args, s.URL, s.Token)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", exe, err)
		}
	})
	return &reader{in, bufio.NewReader(out)}
}

// ask puts the program's answer into into, or returns its error.
func (r *reader) ask(t *testing.T, q question, into any) (failure string) {
	t.Helper()
	line, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(r.in, "%s\n", line); err != nil {
		t.Fatal(err)
	}
	line, err = r.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("%v: %v", q["op"], err)
	}
	var answer struct {
		OK    json.RawMessage `json:"ok"`
		Error string          `json:"error"`
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Error == "" {
		if err := json.Unmarshal(answer.OK, into); err != nil {
			t.Fatalf("%v: %s: %v", q["op"], answer.OK, err)
		}
	}
	return answer.Error
}

// want asks, and checks the answer.
func (r *reader) want(t *testing.T, q question, want any) {
	t.Helper()
	got := reflect.New(reflect.TypeOf(want))
	if failure := r.ask(t, q, got.Interface()); failure != "" {
		t.Errorf("%v: %s", q, failure)
	} else if !reflect.DeepEqual(got.Elem().Interface(), want) {
		t.Errorf("%v: %v, want %v", q, got.Elem().Interface(), want)
	}
}

// eachReader runs a test with both files, each with its own database.
func eachReader(t *testing.T, test func(t *testing.T, s *upstashtest.Server, r *reader)) {
	eachProgram(t, func(t *testing.T, s *upstashtest.Server, begin func() *reader) { test(t, s, begin()) })
}

// eachProgram is eachReader with programs that a test begins by itself.
func eachProgram(t *testing.T, test func(t *testing.T, s *upstashtest.Server, begin func() *reader)) {
	for name, program := range map[string]func(t *testing.T) []string{
		"typescript": func(t *testing.T) []string { return []string{testenv.Need(t, "node", "node"), compiled(t)} },
		"python":     func(t *testing.T) []string { return []string{testenv.Python(t), "testdata/answer.py"} },
	} {
		t.Run(name, func(t *testing.T) {
			args, s := program(t), upstashtest.NewServer(t)
			test(t, s, func() *reader { return start(t, s, args[0], args[1:]...) })
		})
	}
}

// dist is the compiler's output folder. It is in this folder, where Node finds
// node_modules.
var dist string

func TestMain(m *testing.M) {
	code := m.Run()
	if dist != "" {
		_ = os.RemoveAll(dist)
	}
	os.Exit(code)
}

// compile makes JavaScript of the files, once for all tests.
var compile = sync.OnceValue(func() (err error) {
	if dist, err = os.MkdirTemp(".", "dist-"); err != nil {
		return err
	}
	out, err := exec.Command("node", tsc, "-p", ".", "--outDir", dist).CombinedOutput()
	if err != nil {
		return fmt.Errorf("tsc: %w\n%s", err, out)
	}
	return nil
})

const tsc = "node_modules/typescript/bin/tsc"

// compiled returns the test's program in JavaScript.
func compiled(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(tsc); err != nil {
		testenv.Missing(t, "node", "run npm ci in examples/readers first")
	}
	if err := compile(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dist, "testdata", "answer.js")
}

// copied makes a folder with a reader's files and a program of README beside them,
// as it stands. The program prints what a comment in it promises, which is want.
func copied(t *testing.T, program, code string, promise *regexp.Regexp, files ...string) (dir, want string) {
	t.Helper()
	dir, err := os.MkdirTemp(".", "dist-readme-") // here, node_modules are found
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	texts := map[string]string{program: code}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
	}
	m := promise.FindStringSubmatch(code)
	if m == nil {
		t.Fatalf("README's program has no line that prints an answer, and says it:\n%s", code)
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, strings.ReplaceAll(m[1], " ", "")
}

// run runs a command in a folder, with s as the database of the environment.
func run(t *testing.T, s *upstashtest.Server, dir, exe string, args ...string) string {
	t.Helper()
	cmd := exec.Command(exe, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "UPSTASH_REDIS_REST_URL="+s.URL, "UPSTASH_REDIS_REST_TOKEN="+s.Token)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", exe, args, err, out)
	}
	return strings.ReplaceAll(strings.TrimSpace(string(out)), " ", "")
}

// TestREADMEsTypeScript runs README's program with README's commands. The
// packages are those that npm ci has installed.
func TestREADMEsTypeScript(t *testing.T) {
	testenv.Need(t, "node", "npx")
	compiled(t) // or skips
	code := pages.Code(t, "README.md", "ts")[0]
	dir, want := copied(t, "read.ts", code, regexp.MustCompile(`(?m)^console\.log\(await .*; // (.*)$`),
		"upbloom.ts", "xxh3.ts")
	s := upstashtest.NewServer(t)
	seen := bloomtest.HandleAt(t, s.Client(), "seen:webhooks", bloom.Config{Capacity: 100, FPRate: 0.01})
	bloomtest.MustAdd(t, seen, "id-1")

	modules, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	installed := pages.Command(t, "README.md", "npm i ")
	for _, name := range installed.Args[2:] {
		if _, err := os.Stat(filepath.Join(modules, name)); err != nil {
			t.Errorf("README installs %s, package.json does not: %v", name, err)
		}
	}
	for _, line := range []pages.Line{
		pages.Command(t, "README.md", "npm init"), pages.Command(t, "README.md", "npm pkg set"),
	} {
		run(t, s, dir, line.Args[0], line.Args[1:]...)
	}
	tsc := pages.Command(t, "README.md", "npx tsc ")
	if tsc.Args[len(tsc.Args)-1] != "*.ts" {
		t.Fatalf("%q, want all files at the end", tsc.Args)
	}
	// The usage at the top of the file, too.
	top := `import { add, open, rest, size } from "./upbloom.js";
const url = process.env.UPSTASH_REDIS_REST_URL!, token = process.env.UPSTASH_REDIS_REST_TOKEN!;
` + usage(t, "upbloom.ts", "//   ", "console.log(await seen.exists(")
	if err := os.WriteFile(filepath.Join(dir, "top.ts"), []byte(top), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, s, dir, tsc.Args[0], append(tsc.Args[1:len(tsc.Args)-1], "read.ts", "top.ts", "upbloom.ts", "xxh3.ts")...)
	if got := run(t, s, dir, "node", "dist/top.js"); got != "[true,false]" {
		t.Errorf("the usage in upbloom.ts prints %s, and says [true, false]", got)
	}
	node := pages.Command(t, "README.md", "node dist/read.js")
	if got := run(t, s, dir, node.Args[0], node.Args[1:]...); got != want || want != "[true,false]" {
		t.Errorf("the program prints %s, README says %s", got, want)
	}
}

// usage returns the example in the comment of a reader, which prints what it
// finds with these words.
func usage(t *testing.T, file, indent, print string) (code string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line, ok := strings.CutPrefix(line, indent); ok {
			code += line
		} else if code != "" {
			break
		}
	}
	question := regexp.MustCompile(`(?m)^(?:await )?seen\.exists\((.*)\)(;?) .*\[[Tt]rue, [Ff]alse\]$`)
	if !question.MatchString(code) {
		t.Fatalf("%s has no usage with its answer:\n%s", file, code)
	}
	return question.ReplaceAllString(code, print+"$1))$2")
}

func TestREADMEsPython(t *testing.T) {
	code := pages.Code(t, "README.md", "python")[0]
	exe := testenv.Python(t)
	dir, want := copied(t, "program.py", code, regexp.MustCompile(`(?m)^print\(add\(.*\)  # (.*)$`), "upbloom.py")
	s := upstashtest.NewServer(t)
	if got := run(t, s, dir, exe, "program.py"); got != want || want != "[True]" {
		t.Errorf("the program prints %s, README says %s", got, want)
	}
	seen := bloomtest.HandleAt(t, s.Client(), "seen:webhooks", bloom.Config{Capacity: 100, FPRate: 0.01})
	bloomtest.MustAdd(t, seen, "id-1")
	top := `import os
from upbloom import *
url, token = os.environ["UPSTASH_REDIS_REST_URL"], os.environ["UPSTASH_REDIS_REST_TOKEN"]
` + usage(t, "upbloom.py", "    ", "print(seen.exists(")
	if err := os.WriteFile(filepath.Join(dir, "top.py"), []byte(top), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run(t, s, dir, exe, "top.py"); got != "[True,False]" {
		t.Errorf("the usage in upbloom.py prints %s, and says [True, False]", got)
	}
	urls := bloomtest.HandleAt(t, s.Client(), "seen:urls", bloom.Config{Capacity: 100_000, FPRate: 0.01})
	bloomtest.Exists(t, urls, "https://example.com/", true) // Python has added it
}
