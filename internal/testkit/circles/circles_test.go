package circles

import (
	"slices"
	"testing"
)

// TestFind: a circle is found whole, and what only leads to it is no part.
func TestFind(t *testing.T) {
	got := Find(map[string][]string{
		"main": {"a", "z"}, "a": {"b"}, "b": {"c", "low"}, "c": {"a", "b"}, "low": nil, "y": {"z"}, "z": {"y", "low"},
	})
	want := [][]string{{"a", "b", "c"}, {"y", "z"}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
}
