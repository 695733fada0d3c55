package database

import (
	"strings"
	"testing"
	"time"
)

// TestPanicLosesTheDatabase makes the engine panic with its lock held, both
// directly and in a script that catches errors. Nothing may then wait for the
// lock.
func TestPanicLosesTheDatabase(t *testing.T) {
	echo, had := native["ECHO"]
	native["ECHO"] = func(d *Memory, _ []string) Reply {
		d.m.Lock()
		panic("torn\r\nin two")
	}
	defer func() {
		if native["ECHO"] = echo; !had {
			delete(native, "ECHO")
		}
	}()
	const want = Lost("ERR the database is lost: ECHO made the engine panic: torn  in two")
	for name, cmd := range map[string][]string{
		"alone":       {"ECHO", "x"},
		"in a script": {"EVAL", "pcall(redis.call, 'ECHO', 'x') return redis.pcall('GET', 'k')", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := OpenMemory(testLimits)
			if err != nil {
				t.Fatal(err)
			}
			if r := db.Do(cmd); r != want {
				t.Errorf("got %v, want %v", r, want)
			}
			for _, later := range []string{"GET k", "EVAL return(1) 0", "SET k v", "ECHO x"} {
				if r := db.Do(strings.Fields(later)); r != want {
					t.Errorf("%s: got %v, want %v", later, r, want)
				}
			}
			if r := db.Multi([][]string{{"GET", "k"}}); r != want {
				t.Errorf("a transaction after the loss: got %v, want %v", r, want)
			}
			if db.Flush() != want || db.FastForward(time.Hour) != want || db.Broken() != want {
				t.Error("Flush, FastForward and Broken do not all return the loss, want all three")
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
