package proof

import (
	"testing"
	"time"
)

// TestCheckMoves is TestCheck for moves of whole filters. Items a and b share
// no bit.
func TestCheckMoves(t *testing.T) {
	checkAll(t, sharing(t), []sample{
		{"loaded", true, "load a b: made Count=4; exists b: yes"},
		{"loaded, and made twice", false, "load a: made Count=2; load b: made Count=2"},
		{"loaded, and counted wrong", false, "load a b: made Count=3"},
		{"a Load that came back after a Delete", false, "1-6 load a: made lost Count=-1; 2-3 exists a: yes; " +
			"4-5 delete: did; exists a: yes"},
		{"a Load that may have run, late", true, "load a: unknown; exists a: missing; exists a: yes"},
		{"a Replace that undid another and an Add", false, "1-10 replace a; 2-3 exists a: yes; " +
			"4-5 replace b; 6-7 add a: new; 8-9 exists b: yes; exists b: no"},
		{"replaced", true, "add a: new; replace b; existsall a b: no yes"},
		{"another filter was replaced", true, "smudge a: not; add a: foreign; replace a; exists a: yes"},
		{"other data was replaced", false, "overwrite; replace a"},
		{"a handle that met other data wrote again", false, "overwrite; add a: foreign; add a: foreign"},
		{"new in another program's filter", false, "plant a b; add a: new lost"},
		{"copied", true, "add a: new; snapshot: cells=a"},
		{"copied while it is added", true, "add a: new; 3-6 snapshot: cells=a; 4-5 add b: new"},
		{"an empty copy of a filter that was away", false, "add a: new; 3-8 snapshot; 4-5 rename; " +
			"6-7 rename/Key=1"},
		{"a copy with items of nobody", false, "add a: new; snapshot: cells=a,b"},
		{"renamed", true, "add a: new; rename; exists a: missing; exists/Key=1 a: yes"},
		{"renamed over something", false, "create: made; create/Key=1: made; rename"},
		{"counted behind the last cell", false, "add a: new; stats: Count=5"},
		{"many refreshes for callers at once", false, "mirror.crowd: Count=2"},
	})
}

// TestCheckBackups is TestCheck for a Backup, which is restored to a free key
// alone. Items a and b share no bit.
func TestCheckBackups(t *testing.T) {
	checkAll(t, sharing(t), []sample{
		{"it has what was there", true, "add a: new; takebackup: yes; add b: new; delete: did; " +
			"restorebackup: did; existsall a b: yes no"},
		{"it has what came later", false, "add a: new; takebackup: yes; add b: new; delete: did; " +
			"restorebackup: did; exists b: yes"},
		{"half of it is there", false, "add a: new; takebackup: yes; add b: new; delete: did; " +
			"restorebackup: did; exists a: no"},
		{"the key is taken", true, "add a: new; takebackup: yes; add b: new; restorebackup: taken; " +
			"exists b: yes"},
		{"a free key is taken", false, "add a: new; takebackup: yes; add b: new; delete: did; " +
			"restorebackup: taken"},
		{"over a filter", false, "add a: new; takebackup: yes; add b: new; restorebackup: did"},
		{"twice", false, "add a: new; takebackup: yes; add b: new; delete: did; restorebackup: did; " +
			"restorebackup: did"},
		{"it may have run, and did", true, "add a: new; takebackup: yes; add b: new; delete: did; " +
			"restorebackup: unknown; exists a: yes"},
		{"it may have run, and did not", true, "add a: new; takebackup: yes; add b: new; delete: did; " +
			"restorebackup: unknown; exists a: missing"},
		{"its first attempt ran, and the filter was removed", true, "add a: new; takebackup: yes; " +
			"add b: new; delete: did; 9-16 restorebackup: taken lost; 10-11 exists a: yes; " +
			"12-13 delete: did; 14-15 add b: new; exists a: no"},
		{"a later Backup", true, "add a: new; takebackup: yes; add b: new; takebackup: no; delete: did; " +
			"restorebackup: did; exists b: no"},
	})
}

