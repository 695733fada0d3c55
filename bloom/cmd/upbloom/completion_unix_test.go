//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// A session is a shell in a terminal, as a user has it.
type session struct {
	t        *testing.T
	terminal *os.File
	drawn    string
}

// startSession starts a program in a terminal. It is killed at the end, or if it does
// not draw what is waited for.
func startSession(t *testing.T, cmd *exec.Cmd) *session {
	t.Helper()
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200})
	if err != nil {
		t.Skip("no pseudo-terminal here: ", err)
	}
	late := time.AfterFunc(testenv.Patience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		late.Stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = terminal.Close()
	})
	return &session{t: t, terminal: terminal}
}

// types types keys, and waits until want stands on the terminal behind what was
// there.
func (s *session) types(keys, want string) {
	s.t.Helper()
	from := len(s.drawn)
	if _, err := io.WriteString(s.terminal, keys); err != nil {
		s.t.Fatal(err)
	}
	for chunk := make([]byte, 4096); !strings.Contains(s.drawn[from:], want); {
		n, err := s.terminal.Read(chunk)
		if s.drawn += string(chunk[:n]); err != nil {
			s.t.Fatalf("after %q the terminal shows %q, and no %q: %v", keys, s.drawn[from:], want, err)
		}
	}
}

// TAB completes commands and flags, and runs nothing that stands in the line. With
// the script of the command-line library it wrote a help text over the backup.
func TestCompletionInATerminal(t *testing.T) {
	for _, c := range []struct {
		name, shell string
		args        []string
		begin       string
	}{
		{"bash", "bash", []string{"--norc", "--noprofile", "-i"}, "source <(upbloom completion bash)"},
		{
			"bash with bash-completion", "bash",
			[]string{"--norc", "--noprofile", "-i"},
			"source /usr/share/bash-completion/bash_completion; source <(upbloom completion bash)",
		},
		{
			"zsh", "zsh",
			[]string{"-f", "-i"},
			"autoload -Uz compinit; compinit -u -D; source <(upbloom completion zsh)",
		},
		{"fish", "fish", []string{"--private"}, "upbloom completion fish | source"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.shell != "bash" {
				testenv.Need(t, c.shell, c.shell)
			} else if _, err := exec.LookPath("bash"); err != nil {
				t.Skip("no bash here: ", err)
			}
			if strings.Contains(c.begin, "/bash-completion/") {
				if _, err := os.Stat("/usr/share/bash-completion/bash_completion"); err != nil {
					t.Skip("no bash-completion here: ", err)
				}
			}
			sh := newShell(t)
			home := t.TempDir()
			cmd := exec.Command(c.shell, c.args...)
			cmd.Dir = home
			cmd.Env = append(sh.env, asProgram+"=yes", "PATH="+programFolder(t)+":"+os.Getenv("PATH"), "HOME="+home, "TERM=xterm",
				"XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home, "ZDOTDIR="+home, "LC_ALL=C.UTF-8")
			// With this folder, fish makes no completions from manual pages aside.
			if err := os.MkdirAll(filepath.Join(home, "fish", "generated_completions"), 0o700); err != nil {
				t.Fatal(err)
			}
			s := startSession(t, cmd)
			if err := os.Mkdir(filepath.Join(home, "bin"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(os.Args[0], filepath.Join(home, "bin", "upbloom")); err != nil {
				t.Fatal(err)
			}
			const kept = "the only good one"
			for _, name := range []string{"backup.bloom", "blocklist.txt"} {
				if err := os.WriteFile(filepath.Join(home, name), []byte(kept), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s.types(c.begin+"; echo rea''dy\r", "ready")
			s.types("upbloom repl\t", "replace")
			for _, program := range []string{"~/bin/upbloom", "$HOME/bin/upbloom", "./bin/upbloom"} {
				s.types("\x15"+program+" rest\t", "restore")
			}
			s.types("\x15upbloom load --ite\t", "--items")
			s.types("\x15upbloom load s1 blockl\t", "blocklist.txt")
			for i, line := range []string{
				"upbloom save s1 - > backup.bloom ", "upbloom save s1 ->backup.bloom ", "upbloom check $(touch ran) ",
				"upbloom check `touch ran` ", "upbloom add s1 x; upbloom rm --yes s1 2>backup.bloom --js",
				"upbloom check \"$(touch ran)\" --js", "upbloom check <(touch ran) ",
			} {
				behind := fmt.Sprintf("zq%d", i) // drawn once TAB has done its work
				s.types("\x15"+line+"\t"+behind, behind)
			}
			s.types("\x15echo do''ne\r", "done")
			for _, name := range []string{"backup.bloom", "blocklist.txt"} {
				if text, err := os.ReadFile(filepath.Join(home, name)); err != nil || string(text) != kept {
					t.Errorf("%s is now %q, %v", name, text, err)
				}
			}
			if _, err := os.Stat(filepath.Join(home, "ran")); err == nil {
				t.Error("TAB ran a command substitution")
			}
			for _, word := range []string{"nknown command", "not found"} {
				if strings.Contains(s.drawn, word) {
					t.Errorf("TAB prints an error: %q", s.drawn)
				}
			}
			if n := sh.s.Stats().Requests; n != 0 {
				t.Errorf("TAB sent %d requests", n)
			}
		})
	}
}
