package main

import (
	"fmt"
	"strconv"
)

// A set is a contestant over the network. It answers "have I seen this
// before?". A call with one item uses the form for one item.
type set interface {
	add(items []string) error
	exists(items []string) ([]bool, error)
}

const (
	capacity = 1_000_000
	rate     = 0.01
	// checked is the number of members, and of others, for which each set is
	// asked before it is timed.
	checked = 1000
)

// members are the items of the contests. absent are others.
var (
	members = emails("user-", 1<<16)
	absent  = emails("other-", 1<<16)
)

func emails(name string, n int) []string {
	items := make([]string, n)
	for i := range items {
		items[i] = name + strconv.Itoa(i) + "@example.com"
	}
	return items
}

// window returns size items of all, other ones for each n.
func window(all []string, n uint64, size int) []string {
	at := int(n*uint64(size)) % (len(all) - size + 1)
	return all[at : at+size]
}

// check adds items in batches of the given size, and fails unless s finds them
// all, and of others at most 3 in 100.
func check(s set, size int) error {
	for n := 0; n < checked; n += size {
		part := members[n : n+size]
		if err := s.add(part); err != nil {
			return err
		}
		if _, err := count(s, part, true); err != nil {
			return err
		}
	}
	wrong := 0
	for n := 0; n < checked; n += size {
		found, err := count(s, absent[n:n+size], false)
		if err != nil {
			return err
		}
		wrong += found
	}
	if wrong > max(checked, size)*3/100 {
		return fmt.Errorf("%d of %d absent items were found", wrong, max(checked, size))
	}
	return nil
}

// count returns how many items s finds. With all set, it fails unless s finds
// them all.
func count(s set, items []string, all bool) (n int, err error) {
	found, err := s.exists(items)
	if err != nil {
		return 0, err
	}
	if len(found) != len(items) {
		return 0, fmt.Errorf("%d answers for %d items", len(found), len(items))
	}
	for i, f := range found {
		if f {
			n++
		} else if all {
			return 0, fmt.Errorf("%q was added and is not found", items[i])
		}
	}
	return n, nil
}

// adding and asking make contestants of a set.
func adding(name string, s set, size int) *contestant {
	return &contestant{name: name, items: size, do: func(n uint64) error {
		return s.add(window(members, n, size))
	}}
}

func asking(name string, s set, size int) *contestant {
	return &contestant{name: name, items: size, do: func(n uint64) error {
		found, err := s.exists(window(members, n, size))
		if err == nil && len(found) != size {
			err = fmt.Errorf("%d answers for %d items", len(found), size)
		}
		return err
	}}
}
