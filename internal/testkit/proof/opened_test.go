package proof

import (
	"testing"
	"time"
)

// TestCheckOpened is TestCheck for clients that open the filter.
func TestCheckOpened(t *testing.T) {
	const isNew, yes, fits = true, true, true
	plain := Filters{Bits: 53, Hashes: 2}
	near := Filters{Common: Common{Lag: true, ReadsNearest: true}, Bits: 53, Hashes: 2}
	copied := Filters{Bits: 53, Hashes: 2, Staleness: Staleness{MaxStale: 2 * time.Millisecond, MaxTrust: time.Minute}}
	empty := Filters{Common: Common{MissingIsEmpty: true}, Bits: 53, Hashes: 2}
	added := call(1, 2, Add, told(isNew), "a")
	by := func(session string, o one) one { o.session = session; return o }
	replaced := func(more ...one) []one { // the handle's Add met another filter, which is gone
		return append([]one{
			by("outside", call(1, 2, Smudge, told(), "a")), call(3, 4, Add, ended(Mismatch), "a"),
			by("outside", call(5, 6, Clear, told(true))), by("y", call(7, 8, Create, told(true))),
		}, more...)
	}
	synced := near
	synced.Tokens = true
	copyOf := func(items ...string) Result {
		r := done()
		for _, item := range items {
			r.Cells = r.Cells.with(near.cells(Add, item))
		}
		return r
	}
	counted := func(fits bool, n int) Result {
		r := told(fits)
		r.Count = n
		return r
	}
	smudged := plain.cells(Add, "a").with(plain.cells(Smudge, "b")).count()
	const fill = 3 // bits of the last byte behind 53 cells
	for _, tt := range []struct {
		name  string
		of    Filters
		right bool
		calls []one
	}{
		{"opened", plain, true, []one{added, call(3, 4, Open, told(fits)), call(5, 6, Exists, told(yes), "a")}},
		{"opened, and there is none", plain, false, []one{call(3, 4, Open, told(fits))}},
		{"there is none", empty, true, []one{call(3, 4, Open, ended(Missing))}},
		{"there is one, and none was found", plain, false, []one{added, call(3, 4, Open, ended(Missing))}},
		{"there is one, and an empty one was found", empty, false, []one{call(3, 4, Open, told(!fits))}},
		{"another geometry", plain, true, []one{call(1, 2, Smudge, told(), "a"), call(3, 4, Open, told(!fits))}},
		{"it has another geometry", plain, false, []one{
			call(1, 2, Smudge, told(), "a"), call(3, 4, Open, told(fits)),
		}},
		{"read in another geometry", plain, false, []one{added, call(3, 4, Open, told(!fits))}},
		{"other data", plain, true, []one{call(1, 2, Overwrite, told()), call(3, 4, Open, ended(Mismatch))}},
		{"other data, and there are none", plain, false, []one{added, call(3, 4, Open, ended(Mismatch))}},
		{"inspected", plain, true, []one{added, call(3, 4, Inspect, counted(fits, 2))}},
		{"inspected, with a bit behind the last cell", plain, true, []one{
			added, call(3, 4, Smudge, told(), "b"), call(5, 6, Inspect, counted(fits, smudged+fill)),
		}},
		{"inspected, with more bits than there are", plain, false, []one{
			added, call(3, 4, Smudge, told(), "b"), call(5, 6, Inspect, counted(fits, smudged+fill+1)),
		}},
		{"inspected, with another count", plain, false, []one{added, call(3, 4, Inspect, counted(fits, 3))}},
		{"inspected, of another geometry", plain, true, []one{
			call(1, 2, Smudge, told(), "a"), call(3, 4, Inspect, counted(!fits, 9)),
		}},
		{"inspected in another geometry", plain, false, []one{added, call(3, 4, Inspect, counted(!fits, 2))}},
		{"a region is inspected", near, false, []one{
			added, call(3, 4, Delete, told(true)), call(5, 6, Inspect, counted(fits, 2)),
		}},
		{"a region does not answer", near, false, []one{
			added, call(3, 4, Delete, told(true)), call(5, 6, Open, told(fits)),
		}},
		{"a refused handle writes", plain, false, replaced(call(9, 10, Add, told(isNew), "a"))},
		{"an opened one does", plain, true, replaced(
			call(9, 10, Open, told(fits)), call(11, 12, Add, told(isNew), "a"),
		)},
		{"it was not opened", plain, false, replaced(
			call(9, 10, Open, ended(NotRun)), call(11, 12, Add, told(isNew), "a"),
		)},
		{"a region does not know", near, true, []one{
			call(1, 2, Create, told(true)), call(3, 4, Add, told(isNew), "a"), call(5, 6, Exists, told(!yes), "a"),
		}},
		{"another saw what came after", synced, true, []one{
			call(1, 2, Create, told(true)), by("y", call(3, 12, Add, told(isNew), "b")),
			call(4, 8, Add, told(isNew), "a"), by("z", call(5, 6, ExistsAll, told(yes), "b")),
			call(9, 10, Exists, told(!yes), "b"),
		}},
		{"its own write", synced, false, []one{
			call(1, 2, Create, told(true)), call(3, 4, Add, told(isNew), "a"), call(5, 6, Exists, told(!yes), "a"),
		}},
		{"another client's write", synced, true, []one{
			call(1, 2, Create, told(true)), by("y", call(3, 4, Add, told(isNew), "a")),
			call(5, 6, Exists, told(!yes), "a"),
		}},
		{"an older write was answered last", synced, true, []one{
			call(1, 2, Create, told(true)), call(3, 8, Add, told(isNew), "b"), call(4, 7, Add, told(isNew), "a"),
			call(9, 10, Exists, told(!yes), "a"),
		}},
		{"an older look-up was", synced, false, []one{
			call(1, 2, Create, told(true)), call(3, 8, Exists, told(!yes), "b"), call(4, 7, Add, told(isNew), "a"),
			call(9, 10, Exists, told(!yes), "a"),
		}},
		{"a Snapshot without an item", synced, false, []one{
			call(1, 2, Create, told(true)), by("y", call(3, 4, Add, told(isNew), "a")),
			call(5, 6, Snapshot, copyOf()),
		}},
		{"a Snapshot without a token", near, true, []one{
			call(1, 2, Create, told(true)), by("y", call(3, 4, Add, told(isNew), "a")),
			call(5, 6, Snapshot, copyOf()),
		}},
		{"a Snapshot with more", near, false, []one{added, call(3, 4, Snapshot, copyOf("a", "b"))}},
		{"a Mirror forgets", copied, false, []one{
			call(1, 2, Create, told(true)), call(3, 8, MirrorAdd, told(isNew), "a"),
			call(9, 10, MirrorExists, told(!yes), "a"),
		}},
		{"a new Mirror was not told", copied, true, []one{
			call(1, 2, Create, told(true)), call(3, 8, MirrorAdd, told(isNew), "a"), call(4, 5, Open, told(fits)),
			call(9, 10, MirrorExists, told(!yes), "a"),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, tt.of, tt.right, tt.calls) })
	}
}
