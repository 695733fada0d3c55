package main

import (
	"fmt"

	"github.com/upbloom/upbloom/bloom"
)

// operation names the work of a contest: "Add" or "Exists".
func operation(write bool) string {
	if write {
		return "Add"
	}
	return "Exists"
}

func enter(e entrant, size int, write bool) *contestant {
	if write {
		return adding(e.name, e.set, size)
	}
	return asking(e.name, e.set, size)
}

// single returns the contests of one item a call, in front of Redis. Every
// entrant has been checked.
func (a *arena) single(callers []int) ([]*contest, error) {
	entrants, err := a.rest(a.url)
	if err != nil {
		return nil, err
	}
	resp, err := a.resp()
	if err != nil {
		return nil, err
	}
	entrants = append(entrants, resp...)
	w, err := a.windowEntrant()
	if err != nil {
		return nil, err
	}
	entrants = append(entrants, w)
	return a.contests(place{name: "Redis", url: a.url}, entrants, callers)
}

// windowEntrant is a Window of the same size.
func (a *arena) windowEntrant() (entrant, error) {
	c, err := a.client(a.url)
	if err != nil {
		return entrant{}, err
	}
	w, err := bloom.NewWindow(c, a.key("window"), bloom.WindowConfig{
		Capacity: capacity, FPRate: rate, Span: day,
	})
	return entrant{windowName, filterSet{a.calls, w}}, err
}

// place is where contests meet.
type place struct {
	name, url string
	apart     bool
}

// start starts a process of the place.
func (p place) start(client bool, start func() error) error {
	if p.apart {
		return startApart(client, start)
	}
	return start()
}

// stubbed returns the same contests against a server with answers from memory.
// They measure only the client. One caller and its server wait for each other:
// the system would decide who runs when and which processor sleeps. So the
// client and the server get a processor each, which stays awake.
func (a *arena) stubbed(callers []int) (all []*contest, err error) {
	for _, n := range callers {
		p := place{name: "memory", apart: n == 1}
		err := p.start(false, func() (err error) {
			p.url, err = startRole(a.ctx, "stub", a.url)
			return err
		})
		if err != nil {
			return nil, err
		}
		entrants, err := a.rest(p.url)
		if err != nil {
			return nil, err
		}
		ours := entrants[0].set.(filterSet)
		// What is kept in Redis makes no difference here.
		entrants = []entrant{entrants[0], {endlessName, filterSet{nil, ours.f}}, entrants[1]}
		part, err := a.contests(p, entrants, []int{n})
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	return all, nil
}

// contests checks the entrants, adds the limit and Node, and returns a contest
// for each operation and number of callers.
func (a *arena) contests(at place, entrants []entrant, callers []int) ([]*contest, error) {
	if a.nodeFolder != "" {
		var node *nodeSet
		err := at.start(true, func() (err error) {
			node, err = startNode(a.ctx, a.nodeFolder, at.url, a.token, a.key("node"))
			return err
		})
		if err != nil {
			return nil, err
		}
		entrants = append(entrants, entrant{nodeName, node})
	}
	for _, e := range entrants {
		if err := a.check(e.set, at.url); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	var all []*contest
	for _, write := range []bool{true, false} {
		for _, n := range callers {
			name := fmt.Sprintf("%s, callers: %d, server: %s", operation(write), n, at.name)
			c := &contest{name: name, callers: n, apart: at.apart}
			limit, err := a.limit(at.url, 1, write)
			if err != nil {
				return nil, err
			}
			for _, e := range entrants {
				one := enter(e, 1, write)
				if node, ok := e.set.(*nodeSet); ok {
					one = node.contestant(e.name, write)
				}
				c.contestants = append(c.contestants, one)
			}
			c.contestants = append(c.contestants, limit)
			all = append(all, c)
		}
	}
	return all, nil
}

// check checks a set. If a server answers from memory, it gives each request
// the answer to the first one like it. Only one member can then be checked.
func (a *arena) check(s set, url string) error {
	if url == a.url {
		return check(s, 1)
	}
	part := members[:1]
	for range 3 {
		if err := s.add(part); err != nil {
			return err
		}
		if _, err := count(s, part, true); err != nil {
			return err
		}
	}
	return nil
}

// batches returns the contests of many items a call.
func (a *arena) batches(sizes []int) ([]*contest, error) {
	var all []*contest
	for _, write := range []bool{true, false} {
		for _, size := range sizes {
			entrants, err := a.rest(a.url)
			if err != nil {
				return nil, err
			}
			resp, err := a.resp()
			if err != nil {
				return nil, err
			}
			w, err := a.windowEntrant()
			if err != nil {
				return nil, err
			}
			entrants = append(append(entrants, resp...), w)
			limit, err := a.limit(a.url, size, write)
			if err != nil {
				return nil, err
			}
			c := &contest{name: fmt.Sprintf("%sAll(%d)", operation(write), size), callers: 1}
			for _, e := range entrants {
				if err := check(e.set, min(size, checked)); err != nil {
					return nil, fmt.Errorf("%s: %w", e.name, err)
				}
				c.contestants = append(c.contestants, enter(e, size, write))
			}
			c.contestants = append(c.contestants, limit)
			all = append(all, c)
		}
	}
	return all, nil
}
