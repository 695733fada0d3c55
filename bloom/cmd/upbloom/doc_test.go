package main

import (
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/internal/testkit/pages"
)

// TestDoc: the doc of the program says where it is installed from, lists its
// commands with their arguments, and the exit statuses.
func TestDoc(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(pages.Text(t, "main.go", "go install ")), "\n")
	module, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(string(module), "module "), "\n")
	if want := "go install " + path + "/bloom/cmd/upbloom@latest"; lines[0] != want || lines[1] != "" {
		t.Errorf("the doc begins with %q, want %q", lines[:2], want)
	}
	var a app
	commands := a.root().Commands
	commands = slices.DeleteFunc(commands, func(c *cli.Command) bool { return c.Name == "help" })
	if len(commands) != len(lines)-2 {
		t.Errorf("the doc has %d commands, want %d", len(lines)-2, len(commands))
	}
	for i, c := range commands {
		line, _, _ := strings.Cut(lines[i+2], "   ")
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "upbloom" || words[1] != c.Name {
			t.Fatalf("command %d of the doc is %q, want %s", i, line, c.Name)
		}
		var values string // of its flags
		for _, word := range words[2:] {
			if flag, ok := strings.CutPrefix(word, "--"); ok {
				at := slices.IndexFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), flag) })
				if at < 0 {
					t.Fatalf("%q: there is no flag %s", line, word)
				}
				values += c.Flags[at].String()
			} else if !strings.Contains(c.ArgsUsage+values, strings.TrimSuffix(word, "]")) {
				t.Errorf("%q: %s is not among its arguments %q", line, word, c.ArgsUsage)
			}
		}
	}
	var statuses []int
	for line := range strings.Lines(pages.Text(t, "main.go", "0    ")) {
		number, _, _ := strings.Cut(line, " ")
		if n, err := strconv.Atoi(number); err == nil {
			statuses = append(statuses, n)
		}
	}
	want := []int{
		0, exitNo, exitUsage, exitFilter, exitDatabase, exitUnknown, exitInterrupted, exitNoReader,
	}
	if !reflect.DeepEqual(statuses, want) {
		t.Errorf("the doc has the statuses %v, want %v", statuses, want)
	}
}
