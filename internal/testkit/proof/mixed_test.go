package proof

import (
	"testing"
	"time"
)

// TestCheckMixed checks histories of a filter with a window or a scalable filter
// beside it. Into names the handles: 0 and 2 are of the filter, and 2 has MustExist; 3
// and 4 are of the other one.
func TestCheckMixed(t *testing.T) {
	samples := []sample{
		{"new, then seen", true, "addin/Into=0,3 a: new new; addin/Into=0,3 a: seen seen"},
		{"one of them was deleted", true, "addin/Into=0,3 a: new new; delete/Shard=1: did; addin/Into=0,3 a: seen new"},
		{"the other was deleted", false, "addin/Into=0,3 a: new new; delete: did; addin/Into=0,3 a: seen new"},
		{"new twice in the first", false, "addin/Into=0,3 a: new new; addin/Into=0,3 a: new seen"},
		{"new twice in the other", false, "addin/Into=0,3 a: new new; addin/Into=0,3 a: seen new"},
		{"seen of nobody", false, "addin/Into=0,3 a: new seen"},
		{"uncertain for no reason", false, "addin/Into=0,3 a: new new; addin/Into=0,3 a: uncertain seen"},
		{"uncertain after a lost answer", true, "" +
			"addin/Into=0,3 a: new new; addin/Into=0,3 a: uncertain uncertain lost"},
		{"seen after a lost answer", false, "addin/Into=0,3 a: uncertain seen lost"},
		{"one handle twice", true, "addin/Into=3,4 a: new seen"},
		{"one handle twice, both new", false, "addin/Into=3,4 a: new new"},
		{"must exist, and missing", true, "addin/Into=2,0 a: missing new"},
		{"must exist, and made", false, "addin/Into=2 a: new"},
		{"must exist, and there", true, "addin/Into=0,3 a: new new; addin/Into=2 a: seen"},
		{"safe, and in one of them", false, "addin/Into=2,0 a: missing new Safe Err=failed"},
		{"safe, and in none of them", true, "addin/Into=2 a: missing Safe Err=failed"},
		{"the second command first", false, "addin/Into=0,3 a: new new; delete: did; addin/Into=2,0 a: seen new"},
		{"looked up in each by itself", true, "addin/Into=0,3 a: new new; exists/Shard=1 a: yes"},
		{"looked up, and nobody added it", false, "exists/Shard=1 a: yes"},
	}
	f := Filters{Bits: 106, Hashes: 4}
	checkAll(t, named{&Mixed{
		Filter: f, Window: &Windows{Span: 10 * time.Second, Panes: 1, ExpireIdle: true},
	}, letters}, samples)
	checkAll(t, named{&Mixed{
		Filter: f, Scalable: &Scalables{Common: Common{MissingIsEmpty: true}, FPRate: 0.5, Layers: 1},
	}, letters}, samples)
}

// TestMixedSecondFirst: of two commands to one filter the second may not have run
// first, unless something removed the filter at that time.
func TestMixedSecondFirst(t *testing.T) {
	m := named{&Mixed{Filter: Filters{Bits: 106, Hashes: 4}, Scalable: &Scalables{FPRate: 0.5, Layers: 1}}, letters}
	const swapped = "add b: new; 3-6 addin/Into=2,0 a: seen new"
	checkAll(t, m, []sample{{"the second found nothing, the first the item", false, swapped}})
	removed := text(swapped + "; 4-5 clear: did").history(m)
	if err := removed.together(removed.calls[1], 0, true); err != nil {
		t.Errorf("the filter was removed meanwhile: %v", err)
	}
}
