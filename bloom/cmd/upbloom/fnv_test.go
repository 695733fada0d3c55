package main

import (
	"testing"

	"github.com/upbloom/upbloom/bloom"
)

// The computed rate of an fnv1a filter is too low: it is said to be a bound, or
// not at all, wherever a rate is printed.
func TestRatesFNV1a(t *testing.T) {
	sh := newShell(t)
	f, err := bloom.New(sh.s.Client(), "emails", bloom.Config{Bits: 9600, Hashes: 7, Scheme: bloom.SchemeFNV1a})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Add(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	sh.want(0, "false positives  not known now", "", "info", "emails")
	sh.want(0, "  not known  ", "", "ls")
	sh.want(exitUsage, "about 1 item or more, false positives not known, no expiry\n", "", "rm", "emails")
	sh.want(0, " items or more, at least 1 in ", numbered("b", 299), "load", "emails")
	sh.want(0, "  at least 1 in ", "", "ls")
}
