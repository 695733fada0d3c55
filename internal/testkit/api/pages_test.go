//go:build api

package api

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// each calls do with the path and the text of every file whose name ends so.
func each(t *testing.T, suffix string, do func(path, text string)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, suffix):
			n++
			do(path, read(t, path))
		}
		return nil
	})
	if err != nil || n == 0 {
		t.Fatalf("%d files *%s, %v, want some", n, suffix, err)
	}
}

var (
	pageLink = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fenced   = regexp.MustCompile("(?ms)^```.*?^```$")
	unlinked = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// anchors returns the fragments of links to the headings of a page.
func anchors(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		words := unlinked.ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(words, " ", "-"))
	}
	return all
}

// TestPagesLinkToFiles checks the links of all pages to files of the repository,
// and to the headings in them.
func TestPagesLinkToFiles(t *testing.T) {
	links := 0
	each(t, ".md", func(path, text string) {
		for _, m := range pageLink.FindAllStringSubmatch(text, -1) {
			link := m[1] + m[2]
			if strings.Contains(link, ":") {
				continue // another site
			}
			links++
			to, fragment, _ := strings.Cut(link, "#")
			file := path
			if to != "" {
				file = filepath.Join(filepath.Dir(path), filepath.FromSlash(to))
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: no file for the link %q", path, link)
			} else if fragment != "" && !slices.Contains(anchors(read(t, file)), fragment) {
				t.Errorf("%s: no heading for the link %q", path, link)
			}
		}
	})
	if links < 50 {
		t.Errorf("%d links found, want more than 50", links)
	}
}

var (
	function  = regexp.MustCompile(`(?m)^([a-z0-9]+)\(\) \{`)
	stepCell  = regexp.MustCompile(`(?m)^\| ([^|]+) \|`)
	codeWords = regexp.MustCompile("`([a-zA-Z0-9_]+)[^`]*`")
	testNames = regexp.MustCompile(`\^Test(\w*)(?:\(([\w|]+)\))?(\w*)(\$?)`)
)

// TestStepsExist compares the steps of .ci/run with those in CONTRIBUTING.md,
// and the tests named there with those of the repository. A name that matches
// no test would skip nothing, or run nothing.
func TestStepsExist(t *testing.T) {
	script := read(t, root+"/.ci/run")
	var steps []string
	for _, m := range function.FindAllStringSubmatch(script, -1) {
		steps = append(steps, m[1])
	}
	_, page, _ := strings.Cut(read(t, root+"/.github/CONTRIBUTING.md"), "| step |")
	page, _, _ = strings.Cut(page, "\n\n")
	var told []string
	for _, cell := range stepCell.FindAllStringSubmatch(page, -1) {
		for _, m := range codeWords.FindAllStringSubmatch(cell[1], -1) {
			told = append(told, m[1])
		}
	}
	for _, name := range told {
		if !slices.Contains(steps, name) {
			t.Errorf("CONTRIBUTING.md has the step %q, .ci/run does not", name)
		}
	}
	for _, name := range steps {
		helps := slices.Contains([]string{"install", "begin", "finish", "run"}, name)
		if !helps && !slices.Contains(told, name) {
			t.Errorf(".ci/run has the step %q, CONTRIBUTING.md does not", name)
		}
	}

	said, err := exec.Command("bash", root+"/.ci/run", "nosuch").Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf(".ci/run nosuch: %v, want status 2", err)
	}
	for _, name := range told {
		if !slices.Contains(strings.Fields(string(said)), name) {
			t.Errorf(".ci/run nosuch says %q, without the step %s", said, name)
		}
	}

	tests := allTests(t)
	named := 0
	for _, m := range testNames.FindAllStringSubmatch(script, -1) {
		for one := range strings.SplitSeq(m[2], "|") {
			name := "Test" + m[1] + one + m[3]
			if named++; m[4] != "" {
				name += "("
			}
			if !strings.Contains(tests, "\nfunc "+name) {
				t.Errorf(".ci/run names a test %s, and none begins so", name)
			}
		}
	}
	if named < 15 {
		t.Errorf("%d names of tests found in .ci/run, want 15 or more", named)
	}
}

