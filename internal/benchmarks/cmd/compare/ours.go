package main

import (
	"context"
	"sync"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

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
