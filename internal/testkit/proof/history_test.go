package proof

import (
	"testing"
	"time"
)

// TestCheck has right histories, and others with one wrong answer. Items a and
// b share no bit. Together they set the bits of c.
func TestCheck(t *testing.T) {
	checkAll(t, sharing(t), []sample{
		{"added, found", true, "add a: new; exists a: yes"},
		{"a false no", false, "add a: new; exists a: no"},
		{"found while it is added", true, "1-4 add a: new; 2-3 create: found; 2-3 exists a: yes"},
		{"a yes from nowhere", false, "add a: new; exists b: yes"},
		{"a false positive", true, "addall a b: new new; exists c: yes; add c: seen"},
		{"half of a false positive", false, "add a: new; exists c: yes"},
		{"new twice", false, "add a: new; 1-2 add a: new"},
		{"new again after a removal", true, "add a: new; delete: did; add a: new"},
		{"seen by one's own lost attempt", false, "add a: seen lost"},
		{"seen, and an attempt lost", true, "add a: new; add a: seen lost"},
		{"uncertain after a lost attempt", true, "add a: uncertain lost"},
		{"uncertain without one", false, "add a: new; add a: uncertain"},
		{"uncertain, and lost", false, "add a: uncertain lost; exists a: no"},
		{"it may have run, and did, late", true, "add a: unknown; exists a: missing; exists a: yes"},
		{"it may have run, and did not", true, "add a: unknown; add a: new"},
		{"it did not run, but did", false, "add a: refused; add a: seen"},
		{"gone by itself", false, "add a: new; exists a: missing"},
		{"gone by a deletion of unknown end", true, "add a: new; delete: unknown; exists a: missing"},
		{"expired without a TTL", false, "add a: new; expire: did; exists a: missing"},
		{"a TTL on other data", false, "overwrite: yes; expire: did"},
		{"made twice", false, "create: made; create: made"},
		{"a batch in parts, one filter", true, "1-4 addall/Parts a b: new new; 2-3 exists a: yes"},
		{"a batch in parts, over two filters", false, "1-6 addall/Parts a b: new new; 2-3 exists a: yes; " +
			"4-5 delete: did; existsall a b: no yes"},
		{"parts that are done, and parts that are not", true, "" +
			"addall/Parts a b: partly new seen done undone; existsall a b: yes no"},
	})
}

// TestCheckTTL is TestCheck for histories that depend on the Config.
func TestCheckTTL(t *testing.T) {
	f := Filters{Bits: 53, Hashes: 2}
	checkAll(t, &f, []sample{
		{"nobody set one", false, "add a: new; hasttl: has"},
		{"Expire set one", true, "add a: new; setttl: did; hasttl: has"},
		{"Persist found one that nobody set", false, "create: made; persist: did"},
		{"Persist is repeated, and finds no filter", true, "persist: uncertain lost"},
		{"Persist is repeated, and is sure that there is no filter", false, "persist: not lost"},
		{"Expire is repeated, and is sure that there is no filter", false, "setttl: not lost"},
		{"Expire found a filter that nobody made", false, "setttl: did lost"},
		{"Create is repeated, and made it twice", false, "1-4 create: made lost; 2-3 create: made; " +
			"exists a: no"},
		{"Create is repeated after a Delete", true, "1-6 create: made lost; 2-3 exists a: no; " +
			"4-5 delete: did; exists a: no"},
		{"Create found the filter that it made", false, "create: found lost"},
		{"Create found another's", true, "1-8 create: found lost; 2-3 exists a: no; 4-5 delete: did; " +
			"6-7 create: made"},
	})
	f.TTL = time.Hour
	checkAll(t, &f, []sample{
		{"a TTL", true, "add a: new; hasttl: has"},
		{"it expired", true, "add a: new; expire: did; exists a: missing"},
		{"it is missing at last", false, "add a: new; hasttl: none"},
		{"Persist took it off", true, "add a: new; persist: did; hasttl: none"},
		{"a write did not say that there is none", false, "add a: new; probettl: none"},
		{"a write said that there is none", true, "add a: new NoTTL; probettl: none"},
		{"one of two writes did not say so", false, "1-6 add a: new NoTTL; 2-3 add b: new; 4-5 probettl: none"},
		{"another filter has none", true, "add a: new; delete: did; 5-8 add a: unknown lost; " +
			"6-7 probettl: none"},
		{"Persist took it off before the write", true, "add a: new; persist: did; add b: new; probettl: none"},
		{"Persist was of a filter before", false, "add a: new; persist: did; clear: did; add b: new; " +
			"probettl: none"},
		{"it came back after Persist", false, "add a: new; persist: did; hasttl: has"},
		{"it expired after Persist", false, "add a: new; persist: did; expire: did"},
		{"Persist's own lost attempt may have removed it", false, "add a: new; persist: not lost"},
		{"Persist is not sure who removed it", true, "add a: new; persist: uncertain lost"},
		{"Persist is repeated, and removes another's TTL", true, "add a: new; 3-8 persist: did lost; " +
			"4-5 hasttl: none; 6-7 setttl: did; hasttl: none"},
		{"Persist is repeated, and both removed one", false, "add a: new; 3-8 persist: did lost; " +
			"4-5 persist: did; 6-7 hasttl: none"},
		{"Persist finds no filter", true, "persist: not"},
	})
	f.TTL, f.MustExist = 0, true
	checkAll(t, &f, []sample{
		{"an Add made what must exist", false, "add a: new"},
		{"a lost Add made what must exist", false, "add a: unknown; exists a: yes"},
		{"it must exist, and does not", true, "add a: missing"},
		{"it must exist, and is not safe to retry", false, "add a: missing !Safe"},
		{"it must exist, and a lost attempt is safe to retry", false, "add a: missing lost"},
		{"it must exist, and does", false, "create: made; add a: missing"},
	})
}

// sharing returns a type and three such items.
func sharing(t *testing.T) named {
	t.Helper()
	f := &Filters{Bits: 53, Hashes: 2}
	names := make([]string, 200)
	for i := range names {
		names[i] = string(rune('a'+i/26)) + string(rune('a'+i%26))
	}
	for _, a := range names {
		for _, b := range names {
			for _, c := range names {
				x, y, z := f.cells(Add, a), f.cells(Add, b), f.cells(Add, c)
				apart := x[0]&y[0] == 0 && x[1]&y[1] == 0
				if apart && x.with(y).has(z) && !x.has(z) && !y.has(z) {
					return named{f, map[string]string{"a": a, "b": b, "c": c}}
				}
			}
		}
	}
	t.Fatal("no such items")
	return named{}
}
