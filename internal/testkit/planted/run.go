package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// findAll runs the test of each bug, and reports whether all are found.
func (t *tree) findAll(bugs []*bug, dir string) (ok bool, err error) {
	overlay, err := t.plant(bugs, dir)
	if err != nil {
		return false, err
	}
	var tests []test
	var packages []string
	for _, b := range bugs {
		if !slices.Contains(tests, b.by) {
			tests = append(tests, b.by)
		}
		if !slices.Contains(packages, b.by.pkg) {
			packages = append(packages, b.by.pkg)
		}
	}
	began := time.Now()
	if err := t.build(overlay, dir, packages); err != nil {
		return false, err
	}
	fmt.Printf("%d test programs built in %.0f s\n", len(packages), time.Since(began).Seconds())

	// Without a bug each test passes: else it finds nothing.
	sound := make([]error, len(tests))
	each(len(tests), func(i int) { sound[i] = t.pass(dir, tests[i]) })
	ok = true
	for _, err := range sound {
		if err != nil {
			fmt.Println("NO TEST   ", err)
			ok = false
		}
	}
	lines := make([]string, len(bugs))
	count := 0
	var mu sync.Mutex
	each(len(bugs), func(i int) {
		b, began := bugs[i], time.Now()
		why := t.missed(dir, b)
		mu.Lock()
		defer mu.Unlock()
		if why == "" {
			count++
			lines[i] = fmt.Sprintf("found      %s, by %s in %.1f s", b.name, b.by, time.Since(began).Seconds())
		} else {
			lines[i] = fmt.Sprintf("NOT FOUND  %s, by %s: %s", b.name, b.by, why)
		}
	})
	fmt.Println(strings.Join(lines, "\n"))
	fmt.Printf("%d of %d bugs are found, after %.0f s\n", count, len(bugs), time.Since(began).Seconds())
	return ok && count == len(bugs), nil
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// who lists the tests of packages, of these names, that fail with each bug. The first that panics
// ends the others.
func (t *tree) who(bugs []*bug, packages []string, tests, dir string) error {
	overlay, err := t.plant(bugs, dir)
	if err != nil {
		return err
	}
	for i := range packages {
		packages[i] = folder(packages[i])
	}
	if err := t.build(overlay, dir, packages); err != nil {
		return err
	}
	lines := make([]string, len(bugs))
	each(len(bugs), func(i int) {
		lines[i] = bugs[i].name
		for _, pkg := range packages {
			out, err := t.run(dir, pkg, tests, bugs[i].name)
			var names []string
			for _, m := range failed.FindAllSubmatch(out, -1) {
				names = append(names, string(m[1]))
			}
			lines[i] += fmt.Sprintf("\n    ./%s: %d %s", pkg, len(names), strings.Join(names, " "))
			if err != nil && bytes.Contains(out, []byte("panic: ")) {
				lines[i] += ", and a panic"
			}
		}
	})
	fmt.Println(strings.Join(lines, "\n"))
	return nil
}

// each calls do for the numbers below n, as many at a time as there are
// processors.
func each(n int, do func(i int)) {
	var wait sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
}

// build makes the test programs of packages, with an overlay.
func (t *tree) build(overlay, dir string, packages []string) error {
	args := []string{"test", "-c", "-vet=off", "-overlay", overlay, "-ldflags=-s -w", "-o", dir + string(filepath.Separator)}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = t.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go test -c: %w\n%s", err, out)
	}
	return nil
}

// limit is how long a test program may run. Only one that hangs takes as long.
const limit = 2 * time.Minute

// run runs tests of one program, with a bug.
func (t *tree) run(dir, pkg, pattern, bug string, more ...string) ([]byte, error) {
	args := append([]string{"-test.run=" + pattern, fmt.Sprint("-test.timeout=", limit)}, more...)
	program := filepath.Join(dir, path.Base(pkg)+".test")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = filepath.Join(t.root, filepath.FromSlash(pkg))
	cmd.Env = append(os.Environ(), chosen+"="+bug)
	return cmd.CombinedOutput()
}

func (t test) pattern() string {
	parts := strings.Split(t.name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// pass returns an error unless the test runs and passes without a bug.
func (t *tree) pass(dir string, by test) error {
	out, err := t.run(dir, by.pkg, by.pattern(), "", append(strings.Fields(by.args), "-test.v")...)
	if err != nil {
		return fmt.Errorf("%s fails without a bug: %s", by, last(out))
	}
	if !bytes.Contains(out, []byte("--- PASS: "+by.name+" ")) {
		return fmt.Errorf("%s does not run: %s", by, last(out))
	}
	return nil
}

// found reports whether the tests that printed out failed. Those that hang until
// the limit count: a side that decides nothing may make a loop endless.
func found(out []byte, err error) bool {
	return err != nil && (bytes.Contains(out, []byte("FAIL")) || bytes.Contains(out, []byte("panic: ")))
}

// missed returns why the bug is not found, or "".
func (t *tree) missed(dir string, b *bug) string {
	switch out, err := t.run(dir, b.by.pkg, b.by.pattern(), b.name, strings.Fields(b.by.args)...); {
	case err == nil:
		return "the test passes"
	case bytes.Contains(out, []byte("panic: test timed out")):
		return "the test hangs, which says nothing on a slow machine"
	case found(out, err):
		return ""
	default:
		return "the test does not run: " + last(out)
	}
}

// last returns the last lines of what a test printed.
func last(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n    ")
}
