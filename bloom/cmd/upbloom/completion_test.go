package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Words of a command line, and what they complete to.
func TestCompletions(t *testing.T) {
	for _, c := range []struct {
		words, want string
		without     string
	}{
		{"repl", "replace", "restore"},
		{"l", "ls load", "info"},
		{"--demo --quiet in", "info", "ls"},
		{"load --it", "--items", "--rate"},
		{"--v", "--version", "--help"},
		{"calc --v", "", "--version"},
		{"calc --look", "--lookups", "--items"},
		{"check key --js", "--json", "--demo"},
		{"help rest", "restore", "remove"},
		{"completion ", "bash zsh fish pwsh", "ls"},
		{"completion bash ", "", "zsh"},
		{"check key --rate=0.01 ", "", "ls"},
		{"check key -- --", "", "--json"},
		{"nothing ", "", "ls"},
	} {
		var got []string
		for _, one := range completions((&app{}).root(), strings.Split(c.words, " ")) {
			got = append(got, one.word)
		}
		if text := strings.Join(got, " "); text != c.want && c.want == "" ||
			!strings.HasPrefix(text, c.want) || strings.Contains(text, c.without) {
			t.Errorf("%q completes to %q, want %q and no %q", c.words, text, c.want, c.without)
		}
	}
}

// The variable asks for completions, in the form that the shell reads. Nothing is
// sent, and any other value is ignored.
func TestCompletionVariable(t *testing.T) {
	sh := newShell(t)
	sh.want(0, "", "", "add", "--items", "1000", "key", "a")
	before := sh.s.Stats().Requests
	for shell, want := range map[string]string{
		"bash": "check\n", "pwsh": "check\n", "zsh": "check:", "fish": "check\t",
	} {
		const told = "UPBLOOM_COMPLETE is set, so this lists completions and does nothing else: unset it\n"
		if out := sh.with(completeVariable+"="+shell).want(2, told, "", "che"); !strings.HasPrefix(out, want) {
			t.Errorf("%s: %q, want %q", shell, out, want)
		}
		for _, line := range []string{"rm --yes key", "add key b", "check key a", "--json check key a"} {
			sh.with(completeVariable+"="+shell).want(2, told[:len(told)-1], "", strings.Fields(line)...)
		}
	}
	if n := sh.s.Stats().Requests; n != before {
		t.Errorf("%d requests were sent", n-before)
	}
	for _, value := range []string{"", "1", "tcsh"} {
		sh.with(completeVariable+"="+value).want(1, "no", "", "check", "key", "b")
	}
}

// A script takes no help for an answer: behind the key it is an error, which
// prints nothing on standard output. Behind -- an item is an item, whatever it is
// called.
func TestHelpBehindAKey(t *testing.T) {
	sh := newShell(t)
	sh.create("key")
	for _, line := range []string{
		"check key -h", "add key x --help", "check key --help x", "remove -h key", "load key --help", "rm key -h",
		"ls -h pattern", "--json check key -h", "--help check key", "check -h -- --help", "check key -h --nope",
		"check key --generate-shell-completion",
	} {
		name := strings.Fields(strings.NewReplacer("--json ", "", "--help check", "check").Replace(line))[0]
		says := "upbloom help " + name + " explains the command, and behind -- it is an item"
		if strings.HasSuffix(line, "--nope") || strings.HasSuffix(line, "completion") {
			says = "behind --"
		}
		if out := sh.want(exitUsage, says, "", strings.Fields(line)...); out != "" {
			t.Errorf("%s prints %q", line, out)
		}
	}
	for _, line := range []string{"check -h", "check --json --help", "--help check", "-h", "calc --help"} {
		sh.want(0, "USAGE:", "", strings.Fields(line)...)
	}
	for _, item := range []string{"-h", "--help", "--generate-shell-completion", "completion"} {
		sh.want(1, "no    "+item+"\n", "", "check", "key", "--", item)
		sh.want(0, "new   "+item+"\n", "", "add", "key", "--", item)
		sh.want(0, "yes   "+item+"\n", "", "check", "key", "--", item)
	}
}

// Every shell has a script, and needs no database.
func TestCompletionOfShells(t *testing.T) {
	sh := newShell(t)
	sh.env = nil
	for _, shell := range completionShells {
		if out := sh.want(0, "UPBLOOM_COMPLETE", "", "completion", shell); strings.Contains(out, "eval ") {
			t.Errorf("%s: the script has an eval", shell)
		}
	}
	sh.want(2, "name a shell: upbloom completion bash, zsh, fish or pwsh", "", "completion", "tcsh")
	sh.want(2, "name a shell", "", "completion")
	sh.want(0, "source <(upbloom completion bash)", "", "completion", "--help")
}

// programFolder returns a folder with the program under its name.
func programFolder(t *testing.T) string {
	dir := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(dir, "upbloom")); err != nil {
		t.Fatal(err)
	}
	return dir
}
