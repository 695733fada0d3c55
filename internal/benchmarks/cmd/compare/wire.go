package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

// tap passes requests on and keeps the last one with its reply.
type tap struct {
	next upstash.Transport

	mu     sync.Mutex
	url    string
	header []upstash.Header
	body   []byte
	reply  []byte
}

func newTap() *tap { return &tap{next: httptransport.New(&http.Client{})} }

func (t *tap) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	err := t.next.RoundTrip(ctx, req, resp)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.url = req.URL
	t.header, t.body = append(t.header[:0], req.Header...), bytes.Clone(req.Body)
	t.reply = bytes.Clone(resp.Body)
	return err
}

// tapped makes a call twice, so that the second does not create the filter at key,
// and keeps the second request.
func (a *arena) tapped(url, key string, cfg bloom.Config, size int, write bool) (*tap, error) {
	t := newTap()
	c, err := a.client(url, upstash.WithTransport(t))
	if err != nil {
		return nil, err
	}
	f, err := bloom.New(c, key, cfg)
	if err != nil {
		return nil, err
	}
	s, part := filterSet{a.calls, f}, window(members, 0, size)
	for range 2 {
		if err := s.add(part); err != nil {
			return nil, err
		}
	}
	if !write {
		_, err = count(s, part, true)
	}
	return t, err
}

// wireLimit names the limit of the protocol: fasthttp posts a prepared request,
// and nobody reads the reply.
const wireLimit = "fasthttp, request ready"

// ready returns a contestant that repeats the last request of the tap. It fails
// if the server refuses the request.
func (t *tap) ready(c *fasthttp.Client, size int) (*contestant, error) {
	type exchange struct {
		req  *fasthttp.Request
		resp *fasthttp.Response
	}
	idle := sync.Pool{New: func() any {
		e := &exchange{&fasthttp.Request{}, &fasthttp.Response{}}
		e.req.Header.SetMethod(fasthttp.MethodPost)
		e.req.SetRequestURI(t.url)
		for _, h := range t.header {
			e.req.Header.Set(h.Name, h.Value)
		}
		e.req.SetBodyRaw(t.body)
		return e
	}}
	send := func(look func(reply []byte) error) error {
		e := idle.Get().(*exchange)
		defer idle.Put(e)
		if err := c.Do(e.req, e.resp); err != nil {
			return err
		}
		if e.resp.StatusCode() != fasthttp.StatusOK {
			return fmt.Errorf("status %d", e.resp.StatusCode())
		}
		return look(e.resp.Body())
	}
	err := send(func(reply []byte) error {
		if len(reply) == 0 || bytes.Contains(reply, []byte(`"error"`)) {
			return fmt.Errorf("the wire limit got %.100q, the client got %.100q", reply, t.reply)
		}
		return nil
	})
	all := func([]byte) error { return nil }
	return &contestant{name: wireLimit, items: size, do: func(uint64) error { return send(all) }}, err
}
