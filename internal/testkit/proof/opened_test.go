package proof

import (
	"testing"
	"time"
)

// TestCheckOpened is TestCheck for clients that open the filter. Behind its 53 cells
// are 3 bits of the last byte. A handle is refused whose Add met another filter, also
// if that is gone.
func TestCheckOpened(t *testing.T) {
	plain := Filters{Bits: 53, Hashes: 2}
	checkAll(t, &plain, []sample{
		{"opened", true, "add a: new; open: fits; exists a: yes"},
		{"opened, and there is none", false, "open: fits"},
		{"there is one, and none was found", false, "add a: new; open: missing"},
		{"another geometry", true, "smudge a; open: differs"},
		{"it has another geometry", false, "smudge a; open: fits"},
		{"read in another geometry", false, "add a: new; open: differs"},
		{"other data", true, "overwrite; open: foreign"},
		{"other data, and there are none", false, "add a: new; open: foreign"},
		{"inspected", true, "add a: new; inspect: fits Count=2"},
		{"inspected, with a bit behind the last cell", true, "add a: new; smudge b; inspect: fits Count=5"},
		{"inspected, with more bits than there are", false, "add a: new; smudge b; inspect: fits Count=6"},
		{"inspected, with another count", false, "add a: new; inspect: fits Count=3"},
		{"inspected, of another geometry", true, "smudge a; inspect: differs Count=9"},
		{"inspected in another geometry", false, "add a: new; inspect: differs Count=2"},
		{"a refused handle writes", false, "outside>smudge a; add a: foreign; outside>clear: did; " +
			"y>create: made; add a: new"},
		{"an opened one does", true, "outside>smudge a; add a: foreign; outside>clear: did; y>create: made; " +
			"open: fits; add a: new"},
		{"it was not opened", false, "outside>smudge a; add a: foreign; outside>clear: did; y>create: made; " +
			"open: refused; add a: new"},
	})
	empty := plain
	empty.MissingIsEmpty = true
	checkAll(t, &empty, []sample{
		{"there is none", true, "open: missing"},
		{"there is one, and an empty one was found", false, "open: differs"},
	})
	near := plain
	near.Lag, near.ReadsNearest = true, true
	checkAll(t, &near, []sample{
		{"a region is inspected", false, "add a: new; delete: did; inspect: fits Count=2"},
		{"a region does not answer", false, "add a: new; delete: did; open: fits"},
		{"a region does not know", true, "create: made; add a: new; exists a: no"},
		{"a Snapshot without a token", true, "create: made; y>add a: new; snapshot"},
		{"a Snapshot with more", false, "add a: new; snapshot: cells=a,b"},
	})
	synced := near
	synced.Tokens = true
	checkAll(t, &synced, []sample{
		{"another saw what came after", true, "create: made; 3-10 y>add b: new; 4-7 add a: new; " +
			"5-6 z>existsall b: yes; 8-9 exists b: no"},
		{"its own write", false, "create: made; add a: new; exists a: no"},
		{"another client's write", true, "create: made; y>add a: new; exists a: no"},
		{"an older write was answered last", true, "create: made; 3-6 add b: new; 4-5 add a: new; " +
			"exists a: no"},
		{"an older look-up was", false, "create: made; 3-6 exists b: no; 4-5 add a: new; exists a: no"},
		{"a Snapshot without an item", false, "create: made; y>add a: new; snapshot"},
	})
	copied := plain
	copied.MaxStale, copied.MaxTrust = 2*time.Millisecond, time.Minute
	checkAll(t, &copied, []sample{
		{"a Mirror forgets", false, "create: made; mirror.add a: new; mirror.exists a: no"},
		{"a new Mirror was not told", true, "create: made; 3-6 mirror.add a: new; 4-5 open: fits; " +
			"mirror.exists a: no"},
	})
}
