//go:build !race

package bloom

import "testing"

func TestWireAllocatesNothing(t *testing.T) {
	f := wireFilter(t)
	const item = "user-123@example.com"
	added := replyTo(t, f, true, 1)
	found := replyTo(t, f, false, 1)
	s := new(scratch)
	for name, work := range map[string]func(){
		"encode an Add": func() {
			f.beginWrite(&s.cmd)
			f.setItem(s, item)
			if s.cmd.Command().Size() == 0 {
				t.Fatal("empty")
			}
		},
		"encode an Exists": func() {
			f.beginRead(&s.cmd)
			f.getItem(s, item)
			if s.cmd.Command().Size() == 0 {
				t.Fatal("empty")
			}
		},
	} {
		work() // the scratch grows once
		if n := testing.AllocsPerRun(100, work); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	f.beginWrite(&s.cmd)
	f.setItem(s, item)
	decode := func() {
		if w, err := f.readWrite(added, s); err != nil || allSet(w.old) {
			t.Fatal(w, err)
		}
	}
	decode()
	if n := testing.AllocsPerRun(100, decode); n != 0 {
		t.Errorf("decode the reply of an Add: %v allocations", n)
	}
	f.beginRead(&s.cmd)
	f.getItem(s, item)
	decode = func() {
		answers, err := f.answers(found, s)
		if err != nil || allSet(answers[1:]) || f.verify(answers[0].Int64) != nil {
			t.Fatal(answers, err)
		}
	}
	decode()
	if n := testing.AllocsPerRun(100, decode); n != 0 {
		t.Errorf("decode the reply of an Exists: %v allocations", n)
	}
}
