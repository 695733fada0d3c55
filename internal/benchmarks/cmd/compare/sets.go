package main

import (
	"bytes"
	"context"
	"encoding/json" // the peer is net/http with encoding/json
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/upbloom/upbloom/bloom"
)

// A set is a contestant over the network. It answers "have I seen this before?".
// A call with one item uses the form for one item.
type set interface {
	add(items []string) error
	exists(items []string) ([]bool, error)
}

// Names of contestants.
const (
	filterName = "upbloom Filter"
	cuckooName = "upbloom Cuckoo"
	plainName  = "net/http + encoding/json"
	nodeName   = "@upstash/redis on Node"
	respName   = "rueidis, one BITFIELD"
	bitsName   = "bits-and-blooms v3"
	wireName   = "fasthttp, request ready"
)

const (
	capacity = 1_000_000
	rate     = 0.01
	// checked is the number of members, and of others, for which each set is
	// asked before it is timed.
	checked = 1000
)

// usual is the Config of a contest's filter.
var usual = bloom.Config{Capacity: capacity, FPRate: rate}

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

// count returns how many items s finds. With all set, it fails unless s finds them
// all.
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

// enter makes a contestant of a set.
func enter(name string, s set, size int, write bool) *contestant {
	one := &contestant{name: name, items: size}
	if write {
		one.do = func(n uint64) error { return s.add(window(members, n, size)) }
		return one
	}
	one.do = func(n uint64) error {
		_, err := count(s, window(members, n, size), false)
		return err
	}
	return one
}

// contexts are for calls of filters. Each can end, and serves one call at a time,
// as that of a handler's request does: calls that share one wait for its lock.
type contexts struct{ idle sync.Pool }

func newContexts(ctx context.Context) *contexts {
	c := &contexts{}
	c.idle.New = func() any {
		own, end := context.WithCancel(context.WithoutCancel(ctx))
		context.AfterFunc(ctx, end)
		return own
	}
	return c
}

// do calls f with a context that no other call has.
func (c *contexts) do(f func(context.Context)) {
	ctx := c.idle.Get().(context.Context)
	f(ctx)
	c.idle.Put(ctx)
}

// filterSet is a Filter, or another type with the same methods.
type filterSet struct {
	calls *contexts
	f     interface {
		Add(ctx context.Context, item string) (bool, error)
		Exists(ctx context.Context, item string) (bool, error)
		AddAll(ctx context.Context, items []string) ([]bool, error)
		ExistsAll(ctx context.Context, items []string) ([]bool, error)
		Stats(ctx context.Context) (bloom.Stats, error)
	}
}

func (s filterSet) add(items []string) (err error) {
	s.calls.do(func(ctx context.Context) {
		if len(items) == 1 {
			_, err = s.f.Add(ctx, items[0])
		} else {
			_, err = s.f.AddAll(ctx, items)
		}
	})
	return err
}

func (s filterSet) exists(items []string) (found []bool, err error) {
	s.calls.do(func(ctx context.Context) {
		if len(items) == 1 {
			found = make([]bool, 1)
			found[0], err = s.f.Exists(ctx, items[0])
		} else {
			found, err = s.f.ExistsAll(ctx, items)
		}
	})
	return found, err
}

func (a *arena) filter(url string) (filterSet, error) {
	c, err := a.client(url)
	if err != nil {
		return filterSet{}, err
	}
	f, err := bloom.New(c, a.key("filter"), usual)
	return filterSet{a.calls, f}, err
}

// plain is a client as one writes it with the standard library: net/http,
// encoding/json, and the item's bits in one BITFIELD. Its transport keeps a
// connection for each caller. With the default of two, 64 callers would dial for
// almost every call.
func (a *arena) plain(url string) bitSet {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 2048
	client, key := &http.Client{Transport: t}, a.key("plain")
	m := bloom.OptimalBits(capacity, rate)
	seven := bloom.Geometry{Bits: m, Hashes: bloom.OptimalHashes(m, capacity), Scheme: bloom.SchemeXXH3}
	return bitSet{seven, func(operations []string) ([]int64, error) {
		return post(client, url, a.token, append([]string{"BITFIELD", key}, operations...))
	}}
}

func post(c *http.Client, url, token string, command []string) ([]int64, error) {
	body, err := json.Marshal(command)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var reply struct {
		Result []int64
		Error  string
	}
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
		return nil, err
	}
	if reply.Error != "" {
		return nil, errors.New(reply.Error)
	}
	return reply.Result, nil
}

// raw sends the operations of our default scheme in Redis' own protocol: the limit
// of that protocol.
func (a *arena) raw() (bitSet, error) {
	key := a.key("raw")
	g, err := usual.Geometry()
	return bitSet{g, func(operations []string) ([]int64, error) {
		cmd := a.resp.B().Arbitrary("BITFIELD").Keys(key).Args(operations...).Build()
		return a.resp.Do(a.ctx, cmd).AsIntSlice()
	}}, err
}

// bitSet is a filter without a header. A call is one BITFIELD, with an operation
// for each independent bit, or those of the blocked scheme.
type bitSet struct {
	geo  bloom.Geometry
	send func(operations []string) ([]int64, error)
}

// wordBits is the width of a word of the blocked scheme. An item has two bits in
// each of its words.
const wordBits = 53

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

func (b bitSet) add(items []string) error {
	args := make([]string, 0, 4*len(items)*b.geo.Hashes)
	var buf [16]uint64
	for _, item := range items {
		for _, p := range b.geo.Positions(buf[:0], item) {
			args = append(args, "SET", "u1", decimal(p), "1")
		}
	}
	_, err := b.send(args)
	return err
}

// exists reads the items' bits, or their words.
func (b bitSet) exists(items []string) ([]bool, error) {
	args := make([]string, 0, 3*len(items)*b.geo.Hashes)
	var buf [16]uint64
	for _, item := range items {
		positions := b.geo.Positions(buf[:0], item)
		if b.geo.Scheme == bloom.SchemeXXH3 {
			for _, p := range positions {
				args = append(args, "GET", "u1", decimal(p))
			}
			continue
		}
		for i := 0; i < len(positions); i += 2 {
			args = append(args, "GET", "u53", decimal(positions[i]/wordBits*wordBits))
		}
	}
	answers, err := b.send(args)
	if err != nil {
		return nil, err
	}
	return b.found(items, answers)
}

// found reports which of the items are in, by the answers.
func (b bitSet) found(items []string, answers []int64) ([]bool, error) {
	each := b.geo.Hashes
	if b.geo.Scheme == bloom.SchemeBlocked {
		each /= 2
	}
	if len(answers) != each*len(items) {
		return nil, fmt.Errorf("%d answers for %d items", len(answers), len(items))
	}
	var buf [16]uint64
	found := make([]bool, len(items))
	for i, item := range items {
		mine := answers[i*each : (i+1)*each]
		found[i] = true
		for j, p := range b.geo.Positions(buf[:0], item) {
			bit := mine[j*each/b.geo.Hashes]
			if b.geo.Scheme == bloom.SchemeBlocked {
				bit = bit >> (wordBits - 1 - p%wordBits) & 1
			}
			found[i] = found[i] && bit == 1
		}
	}
	return found, nil
}
