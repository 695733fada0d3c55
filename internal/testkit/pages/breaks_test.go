package pages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// .ci/api lets additions to the last release pass. What breaks programs must be
// in CHANGELOG.md, and is never allowed from v1 on. The commit of a release is
// compared with the release before.
func TestBreaks(t *testing.T) {
	testenv.AskedLong(t) // it installs apidiff
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
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(pass bool, want string) {
		t.Helper()
		out, err := run("bash", ".ci/api")
		if (err == nil) != pass || !strings.Contains(out, want+"\n") {
			t.Errorf(".ci/api: %v, want that it passes to be %v, and %q in\n%s", err, pass, want, out)
		}
	}

	const (
		released = "package kept\n\ntype Config struct{ _ struct{}; Bits uint64 }\n\nfunc Gone() {}\n"
		grown    = "package kept\n\ntype Config struct{ _ struct{}; Bits uint64; Retries int }\n\nfunc Gone() {}\n\nfunc New() {}\n"
		broken   = "package kept\n\ntype Config struct{ _ struct{}; Bits uint32 }\n"
		breaks   = "- Config.Bits: changed from uint64 to uint32\n- Gone: removed\n"
	)
	file(".ci/api", read(t, root+"/.ci/api"))
	file("go.mod", "module example.com/kept\n\ngo 1.25.0\n")
	file("kept.go", released)
	file("old/old.go", "package old\n")
	file("internal/own/own.go", "package own\n\nfunc F() {}\n")
	file("examples/use/use.go", "package use\n\nfunc F() {}\n")
	file("CHANGELOG.md", "## Unreleased\n\n## v0.9.0\n\n### Breaking\n")
	git("init", "-q")
	check(true, "nothing was released before")
	git("add", ".")
	git("commit", "-q", "-m", "kept: begin")
	git("tag", "v0.9.0")
	check(true, "nothing was released before")
	git("commit", "-q", "--allow-empty", "-m", "kept: go on")
	check(true, "the API of v0.9.0 is kept")

	file("kept.go", grown)
	file("internal/own/own.go", "package own\n")
	file("examples/use/use.go", "package use\n")
	check(true, "the API of v0.9.0 is kept")

	file("kept.go", broken)
	check(false, "package example.com/kept is not that of v0.9.0:\n"+breaks)
	file("CHANGELOG.md", "## Unreleased\n\n### Breaking\n\n## v0.9.0\n")
	check(true, breaks+"\nCHANGELOG.md says so")
	git("commit", "-q", "-a", "-m", "kept: v0.10.0")
	git("tag", "v0.10.0")
	check(true, breaks+"\nCHANGELOG.md says so")
	file("CHANGELOG.md", "## v0.10.0, 2026-12-01\n\n### Breaking\n\n## v0.9.0\n")
	check(true, breaks+"\nCHANGELOG.md says so")
	file("CHANGELOG.md", "## v0.10.0, 2026-12-01\n\n## v0.9.0\n\n### Breaking\n")
	check(false, "package example.com/kept is not that of v0.9.0:\n"+breaks)
	git("tag", "-d", "v0.10.0")
	file("CHANGELOG.md", "## Unreleased\n\n### Breaking\n")
	file("kept.go", released)
	git("commit", "-q", "-a", "-m", "kept: v1.0.0")
	git("tag", "v1.0.0")
	file("kept.go", broken)
	git("commit", "-q", "--allow-empty", "-m", "kept: go on")
	git("tag", "-d", "v0.9.0")
	check(false, "package example.com/kept is not that of v1.0.0:\n"+breaks)

	file("kept.go", released)
	if err := os.RemoveAll(filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	check(false, "package example.com/kept/old is not that of v1.0.0:")
}
