package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// In bash, what completion prints completes commands and flags.
func TestCompletionInBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here: ", err)
	}
	sh := newShell(t)
	program := filepath.Join(t.TempDir(), "upbloom")
	if err := os.Symlink(os.Args[0], program); err != nil {
		t.Fatal(err)
	}
	for typed, want := range map[string]string{
		"upbloom repl": "replace", "upbloom l": "load", "upbloom load --it": "--items", "upbloom calc --look": "--lookups",
	} {
		// The function takes the words from the library of bash-completion.
		const words = `_get_comp_words_by_ref() { cur="${COMP_WORDS[COMP_CWORD]}"; words=("${COMP_WORDS[@]}")
cword=$COMP_CWORD; prev="${COMP_WORDS[COMP_CWORD-1]}"; }
source <(upbloom completion bash)
COMP_WORDS=(%TYPED%); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_LINE="%TYPED%"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
$(complete -p upbloom | sed 's/.*-F \([^ ]*\).*/\1/')
printf '%s\n' "${COMPREPLY[@]}"`
		cmd := exec.Command(bash, "-c", strings.ReplaceAll(words, "%TYPED%", typed))
		cmd.Env = append(sh.command().Env, "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%q completes to %q, %v, want %s", typed, out, err, want)
		}
	}
}

// Every shell has a script, and needs no database.
func TestCompletionOfShells(t *testing.T) {
	sh := newShell(t)
	sh.env = nil
	for _, shell := range []string{"bash", "zsh", "fish", "pwsh"} {
		sh.want(0, "--generate-shell-completion", "", "completion", shell)
	}
	sh.want(2, "name a shell: upbloom completion bash, zsh, fish or pwsh", "", "completion", "tcsh")
	sh.want(2, "name a shell", "", "completion")
	sh.want(0, "source <(upbloom completion bash)", "", "completion", "--help")
}
