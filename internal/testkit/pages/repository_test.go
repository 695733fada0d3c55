package pages

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// repository returns the texts of the repository's files whose names end so, by
// their paths from its root.
func repository(t *testing.T, suffixes ...string) map[string]string {
	t.Helper()
	return under(t, root, suffixes...)
}

// under is repository of a clone in dir. It leaves out hello, the program that
// README has its readers save.
func under(t *testing.T, dir string, suffixes ...string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		name = filepath.ToSlash(name)
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || name == "hello") {
			return filepath.SkipDir
		}
		ends := func(suffix string) bool { return strings.HasSuffix(name, suffix) }
		if d.Type().IsRegular() && slices.ContainsFunc(suffixes, ends) {
			files[name] = read(t, file)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files %v, %v, want some", len(files), suffixes, err)
	}
	return files
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
	for page, text := range repository(t, ".md") {
		for _, m := range pageLink.FindAllStringSubmatch(text, -1) {
			link := m[1] + m[2]
			if strings.Contains(link, ":") {
				continue // another site
			}
			links++
			to, fragment, _ := strings.Cut(link, "#")
			file := path.Join(root, page)
			if to != "" {
				file = path.Join(root, path.Dir(page), to)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: no file for the link %q", page, link)
			} else if fragment != "" && !slices.Contains(anchors(read(t, file)), fragment) {
				t.Errorf("%s: no heading for the link %q", page, link)
			}
		}
	}
	if links < 50 {
		t.Errorf("%d links found, want more than 50", links)
	}
}

var (
	stepMade  = regexp.MustCompile(`(?m)^([a-z0-9]+)\(\) \{`)
	stepCell  = regexp.MustCompile(`(?m)^\| ([^|]+) \|`)
	codeWords = regexp.MustCompile("`([a-zA-Z0-9_]+)[^`]*`")
	testNames = regexp.MustCompile(`\^Test(\w*)(?:\(([\w|]+)\))?(\w*)(\$?)`)
)