// TestCheckOver checks the Loads of handles with a Capacity. A filter is too full
// with the items a, b and c.
func TestCheckOver(t *testing.T) {
	f := &Filters{Bits: 53, Hashes: 2, Sized: true}
	full := bits{}
	for _, item := range letters {
		full = full.with(f.cells(AddAll, item))
	}
	if n := full.count(); n != 6 || !tooFull(f.geometry(), n) || tooFull(f.geometry(), 4) {
		t.Fatalf("%d bits are set, and two items are too many: %v", n, tooFull(f.geometry(), 4))
	}
	checkAll(t, named{f, letters}, []sample{
		{"too full", true, "addall item-0 item-1 item-2: new new new; load item-0: found Over Sized"},
		{"too full, and it does not say so", false, "addall item-0 item-1 item-2: new new new; " +
			"load item-0: found Sized"},
		{"not too full", true, "add item-0: new; load item-0: found Sized"},
		{"not too full, and it says so", false, "add item-0: new; load item-0: found Over Sized"},
		{"an answer from another moment", true, "addall item-0 item-1 item-2: new new new; " +
			"load item-0: found lost Count=-1 Sized"},
	})
}

// TestCheckExpired lets filters with a TTL expire at both keys.
func TestCheckExpired(t *testing.T) {
	for _, ttl := range []time.Duration{0, time.Hour} {
		for _, calls := range []text{"create: made; exists a: missing", "create/Key=1: made; exists/Key=1 a: missing"} {
			h := calls.history(&Filters{Common: Common{TTL: ttl}, Bits: 53, Hashes: 2})
			h.MayExpire(1)
			if err := h.Check(); (err == nil) != (ttl > 0) {
				t.Errorf("TTL %v, %s: Check() = %v, want an error only without a TTL", ttl, calls, err)
			}
		}
	}
}

// TestCheckLosses is TestCheck for a database that comes back with an older
// state, and for copies that others make. Items a and b share no bit.
func TestCheckLosses(t *testing.T) {
	checkAll(t, sharing(t), []sample{
		{"an acknowledged Add is lost", true, "add a: new; keep; add b: new; revert; existsall a b: yes no"},
		{"an Add before it is not lost", false, "add a: new; keep; revert; exists a: no"},
		{"the state was that of no filter", true, "add a: new; revert; exists a: missing"},
		{"a copy at the other key", true, "add a: new; copyover; delete: did; exists/Key=1 a: yes"},
		{"a copy has what came later", false, "add a: new; copyover; add b: new; exists/Key=1 b: yes"},
		{"a copy is moved over the filter", true, "add a: new; copyover; add b: new; delete: did; " +
			"rename/Key=1; existsall a b: yes no"},
		{"a refusal without a reason", false, "add a: new; add b: foreign Tried=0 Safe"},
		{"a refusal after other data", true, "overwrite: no; exists a: foreign; clear: did; " +
			"add b: foreign Tried=0 Safe"},
	})
}

// TestCheckCopy: after a loss a Mirror's copy counts for MaxCopy, and without one for
// MaxStale.
func TestCheckCopy(t *testing.T) {
	of := sharing(t)
	f := of.Subject.(*Filters)
	f.MaxStale, f.MaxTrust, f.MaxCopy = time.Millisecond, time.Millisecond, 10*time.Millisecond
	checkAll(t, of, []sample{
		{"without a loss", false, "6-8 add a: new; 60-62 mirror.exists a: no"},
		{"within MaxCopy", true, "2-4 keep; 6-8 add a: new; 10-12 revert; 14-16 add b: new; " +
			"20-22 mirror.exists a: yes"},
		{"the lost item, after MaxCopy", false, "2-4 keep; 6-8 add a: new; 10-12 revert; 14-16 add b: new; " +
			"60-62 mirror.exists a: yes"},
		{"the later item, within MaxCopy", true, "2-4 keep; 6-8 add a: new; 10-12 revert; 14-16 add b: new; " +
			"20-22 mirror.exists b: no"},
		{"the later item, after MaxCopy", false, "2-4 keep; 6-8 add a: new; 10-12 revert; 14-16 add b: new; " +
			"60-62 mirror.exists b: no"},
	})
}
