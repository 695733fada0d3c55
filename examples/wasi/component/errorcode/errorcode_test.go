package errorcode

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/upstash"
)

// notSent are the codes that can only come before a request is written. With a
// wrong code in the list, the client would repeat a command after it has run,
// and report a new event as seen.
var notSent = []string{
	"DNS timeout",
	"DNS error",
	"destination not found",
	"destination unavailable",
	"destination IP prohibited",
	"destination IP unroutable",
	"connection refused",
	"connection limit reached",
	"TLS certificate error",
	"HTTP request denied by the host",
}

func TestWhatWasNotSent(t *testing.T) {
	for i, c := range codes {
		err := Error(i, "detail")
		if got, want := upstash.SafeToRetry(err), slices.Contains(notSent, c.name); got != want {
			t.Errorf("%s: not sent %t, want %t", c.name, got, want)
		}
		late := strings.HasSuffix(c.name, "timeout")
		if got := errors.Is(err, context.DeadlineExceeded); got != late {
			t.Errorf("%s: deadline exceeded %t, want %t", c.name, got, late)
		}
		if !strings.Contains(err.Error(), c.name+": detail") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for _, code := range []int{-1, len(codes), 255} {
		if upstash.SafeToRetry(Error(code, "")) {
			t.Errorf("unknown code %d says that the request never left", code)
		}
	}
}

// The table follows world.wit case by case. One case too many would shift all
// the cases after it.
func TestOrder(t *testing.T) {
	wit, err := os.ReadFile("../world.wit")
	if err != nil {
		t.Fatal(err)
	}
	_, variant, _ := strings.Cut(string(wit), "variant error-code {")
	variant, _, _ = strings.Cut(variant, "}")
	var names []string
	member := regexp.MustCompile(`(?m)([A-Za-z][A-Za-z-]*)(\([^)]*\))?,`)
	for _, m := range member.FindAllStringSubmatch(variant, -1) {
		names = append(names, strings.ToLower(m[1]))
	}
	if len(names) != len(codes) {
		t.Fatalf("%d codes, world.wit has %d: %q", len(codes), len(names), names)
	}
	for i, c := range codes {
		words := strings.ReplaceAll(strings.ToLower(c.name), " ", "-")
		words = strings.ReplaceAll(words, "-by-the-host", "")
		if words != strings.ToLower(names[i]) {
			t.Errorf("code %d is %q, in world.wit %q", i, c.name, names[i])
		}
	}
}
