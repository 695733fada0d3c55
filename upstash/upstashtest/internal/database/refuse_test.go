package database

import (
	"strconv"
	"testing"
	"time"
)

// TestPatternNotUTF8 matches with bytes over which the engine would panic.
func TestPatternNotUTF8(t *testing.T) {
	db, err := OpenMemory(testLimits)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.Do([]string{"HSET", "h", "f", "v"})
	for _, args := range [][]string{
		{"KEYS", "\xff*"},
		{"SCAN", "0", "MATCH", "\xff"},
		{"HSCAN", "h", "0", "MATCH", "f\xc3"},
		{"SSCAN", "s", "0", "match", "[\xff]"},
		{"ZSCAN", "z", "0", "COUNT", "9", "MATCH", "\\\xff"},
	} {
		if r := db.Do(args); r != errGlob {
			t.Errorf("%q: got %v, want %v", args, r, errGlob)
		}
	}
	if r := db.Do([]string{"HGET", "h", "f"}); r != Bulk("v") {
		t.Errorf("HGET afterwards: got %v, want v", r)
	}
}

// TestManyRandomMembers draws a million members of a large sorted set.
func TestManyRandomMembers(t *testing.T) {
	db, err := OpenMemory(testLimits)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	add := []string{"ZADD", "z"}
	for i := range 2000 {
		add = append(add, strconv.Itoa(i), "m"+strconv.Itoa(i))
	}
	db.Do(add)
	drawn := make(chan Array)
	go func() {
		list, _ := db.Do([]string{"ZRANDMEMBER", "z", "-1000000", "WITHSCORES"}).(Array)
		drawn <- list
	}()
	select {
	case list := <-drawn:
		seen := make(map[Bulk]bool)
		for i := 0; i+1 < len(list); i += 2 {
			member, score := list[i].(Bulk), list[i+1].(Bulk)
			if member != "m"+score {
				t.Fatalf("%s with the score %s, want that of the member", member, score)
			}
			seen[member] = true
		}
		if len(list) != 2_000_000 || len(seen) != 2000 {
			t.Errorf("%d elements and %d different members, want 2,000,000 and 2,000", len(list), len(seen))
		}
	case <-time.After(time.Minute):
		t.Fatal("a million members are not drawn after a minute")
	}
	for _, args := range [][]string{{"ZRANDMEMBER", "none", "-5"}, {"ZRANDMEMBER", "z", "0"}} {
		if got := show(db.Do(args)); got != "[]" {
			t.Errorf("%q: got %s, want none", args, got)
		}
	}
	if _, bad := db.Do([]string{"ZRANDMEMBER", "z", "-5", "REV"}).(Failure); !bad {
		t.Error("an option that ZRANDMEMBER does not have: want an error")
	}
}
