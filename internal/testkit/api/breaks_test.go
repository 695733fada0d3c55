//go:build api

package api

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const released = `package kept

type Transport interface{ Send([]byte) error }

type Sealed interface{ sealed() }

type Config struct {
	_       struct{}
	Bits    uint64
	Retries int
}

type Point struct{ X, Y int }

func (Point) Len() int { return 0 }

type Client struct{}

func (Client) Close() error { return nil }

func (Client) Do() {}

const Version = 1

var Default Client

func New(Config) *Client { return nil }

func Gone() {}
`

// Changes that break programs, each with the line .ci/api prints.
var breaks = []struct{ old, new, line string }{
	{
		"interface{ Send([]byte) error }", "interface{ Send([]byte) error; Ready() bool }",
		"- Transport.Ready: added",
	},
	{"Bits    uint64", "Bits uint32", "- Config.Bits: changed from uint64 to uint32"},
	{"\tRetries int\n", "", "- Config.Retries: removed"},
	{"X, Y int", "X, Y int; f func()", "- Point: old is comparable, new is not"},
	{"(Client) Close() error", "(*Client) Close() error", "- Client.Close: removed"},
	{"func (Client) Do() {}", "", "- Client.Do: removed"},
	{"Version = 1", "Version = 2", "- Version: value changed from 1 to 2"},
	{"var Default Client", "var Default *Client", "- Default: changed from Client to *Client"},
	{
		"func New(Config)", "func New(Config, ...int)",
		"- New: changed from func(Config) *Client to func(Config, ...int) *Client",
	},
	{"func Gone() {}", "", "- Gone: removed"},
}

// Changes no program notices.
var additions = []struct{ old, new string }{
	{"interface{ sealed() }", "interface{ sealed(); Name() string }"}, // nobody else implements it
	{"Retries int\n", "Retries int; Proxy string\n"},
	{"func (Client) Do() {}", "func (Client) Do() {}; func (*Client) Ping() {}"},
	{"func Gone() {}", "func Gone() {}; func Open() {}; type Stats struct{}; const Size = 1"},
	{"X, Y int", "X, Y, z int"},
	{"func (Point) Len() int", "func (p Point) Len() (n int)"},
}

// .ci/api finds what breaks programs, and lets additions pass.
func TestBreaks(t *testing.T) {
	dir := t.TempDir()
	run := func(name string, args ...string) (string, error) {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	git := func(args ...string) {
		t.Helper()
		who := []string{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "tag.gpgSign=false"}
		if out, err := run("git", append(who, args...)...); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	file := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), text)
	}
	check := func(pass bool, want ...string) (out string) {
		t.Helper()
		out, err := run("bash", ".ci/api")
		if (err == nil) != pass {
			t.Errorf(".ci/api: %v\n%s", err, out)
		}
		for _, line := range want {
			if !strings.Contains("\n"+out, "\n"+line+"\n") {
				t.Errorf(".ci/api does not print %q, but:\n%s", line, out)
			}
		}
		return out
	}
	planted := func(text, old, new string) string {
		t.Helper()
		if strings.Count(text, old) != 1 {
			t.Fatalf("%q is not once in\n%s", old, text)
		}
		return strings.Replace(text, old, new, 1)
	}

	file(".ci/api", read(t, root+"/.ci/api"))
	file("go.mod", "module example.com/kept\n\ngo 1.25.0\n")
	file("kept.go", released)
	file("old/old.go", "package old\n")
	file("internal/own/own.go", "package own\n\nfunc F() {}\n")
	file("examples/use/use.go", "package use\n\nfunc F() {}\n")
	file("CHANGELOG.md", "## Unreleased\n\n## v0.9.0\n\n### Breaking\n")
	git("init", "-q")
	check(true, "nothing was released yet")
	git("add", ".")
	git("commit", "-q", "-m", "kept: begin")
	git("tag", "v0.9.0")
	check(true, "the API of v0.9.0 is kept")

	text := released
	for _, a := range additions {
		text = planted(text, a.old, a.new)
	}
	file("kept.go", text)
	file("internal/own/own.go", "package own\n")
	file("examples/use/use.go", "package use\n")
	check(true, "the API of v0.9.0 is kept")

	text = released
	var lines []string
	for _, b := range breaks {
		text, lines = planted(text, b.old, b.new), append(lines, b.line)
	}
	file("kept.go", text)
	out := check(false, lines...)
	if n := strings.Count(out, "\n- "); n != len(breaks) {
		t.Errorf(".ci/api finds %d breaks, want %d:\n%s", n, len(breaks), out)
	}
	file("CHANGELOG.md", "## Unreleased\n\n### Breaking\n\n## v0.9.0\n")
	check(true, append(lines, "CHANGELOG.md says so")...)
	git("tag", "v1.0.0")
	git("commit", "-q", "--allow-empty", "-m", "kept: go on")
	git("tag", "-d", "v0.9.0")
	check(false, lines...)

	file("kept.go", released)
	if err := os.RemoveAll(filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	if out := check(false); !strings.Contains(out, "package example.com/kept/old is not that of v1.0.0") {
		t.Errorf(".ci/api says of a removed package:\n%s", out)
	}
}
