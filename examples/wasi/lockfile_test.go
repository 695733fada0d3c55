package main

import (
	"strings"
	"testing"

	"github.com/goccy/go-json"
)

// TestLockFileIsComplete: "npm ci" refuses a lock file without a package, even
// an optional one for another platform.
func TestLockFileIsComplete(t *testing.T) {
	type pkg struct {
		Integrity            string            `json:"integrity"`
		Dependencies         map[string]string `json:"dependencies"`
		OptionalDependencies map[string]string `json:"optionalDependencies"`
	}
	var lock struct {
		Packages map[string]pkg `json:"packages"`
	}
	if err := json.Unmarshal(mustRead(t, "component/package-lock.json"), &lock); err != nil {
		t.Fatal(err)
	}
	// Like Node, it looks in the package's own folder and in those around it.
	has := func(path, name string) bool {
		for {
			if _, ok := lock.Packages[strings.TrimPrefix(path+"/node_modules/"+name, "/")]; ok {
				return true
			}
			if path == "" {
				return false
			}
			path = strings.TrimSuffix(path[:max(0, strings.LastIndex(path, "node_modules/"))], "/")
		}
	}
	for path, p := range lock.Packages {
		if path != "" && p.Integrity == "" {
			t.Errorf("%s has no checksum", path)
		}
		for _, names := range []map[string]string{p.Dependencies, p.OptionalDependencies} {
			for name, version := range names {
				if !has(path, name) {
					t.Errorf("%s %s, which %q names, is not in the lock file", name, version, path)
				}
			}
		}
	}
	if len(lock.Packages) < 2 {
		t.Errorf("the lock file has %d packages, want two or more", len(lock.Packages))
	}
}
