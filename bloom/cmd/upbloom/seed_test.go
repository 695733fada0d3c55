package main

import (
	"strings"
	"testing"
)

// A seed is new each time, and the filter that is made with it needs it.
func TestSeedCommand(t *testing.T) {
	sh := newShell(t)
	one := strings.TrimSpace(sh.want(0, "", "", "seed"))
	var other secret
	decode(t, sh.want(0, "", "", "--json", "seed"), &other)
	if one == other.Seed || len(one) < 10 || len(other.Seed) < 10 {
		t.Errorf("the seeds are %q and %q", one, other.Seed)
	}
	seeded := sh.with("UPBLOOM_SEED=" + one)
	seeded.want(0, "new", "", "add", "-n", "1k", "key", "a")
	seeded.want(0, "yes", "", "check", "key", "a")
	seeded.want(0, "\nseed             secret, and UPBLOOM_SEED fits it\n", "", "info", "key")
	sh.want(3, "another seed", "", "check", "key", "a")
}
