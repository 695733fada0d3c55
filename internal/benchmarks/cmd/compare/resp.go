package main

import (
	"context"
	"strconv"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	zerobloom "github.com/zeromicro/go-zero/core/bloom"
)

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
