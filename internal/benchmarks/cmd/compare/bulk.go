package main

import (
	"fmt"
	"slices"
	"time"

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
