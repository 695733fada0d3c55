package bloom_test

import (
	"slices"
	"testing"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestLookUpAfterAScript: a look-up sends its own command, whatever the request
// before it sent.
func TestLookUpAfterAScript(t *testing.T) {
	s := upstashtest.NewServer(t)
	var sent []string
	s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		sent = append(sent, r.Commands...)
		return upstashtest.Fault{}
	})
	cfg := small()
	cfg.MustExist = true
	f := handle(t, s.Client(), cfg)
	if _, err := f.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 20 { // a pool gives back what it likes
		sent = nil
		if _, err := f.Add(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		exists(t, f, "b", false)
		if want := []string{"EVAL", "BITFIELD"}; !slices.Equal(sent, want) {
			t.Fatalf("sent %v, want %v", sent, want)
		}
	}
}
