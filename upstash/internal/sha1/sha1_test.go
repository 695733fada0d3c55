package sha1

import (
	"crypto/sha1"
	"fmt"
	"strings"
	"testing"
)

// TestHex compares every length around the ends of blocks with Go's own.
func TestHex(t *testing.T) {
	for n := range 5 * block {
		text := strings.Repeat("return redis.call('GET', KEYS[1]) é", 12)[:n]
		if got, want := Hex(text), fmt.Sprintf("%x", sha1.Sum([]byte(text))); got != want {
			t.Errorf("%d bytes: %s, want %s", n, got, want)
		}
	}
	// An example of the standard.
	if got := Hex("abc"); got != "a9993e364706816aba3e25717850c26c9cd0d89d" {
		t.Error(got)
	}
}
