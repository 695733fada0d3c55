package main

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	peer "github.com/bits-and-blooms/bloom/v3"
	"github.com/greatroar/blobloom"
	"github.com/zeebo/xxh3"

	"github.com/upbloom/upbloom/bloom"
)

// playBulk compares uploads of a million members, downloads of the filter, and
// the answers of a Mirror, with and without a writer.
func playBulk(a *arena, o options, r *report) error {
	n := capacity
	if o.short() {
		n = 20_000
	}
	all := emails("bulk-", n)
	c, err := a.client(a.url)
	if err != nil {
		return err
	}
	loads := &contest{name: fmt.Sprintf("%d members brought in", n), callers: 1}
	bulk := func(name string, load func(f *bloom.Filter) error) *contestant {
		return &contestant{name: name, items: n, do: func(uint64) error {
			f, err := newFilter(c, a.key("bulk"))
			if err == nil {
				err = load(f)
			}
			if err == nil {
				_, err = count(filterSet{a.calls, f}, all[:1000], true)
			}
			if err == nil {
				_, err = f.Delete(a.ctx)
			}
			return err
		}}
	}
	loads.contestants = []*contestant{
		bulk("upbloom Load", func(f *bloom.Filter) error {
			_, err := f.Load(a.ctx, slices.Values(all))
			return err
		}),
		bulk("upbloom AddAll", func(f *bloom.Filter) error {
			_, err := f.AddAll(a.ctx, all)
			return err
		}),
		{name: "SADD, 10,000 a request", items: n, do: func(uint64) error {
			s := memberSet{a.ctx, c, a.key("bulk-set")}
			for part := range slices.Chunk(all, 10_000) {
				if err := s.add(part); err != nil {
					return err
				}
			}
			if _, err := count(s, all[:1000], true); err != nil {
				return err
			}
			return a.admin.Del(a.ctx, s.key).Err()
		}},
	}
	mirrors, err := a.mirrors(all)
	if err != nil {
		return err
	}
	o.rounds = min(o.rounds, 3) // a round takes many seconds
	return r.play(a, o, append([]*contest{loads}, mirrors...))
}

// mirrors compares look-ups in a Mirror with those of its Filter.
func (a *arena) mirrors(all []string) ([]*contest, error) {
	c, err := a.client(a.url)
	if err != nil {
		return nil, err
	}
	key := a.key("mirrored")
	f, err := newFilter(c, key)
	if err != nil {
		return nil, err
	}
	if _, err := f.Load(a.ctx, slices.Values(all)); err != nil {
		return nil, err
	}
	m, err := bloom.NewMirror(f, bloom.MirrorConfig{MaxStale: time.Second, MaxTrust: time.Hour})
	if err != nil {
		return nil, err
	}
	ask := func(ask func(n uint64) (bool, error)) func(uint64) error {
		return func(n uint64) error {
			found, err := ask(n)
			if err == nil && !found {
				err = fmt.Errorf("a member was not found")
			}
			return err
		}
	}
	inMirror := ask(func(n uint64) (bool, error) { return m.Exists(a.ctx, all[n%uint64(len(all))]) })
	inFilter := ask(func(n uint64) (bool, error) { return f.Exists(a.ctx, all[n%uint64(len(all))]) })
	snapshot := &contest{name: "Snapshot of a filter for a million", callers: 1, contestants: []*contestant{
		{name: "upbloom Snapshot", items: 1, do: func(uint64) error {
			_, err := f.Snapshot(a.ctx)
			return err
		}},
		{name: "GET by go-redis", items: 1, do: func(uint64) error {
			return a.admin.Get(a.ctx, key).Err()
		}},
	}}
	quiet := &contest{name: "Mirror with MaxStale of 1 s, nobody writes", callers: 1}
	busy := &contest{name: "Mirror with MaxStale of 1 s, beside an Add for each 1,000 look-ups", callers: 1}
	quiet.contestants = []*contestant{
		{name: "upbloom Mirror", items: 1, do: inMirror},
		{name: filterName + ", Exists", items: 1, do: inFilter},
	}
	busy.contestants = []*contestant{
		{name: "upbloom Mirror", items: 1, do: func(n uint64) error {
			if n%1000 == 0 {
				if _, err := f.Add(a.ctx, fmt.Sprintf("late-%d", n)); err != nil {
					return err
				}
			}
			return inMirror(n)
		}},
		{name: filterName + ", Exists", items: 1, do: inFilter},
	}
	return []*contest{snapshot, quiet, busy}, nil
}

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
