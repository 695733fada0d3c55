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

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	zerobloom "github.com/zeromicro/go-zero/core/bloom"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
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

// contexts are for calls of filters. Each can end, and serves one call at a
// time, as that of a handler's request does: calls that share one wait for its
// lock.
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

// do calls f with a context no other call has. Those of nil cannot end.
func (c *contexts) do(f func(context.Context)) {
	if c == nil {
		f(context.Background())
		return
	}
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

func newFilter(c *upstash.Client, key string) (*bloom.Filter, error) {
	return bloom.New(c, key, usual)
}

// usual is the Config of a contest's filter.
var usual = bloom.Config{Capacity: capacity, FPRate: rate}

// memberSet is a Redis set through the same client.
type memberSet struct {
	ctx context.Context
	c   *upstash.Client
	key string
}

func (s memberSet) add(items []string) error {
	r, err := s.c.Do(s.ctx, upstash.Cmd("SADD", append([]string{s.key}, items...)...))
	if err != nil {
		return err
	}
	return r.Err()
}

func (s memberSet) exists(items []string) ([]bool, error) {
	r, err := s.c.Do(s.ctx, upstash.Cmd("SMISMEMBER", append([]string{s.key}, items...)...))
	if err != nil {
		return nil, err
	}
	answers, err := r.Array()
	found := make([]bool, len(answers))
	for i, a := range answers {
		n, err := a.Int64()
		if err != nil {
			return nil, err
		}
		found[i] = n == 1
	}
	return found, err
}

// keySet has a Redis key for each item, through the same client. A batch is a
// pipeline.
type keySet struct {
	ctx    context.Context
	c      *upstash.Client
	prefix string
}

func (s keySet) add(items []string) error {
	_, err := s.all(items, func(item string) upstash.Command {
		return upstash.Cmd("SET", s.prefix+item, "1", "NX", "EX", "86400")
	})
	return err
}

func (s keySet) exists(items []string) ([]bool, error) {
	replies, err := s.all(items, func(item string) upstash.Command {
		return upstash.Cmd("EXISTS", s.prefix+item)
	})
	found := make([]bool, len(replies))
	for i, r := range replies {
		n, err := r.Int64()
		if err != nil {
			return nil, err
		}
		found[i] = n == 1
	}
	return found, err
}

func (s keySet) all(items []string, cmd func(string) upstash.Command) ([]upstash.Reply, error) {
	if len(items) == 1 {
		r, err := s.c.Do(s.ctx, cmd(items[0]))
		if err == nil {
			err = r.Err()
		}
		return []upstash.Reply{r}, err
	}
	cmds := make([]upstash.Command, len(items))
	for i, item := range items {
		cmds[i] = cmd(item)
	}
	replies, err := s.c.Pipeline(s.ctx, cmds...)
	for _, r := range replies {
		if err == nil {
			err = r.Err()
		}
	}
	return replies, err
}

// plainSet is a client as one writes it with the standard library: net/http,
// encoding/json, and 7 independent bits in one BITFIELD. Its transport keeps a
// connection for each caller. With the default of two, 64 callers would dial
// for almost every call.
type plainSet struct {
	c          *http.Client
	url, token string
	bits
}

func newPlain(url, token, key string) plainSet {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 2048
	return plainSet{&http.Client{Transport: t}, url, token, independent(key)}
}

func (s plainSet) send(args []string) ([]int64, error) {
	body, err := json.Marshal(append([]string{"BITFIELD", s.key}, args...))
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.c.Do(req)
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

func (s plainSet) add(items []string) error {
	_, err := s.send(s.write(items))
	return err
}

func (s plainSet) exists(items []string) ([]bool, error) {
	answers, err := s.send(s.read(items))
	if err != nil {
		return nil, err
	}
	return s.found(items, answers)
}

// bits are the operations of a filter without a header, in one BITFIELD: one
// for each of 7 independent bits, or those of the blocked scheme. A client that
// sends only these shows the limit of its protocol.
type bits struct {
	key string
	geo bloom.Geometry
}

func independent(key string) bits {
	m := bloom.OptimalBits(capacity, rate)
	return bits{key, bloom.Geometry{
		Bits: m, Hashes: bloom.OptimalHashes(m, capacity), Scheme: bloom.SchemeXXH3,
	}}
}

func blocked(key string) (bits, error) {
	g, err := bloom.Config{Capacity: capacity, FPRate: rate}.Geometry()
	return bits{key, g}, err
}

// wordBits is the width of a word of the blocked scheme. An item has two bits
// in each of its words.
const wordBits = 53

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// write returns the arguments to set the items' bits.
func (b bits) write(items []string) []string {
	args := make([]string, 0, 4*len(items)*b.geo.Hashes)
	var buf [16]uint64
	for _, item := range items {
		for _, p := range b.geo.Positions(buf[:0], item) {
			args = append(args, "SET", "u1", decimal(p), "1")
		}
	}
	return args
}

// read returns the arguments to read the items' bits, or their words.
func (b bits) read(items []string) []string {
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
	return args
}

// found reports which of the items are in, by the answers to read.
func (b bits) found(items []string, answers []int64) ([]bool, error) {
	step := 1
	if b.geo.Scheme == bloom.SchemeBlocked {
		step = 2
	}
	each := b.geo.Hashes / step
	if len(answers) != each*len(items) {
		return nil, fmt.Errorf("%d answers for %d items", len(answers), len(items))
	}
	var buf [16]uint64
	found := make([]bool, len(items))
	for i, item := range items {
		mine := answers[i*each : (i+1)*each]
		found[i] = true
		if step == 1 {
			for _, bit := range mine {
				found[i] = found[i] && bit == 1
			}
			continue
		}
		for j, p := range b.geo.Positions(buf[:0], item) {
			bit := mine[j/2] >> (wordBits - 1 - p%wordBits) & 1
			found[i] = found[i] && bit == 1
		}
	}
	return found, nil
}

// rueidisSet sends bits in Redis' own protocol. By default the client sends the
// commands of concurrent callers as one pipeline.
type rueidisSet struct {
	ctx context.Context
	c   rueidis.Client
	bits
}

func (s rueidisSet) send(args []string) ([]int64, error) {
	cmd := s.c.B().Arbitrary("BITFIELD").Keys(s.key).Args(args...).Build()
	return s.c.Do(s.ctx, cmd).AsIntSlice()
}

func (s rueidisSet) add(items []string) error {
	_, err := s.send(s.write(items))
	return err
}

func (s rueidisSet) exists(items []string) ([]bool, error) {
	answers, err := s.send(s.read(items))
	if err != nil {
		return nil, err
	}
	return s.found(items, answers)
}

// goredisSet does the same with go-redis.
type goredisSet struct {
	ctx context.Context
	c   *goredis.Client
	bits
}

func (s goredisSet) send(args []string) ([]int64, error) {
	all := make([]any, 0, 2+len(args))
	all = append(all, "BITFIELD", s.key)
	for _, a := range args {
		all = append(all, a)
	}
	return s.c.Do(s.ctx, all...).Int64Slice()
}

func (s goredisSet) add(items []string) error {
	_, err := s.send(s.write(items))
	return err
}

func (s goredisSet) exists(items []string) ([]bool, error) {
	answers, err := s.send(s.read(items))
	if err != nil {
		return nil, err
	}
	return s.found(items, answers)
}

// scriptSet is a filter whose writes and reads are scripts, with a counter. It
// stands for a library missing from the module proxy.
type scriptSet struct {
	ctx context.Context
	c   rueidis.Client
	bits
}

var (
	setBits = rueidis.NewLuaScript(`for i = 2, #ARGV do redis.call('SETBIT', KEYS[1], ARGV[i], 1) end
return redis.call('INCRBY', KEYS[2], ARGV[1])`)
	getBits = rueidis.NewLuaScript(`local bits = {}
for i = 1, #ARGV do bits[i] = redis.call('GETBIT', KEYS[1], ARGV[i]) end
return bits`)
)

func (s scriptSet) positions(args, items []string) []string {
	var buf [16]uint64
	for _, item := range items {
		for _, p := range s.geo.Positions(buf[:0], item) {
			args = append(args, decimal(p))
		}
	}
	return args
}

func (s scriptSet) add(items []string) error {
	args := s.positions([]string{strconv.Itoa(len(items))}, items)
	return setBits.Exec(s.ctx, s.c, []string{s.key, s.key + ":count"}, args).Error()
}

func (s scriptSet) exists(items []string) ([]bool, error) {
	answers, err := getBits.Exec(s.ctx, s.c, []string{s.key}, s.positions(nil, items)).AsIntSlice()
	if err != nil {
		return nil, err
	}
	return s.found(items, answers)
}

// zeroSet is go-zero's filter. It has no batches, so items go one by one.
type zeroSet struct {
	ctx context.Context
	f   *zerobloom.Filter
}

func (s zeroSet) add(items []string) error {
	for _, item := range items {
		if err := s.f.AddCtx(s.ctx, []byte(item)); err != nil {
			return err
		}
	}
	return nil
}

func (s zeroSet) exists(items []string) ([]bool, error) {
	found := make([]bool, len(items))
	for i, item := range items {
		var err error
		if found[i], err = s.f.ExistsCtx(s.ctx, []byte(item)); err != nil {
			return nil, err
		}
	}
	return found, nil
}
