package main

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"

	peer "github.com/bits-and-blooms/bloom/v3"
	"github.com/greatroar/blobloom"
	"github.com/zeebo/xxh3"

	"github.com/upbloom/upbloom/bloom"
)

// near is a filter in memory.
type near struct {
	name   string
	add    func(item string)
	exists func(item string) bool
}

func (f near) look(items []string) {
	for _, s := range items {
		f.exists(s)
	}
}

// nears returns the filters of a contest, and the Local among them.
func nears(n int) ([]near, *bloom.Local, error) {
	g, err := bloom.Config{Capacity: uint64(n), FPRate: rate}.Geometry()
	if err != nil {
		return nil, nil, err
	}
	ours := bloom.NewLocal(g)
	bits := peer.NewWithEstimates(uint(n), rate)
	blob := blobloom.NewOptimized(blobloom.Config{Capacity: uint64(n), FPRate: rate})
	return []near{
		{"upbloom Local", func(s string) { ours.Add(s) }, ours.Exists},
		{bitsName, func(s string) { bits.AddString(s) }, bits.TestString},
		{
			"blobloom with xxh3", func(s string) { blob.Add(xxh3.HashString(s)) },
			func(s string) bool { return blob.Has(xxh3.HashString(s)) },
		},
	}, ours, nil
}

// chunk is the number of items in a call of a near filter.
const chunk = 1 << 12

// playLocal fills filters in memory to their capacity and compares them. Each
// call has other items, from all over the filter.
func playLocal(a *arena, o options, r *report) error {
	for _, n := range o.local {
		all, ours, err := nears(n)
		if err != nil {
			return err
		}
		var fill sync.WaitGroup
		for _, f := range all {
			fill.Go(func() { eachEmail("user-", n, f.add) })
		}
		fill.Wait()
		for _, f := range all {
			if err := f.check(n); err != nil {
				return err
			}
		}
		for _, c := range localContests(n, all, ours) {
			if err := r.play(a, o, []*contest{c}); err != nil {
				return err
			}
		}
		runtime.GC()
	}
	return nil
}

// check looks for members of a filter of n items, and for others.
func (f near) check(n int) error {
	missing, found := 0, 0
	eachEmail("user-", min(n, 1<<16), func(s string) {
		if !f.exists(s) {
			missing++
		}
	})
	eachEmail("other-", 1<<16, func(s string) {
		if f.exists(s) {
			found++
		}
	})
	if missing > 0 || found > 2*(1<<16)/100 {
		return fmt.Errorf("%s: %d members missing, %d of %d others found", f.name, missing, found, 1<<16)
	}
	return nil
}

// localContests returns the contests of filters with n items. The Local takes
// part once more, with a batch in place of each item's call.
func localContests(n int, all []near, ours *bloom.Local) (contests []*contest) {
	members, others := emails("user-", min(n, 1<<18)), emails("other-", 1<<18)
	works := []struct {
		name  string
		items []string
		do    func(f near, items []string)
		batch string
		all   func(items []string) []bool
	}{
		{"Add", members, func(f near, items []string) {
			for _, s := range items {
				f.add(s)
			}
		}, "AddAll", ours.AddAll},
		{"found", members, near.look, "ExistsAll", ours.ExistsAll},
		{"not found", others, near.look, "ExistsAll", ours.ExistsAll},
	}
	for _, w := range works {
		c := &contest{name: fmt.Sprintf("Local, %d items, %s", n, w.name), callers: 1}
		part := func(n uint64) []string { return window(w.items, n, min(chunk, len(w.items))) }
		for _, f := range all {
			c.contestants = append(c.contestants, &contestant{
				name: f.name, items: chunk,
				do: func(n uint64) error { w.do(f, part(n)); return nil },
			})
		}
		c.contestants = append(c.contestants, &contestant{
			name: "upbloom Local, " + w.batch, items: chunk,
			do: func(n uint64) error { w.all(part(n)); return nil },
		})
		contests = append(contests, c)
	}
	return contests
}

// eachEmail calls f with n items without keeping them.
func eachEmail(name string, n int, f func(string)) {
	var room [64]byte
	for i := range n {
		item := strconv.AppendInt(append(room[:0], name...), int64(i), 10)
		f(string(append(item, "@example.com"...)))
	}
}