// TestStepsExist compares the steps of .ci/run with those in CONTRIBUTING.md,
// and the tests named there with those of the repository. A name that matches
// no test would skip nothing, or run nothing.
func TestStepsExist(t *testing.T) {
	script := read(t, root+"/.ci/run")
	steps := []string{}
	for _, m := range stepMade.FindAllStringSubmatch(script, -1) {
		if !slices.Contains([]string{"install", "begin", "finish", "run"}, m[1]) {
			steps = append(steps, m[1])
		}
	}
	_, page, _ := strings.Cut(read(t, root+"/.github/CONTRIBUTING.md"), "| step |")
	page, _, _ = strings.Cut(page, "\n\n")
	var told []string
	for _, cell := range stepCell.FindAllStringSubmatch(page, -1) {
		for _, m := range codeWords.FindAllStringSubmatch(cell[1], -1) {
			told = append(told, m[1])
		}
	}
	compare(t, told, steps, "is a step in CONTRIBUTING.md, and not in .ci/run")
	compare(t, steps, told, "is a step in .ci/run, and not in CONTRIBUTING.md")

	bash, err := exec.LookPath("bash")
	if err == nil && runtime.GOOS != "windows" { // its bash may be that of another system
		said, err := exec.Command(bash, root+"/.ci/run", "nosuch").Output()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 {
			t.Errorf(".ci/run nosuch: %v, want status 2", err)
		}
		compare(t, told, strings.Fields(string(said)), "is a step that .ci/run nosuch does not name")
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
	return strings.Join(slices.Collect(maps.Values(repository(t, "_test.go"))), "\n")
}

var testOnPage = regexp.MustCompile("`(Test[A-Z]\\w*)`(?:\\]\\(([^)]+)\\))?")

// TestNamedTestsExist: the tests that pages name exist, in the file that the
// page links to.
func TestNamedTestsExist(t *testing.T) {
	tests := allTests(t)
	named := 0
	for page, text := range repository(t, ".md") {
		for _, m := range testOnPage.FindAllStringSubmatch(text, -1) {
			named++
			in := tests
			if m[2] != "" {
				in = read(t, path.Join(root, path.Dir(page), m[2]))
			}
			if !strings.Contains(in, "\nfunc "+m[1]+"(") {
				t.Errorf("%s names %s, which is not there", page, m[1])
			}
		}
	}
	if named < 6 {
		t.Errorf("%d names of tests found in pages, want 6 or more", named)
	}
}

var (
	variable     = regexp.MustCompile("`(UPBLOOM_[A-Z_]+)`")
	variableUsed = regexp.MustCompile(`UPBLOOM_[A-Z][A-Z_]*`)
	variableRead = regexp.MustCompile(`"(UPBLOOM_[A-Z_]+)`)
)

// TestVariablesExist: something reads each variable in CONTRIBUTING.md, and each
// one in the code is there.
func TestVariablesExist(t *testing.T) {
	var told, used, reads []string
	for _, m := range variable.FindAllStringSubmatch(read(t, root+"/.github/CONTRIBUTING.md"), -1) {
		told = append(told, m[1])
	}
	files := repository(t, ".go", ".mjs", ".sh", ".yml", ".ci/run", ".ci/api", ".ci/fuzz", ".ci/release")
	delete(files, "internal/testkit/pages/repository_test.go")
	for _, text := range files {
		used = append(used, variableUsed.FindAllString(text, -1)...)
		for _, m := range variableRead.FindAllStringSubmatch(text, -1) {
			reads = append(reads, m[1])
		}
	}
	if len(told) == 0 {
		t.Error("CONTRIBUTING.md names no variable, want the UPBLOOM_ ones")
	}
	compare(t, used, told, "is in the code, and not in CONTRIBUTING.md")
	compare(t, told, reads, "is in CONTRIBUTING.md, and no code reads it")
}

var packageLine = regexp.MustCompile(`(?m)^    ((?:bloom|upstash|internal|examples)(?:/\S+)?)(?:\s|$)`)

// The program that README has its readers save is no part of the repository: go
// test ./... passes beside it.
func TestSavedProgramIsNoPart(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"hello/main.go", "examples/hello/main.go"} {
		file = filepath.Join(dir, filepath.FromSlash(file))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	got := slices.Collect(maps.Keys(under(t, dir, ".go")))
	if want := []string{"examples/hello/main.go"}; !slices.Equal(got, want) {
		t.Errorf("the files are %v, want %v", got, want)
	}
}

// TestPackagesAreListed compares the packages in ARCHITECTURE.md with the
// folders of the repository.
func TestPackagesAreListed(t *testing.T) {
	folders := map[string]bool{"bloom": true} // its floors have a list of their own
	for file := range repository(t, ".go") {
		if folder := path.Dir(file); folder != "." {
			folders[folder] = true
		}
	}
	entries := []string{"bloom"}
	for _, m := range packageLine.FindAllStringSubmatch(read(t, root+"/.github/ARCHITECTURE.md"), -1) {
		entries = append(entries, m[1])
	}
	covered := make(map[string]bool)
	for _, entry := range entries {
		above, all := strings.CutSuffix(entry, "/...")
		n := len(covered)
		for folder := range folders {
			if folder == above || all && strings.HasPrefix(folder, above+"/") {
				covered[folder] = true
			}
		}
		if len(covered) == n {
			t.Errorf("ARCHITECTURE.md has %s, which is no package, or on a line before", entry)
		}
	}
	for folder := range folders {
		if !covered[folder] {
			t.Errorf("ARCHITECTURE.md does not have the package %s", folder)
		}
	}
	if len(folders) < 40 || len(entries) < 20 {
		t.Errorf("%d folders and %d entries, want more than 40 and 20", len(folders), len(entries))
	}
}

// compare reports each line of a that b lacks.
func compare(t *testing.T, a, b []string, text string) {
	t.Helper()
	for _, line := range a {
		if !slices.Contains(b, line) {
			t.Errorf("%q %s", line, text)
		}
	}
}