// allTests returns the text of all tests.
func allTests(t *testing.T) string {
	t.Helper()
	var tests strings.Builder
	each(t, "_test.go", func(_, text string) { tests.WriteString(text) })
	return tests.String()
}

var testOnPage = regexp.MustCompile("`(Test[A-Z]\\w*)`(?:\\]\\(([^)]+)\\))?")

// TestNamedTestsExist: the tests that pages name exist, in the file that the
// page links to.
func TestNamedTestsExist(t *testing.T) {
	tests := allTests(t)
	named := 0
	each(t, ".md", func(path, text string) {
		for _, m := range testOnPage.FindAllStringSubmatch(text, -1) {
			named++
			in := tests
			if m[2] != "" {
				in = read(t, filepath.Join(filepath.Dir(path), filepath.FromSlash(m[2])))
			}
			if !strings.Contains(in, "\nfunc "+m[1]+"(") {
				t.Errorf("%s names %s, which is not there", path, m[1])
			}
		}
	})
	if named < 8 {
		t.Errorf("%d names of tests found in pages, want 8 or more", named)
	}
}

var (
	variable     = regexp.MustCompile("`(UPBLOOM_[A-Z_]+)`")
	variableUsed = regexp.MustCompile(`UPBLOOM_[A-Z][A-Z_]*`)
)

// TestVariablesExist: something reads each variable in CONTRIBUTING.md, and each
// one in the code is there.
func TestVariablesExist(t *testing.T) {
	var code strings.Builder
	page := read(t, root+"/.github/CONTRIBUTING.md")
	for _, suffix := range []string{".go", ".mjs", ".sh", ".yml", ".ci/run", ".ci/api", ".ci/fuzz"} {
		each(t, suffix, func(path, text string) {
			if filepath.Base(path) == "pages_test.go" {
				return
			}
			code.WriteString(text)
			for _, name := range variableUsed.FindAllString(text, -1) {
				if !strings.Contains(page, "`"+name+"`") {
					t.Errorf("%s has %s, and CONTRIBUTING.md does not", path, name)
				}
			}
		})
	}
	all := variable.FindAllStringSubmatch(page, -1)
	if len(all) == 0 {
		t.Error("CONTRIBUTING.md names no variable, want the UPBLOOM_ ones")
	}
	for _, m := range all {
		if !strings.Contains(code.String(), `"`+m[1]) {
			t.Errorf("CONTRIBUTING.md has %s, and no code reads it", m[1])
		}
	}
}

var packageLine = regexp.MustCompile(`(?m)^    ((?:bloom|upstash|internal|examples)(?:/\S+)?)(?:\s|$)`)

// TestPackagesAreListed compares the packages in ARCHITECTURE.md with the
// folders of the repository.
func TestPackagesAreListed(t *testing.T) {
	folders := []string{"bloom"} // its floors have a list of their own
	entries := []string{"bloom"}
	for _, m := range packageLine.FindAllStringSubmatch(read(t, root+"/.github/ARCHITECTURE.md"), -1) {
		entries = append(entries, m[1])
	}
	each(t, ".go", func(path, _ string) {
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		if folder = filepath.ToSlash(folder); folder != "." && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	})
	covers := func(entry, folder string) bool {
		if above, ok := strings.CutSuffix(entry, "/..."); ok {
			return folder == above || strings.HasPrefix(folder, above+"/")
		}
		return entry == folder
	}
	for _, folder := range folders {
		if !slices.ContainsFunc(entries, func(entry string) bool { return covers(entry, folder) }) {
			t.Errorf("ARCHITECTURE.md does not have the package %s", folder)
		}
	}
	for _, entry := range entries {
		if !slices.ContainsFunc(folders, func(folder string) bool { return covers(entry, folder) }) {
			t.Errorf("ARCHITECTURE.md has %s, and there is no such package", entry)
		}
	}
	if len(folders) < 40 || len(entries) < 20 {
		t.Errorf("%d folders and %d entries, want more than 40 and 20", len(folders), len(entries))
	}
}
