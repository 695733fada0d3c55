package proof

import "testing"

// TestCheckCuckoo accepts right histories and rejects wrong ones.
func TestCheckCuckoo(t *testing.T) {
	two := cuckooTableOf(2).items
	checkAll(t, named{&Cuckoos{Slots: 2}, map[string]string{"a": two[0], "b": two[1]}}, []sample{
		{"one copy", true, "add a: new; exists a: yes; remove a: did; exists a: no"},
		{"two copies", true, "add a: new; add a: seen; remove a: did; exists a: yes; count: Count=1"},
		{"a copy is lost", false, "add a: new; add a: seen; remove a: did; exists a: no"},
		{"removed twice", false, "add a: new; remove a: did; remove a: did"},
		{"an item of nobody", false, "add a: new; exists b: yes"},
		{"two are new", false, "add a: new; add a: new"},
		{"equal items", false, "addall a a: new new"},
		{"a wrong count", false, "add a: new; count: Count=2"},
		{"full", true, "add b: new; " +
			"addall a a a a a: partly seen seen seen seen seen undone undone undone undone undone Full; " +
			"add a: new"},
		{"full with room", false, "add b: new; addall a a: partly seen seen undone undone Full"},
		{"full, and written", false, "add b: new; " +
			"addall a a a a a: partly seen seen seen seen seen undone undone undone undone undone Full; " +
			"add a: seen"},
		{"beyond full", false, "addall a a a a a: new seen seen seen seen"},
		{"it may have run", true, "create: made; add a: uncertain Maybe=1; exists a: yes; remove a: did; " +
			"exists a: no"},
		{"or not", true, "create: made; add a: uncertain Maybe=1; exists a: no; exists a: yes"},
		{"it ran twice", false, "create: made; add a: uncertain Maybe=1; remove a: did; remove a: did"},
		{"removed by a repeat", false, "add a: new; add a: seen; remove a: uncertain Maybe=1; " +
			"exists a: yes; remove a: did; exists a: no; exists a: yes"},
		{"sent twice", false, "add a: new Tried=2"},
		{"uncertain of nothing", false, "add a: uncertain Tried=0"},
		{"gone", false, "add a: new; exists a: missing"},
		{"deleted", true, "add a: new; delete: did; exists a: missing; delete: not"},
		{"other data", false, "add a: new; exists a: foreign"},
		{"overwritten", true, "add a: new; overwrite; remove a: foreign"},
		{"opened", true, "create: made; open: fits"},
		{"opened, and not made", false, "open: fits"},
		{"opened, and gone", false, "add a: new; open: missing"},
		{"opened in another shape", false, "add a: new; open: differs"},
		{"damage", true, "add a: new; smudge b: did; exists a: no; stats: damaged Count=1"},
		{"damage is not told", false, "add a: new; smudge b: did; stats: intact Count=1"},
		{"no damage", false, "add a: new; smudge b: not; stats: damaged Count=1"},
		{"another Config wrote", false, "create: made; addother a: new"},
		{"another Config", true, "create: made; addother a: foreign"},
		{"away and back", true, "add a: new; rename; exists a: missing"},
	})
}

// Near a region that lags, a Count may be an old one only if the caller takes
// what the region says.
func TestCheckCuckooNearARegion(t *testing.T) {
	names := map[string]string{"a": cuckooTableOf(2).items[0]}
	for _, near := range []bool{false, true} {
		of := &Cuckoos{Common: Common{Lag: true, ReadsNearest: near}, Slots: 2}
		checkAll(t, named{of, names}, []sample{{"an old count", near, "add a: new; remove a: did; count: Count=1"}})
	}
}

// TestCuckooItems proves two facts about the items: they fill few buckets, and
// with short fingerprints two of them are of one class.
func TestCuckooItems(t *testing.T) {
	for slots, classes := range map[int]int{2: itemCount + 1, 3: itemCount + 1, 4: itemCount + 1, 5: itemCount} {
		table := cuckooTableOf(slots)
		if len(table.items) != itemCount || len(table.within) != classes || len(table.within) > maxClasses {
			t.Errorf("%d slots: %d items, %d classes, want %d and %d", slots, len(table.items), len(table.within),
				itemCount, classes)
		}
		var copies [maxClasses]uint8
		class := table.class[table.items[0]]
		copies[class] = uint8(2 * slots)
		if table.within[class]&(table.within[class]-1) == 0 {
			copies[class] = uint8(slots) // in one bucket alone
		}
		if !table.fits(&copies) {
			t.Errorf("%d slots: %d copies of one item do not fit, want them to", slots, copies[class])
		}
		if copies[class]++; table.fits(&copies) {
			t.Errorf("%d slots: %d copies of one item fit, want them not to", slots, copies[class])
		}
	}
}
