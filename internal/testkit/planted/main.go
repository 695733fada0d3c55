// Command planted plants bugs into the code, one at a time, and runs for each the
// one test that must find it. A claim without a planted bug has no evidence, and a
// planted bug that no test finds has no guard.
//
//	go run ./internal/testkit/planted                # all
//	go run ./internal/testkit/planted -run NAME      # those whose names match NAME
//	go run ./internal/testkit/planted -who PKG,PKG   # which tests of the packages fail with each bug
//	go run ./internal/testkit/planted -clauses PKG   # each side of && and || of a package
//	go run ./internal/testkit/planted -clauses PKG -run FILES   # only in files whose names match
//
// The bugs are in bugs, one list a package: CONTRIBUTING.md says how to write one.
// The checkout is not touched: the bugs are in an overlay, all of them in one
// build of each test program, and a variable of the environment chooses one. Each
// test must also pass when none is chosen. A bug is found if the test fails or panics,
// but not if it hangs until its limit of two minutes ends it: a slow machine may do that.
//
// With -clauses, each side of each && and || is made to decide nothing, one after
// another, and the package's own tests run; here a hang counts. It lists the sides
// that nothing misses, with the reason in explained.txt if there is one, and fails if
// one has none.
package main

import (
	"flag"
	"fmt"
	"go/build"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	run := flag.String("run", "", "only bugs whose names match this; with -clauses: only files")
	who := flag.String("who", "", "list the tests of these packages that fail with each bug")
	tests := flag.String("tests", "", "with -who or -clauses: only tests whose names match this")
	clauses := flag.String("clauses", "", "the sides of && and || in this package, as ./bloom/internal/engine")
	flag.Parse()
	ok, err := do(*run, *who, *tests, *clauses)
	if err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func do(run, who, tests, clauses string) (ok bool, err error) {
	t, err := newTree(build.Default)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	match, err := regexp.Compile(run)
	if err != nil {
		return false, err
	}
	if clauses != "" {
		return t.neutralize(folder(clauses), match, tests, dir)
	}
	all, err := readBugs()
	if err != nil {
		return false, err
	}
	var bugs []*bug
	for i := range all {
		if match.MatchString(all[i].name) {
			bugs = append(bugs, &all[i])
		}
	}
	if len(bugs) == 0 {
		return false, fmt.Errorf("no bug is called %s", run)
	}
	if who != "" {
		return true, t.who(bugs, strings.Split(who, ","), tests, dir)
	}
	return t.findAll(bugs, dir)
}

// folder returns the folder of a package, from "./bloom".
func folder(pkg string) string { return strings.TrimPrefix(filepath.ToSlash(pkg), "./") }
