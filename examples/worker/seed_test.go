package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

// Without a secret seed only a test server is used, and no error shows the secret. The
// seed.go of Cloud Run and of Lambda is the same file, so that each example can be copied
// by itself.
func TestSecretSeed(t *testing.T) {
	ours, err1 := os.ReadFile("seed.go")
	for _, other := range []string{"../cloudrun/seed.go", "../lambda/seed.go"} {
		theirs, err2 := os.ReadFile(other)
		if err := errors.Join(err1, err2); err != nil || !bytes.Equal(ours, theirs) {
			t.Errorf("seed.go and %s differ, %v", other, err)
		}
	}
	for _, c := range []struct {
		text string
		demo bool
		seed uint64
		says string
	}{
		{"", true, 0, ""},
		{"", false, 0, "upbloom seed makes one"},
		{"12345", false, 12345, ""},
		{"0xff", false, 255, ""},
		{"0", false, 0, "from 1 to 2^64-1"},
		{"my secret", true, 0, "from 1 to 2^64-1"},
	} {
		t.Setenv("UPBLOOM_SEED", c.text)
		seed, err := secretSeed(c.demo)
		switch {
		case err == nil && (c.says != "" || seed != c.seed):
			t.Errorf("%q, demo %v: %d, want %d or %q", c.text, c.demo, seed, c.seed, c.says)
		case err != nil && (c.says == "" || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%q, demo %v: %v, want %q", c.text, c.demo, err, c.says)
		case err != nil && strings.Contains(err.Error(), "my secret"):
			t.Errorf("the error shows the seed: %v", err)
		}
	}
}
