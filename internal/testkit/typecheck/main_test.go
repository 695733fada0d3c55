package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestErrorsOfAPlatform(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":         "module m\n\ngo 1.26.0\n",
		"m.go":           "package m\n\nimport \"syscall\"\n\nvar _ = syscall.SIGUSR1\n", // Windows has none
		"m_test.go":      "package m\n\nconst big int = 1 << 40\n",                       // too large for 32 bits
		"m_darwin.go":    "package m\n\nfunc f() int { return none }\n",
		"other_test.go":  "package m_test\n\nimport \"m\"\n\nvar _ = m.Hidden\n",
		"export_test.go": "package m\n\nvar Hidden int\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for platform, want := range map[string]string{
		"linux/amd64":   "",
		"windows/amd64": "undefined: syscall.SIGUSR1",
		"darwin/arm64":  "undefined: none",
		"linux/386":     "overflows",
	} {
		packages, found, err := check(dir, platform)
		if err != nil || packages == 0 || (len(found) > 0) != (want != "") {
			t.Errorf("%s: %d packages, %v, %v", platform, packages, found, err)
		}
		for _, e := range found {
			if !strings.Contains(e.Error(), want) {
				t.Errorf("%s: %v", platform, e)
			}
		}
	}
	for _, platform := range []string{"linux", "linux/pdp11"} {
		if _, _, err := check(dir, platform); err == nil {
			t.Errorf("%s: no error", platform)
		}
	}
}
