// Package errtext checks the texts of errors that leave packages bloom and
// upstash.
package errtext

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

var prefixes = []string{"bloom: ", "upstash: "}

// Wrong returns what is wrong with err, or "". Its text, and that of each error of
// errors.Join, begins with one of the prefixes, and has neither of them behind it.
func Wrong(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if joined, ok := err.(interface{ Unwrap() []error }); ok && isJoin(joined.Unwrap(), text) {
		for _, each := range joined.Unwrap() {
			if wrong := Wrong(each); wrong != "" {
				return wrong
			}
		}
		return ""
	}
	for _, prefix := range prefixes {
		rest, ok := strings.CutPrefix(text, prefix)
		if !ok {
			continue
		}
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.Contains(rest, p) }) {
			return fmt.Sprintf("%T has a prefix within its text: %s", err, text)
		}
		return ""
	}
	return fmt.Sprintf("%T begins with neither %q: %s", err, prefixes, text)
}

func isJoin(errs []error, text string) bool {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return len(errs) > 0 && strings.Join(texts, "\n") == text
}

// Collector collects what is wrong with the errors of a whole suite. It is safe
// for concurrent use.
type Collector struct {
	mu    sync.Mutex
	wrong map[string]bool
}

// Add checks err, which may be nil.
func (c *Collector) Add(err error) {
	wrong := Wrong(err)
	if wrong == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wrong == nil {
		c.wrong = make(map[string]bool)
	}
	c.wrong[wrong] = true
}

// Run runs the tests of a package, as a testing.M does, and fails if an error was
// wrong.
func (c *Collector) Run(tests interface{ Run() int }) int {
	status := tests.Run()
	c.mu.Lock()
	defer c.mu.Unlock()
	for wrong := range c.wrong {
		fmt.Fprintln(os.Stderr, "errtext:", wrong)
		status = 1
	}
	return status
}
