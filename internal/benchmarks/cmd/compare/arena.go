package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/valyala/fasthttp"
	zerobloom "github.com/zeromicro/go-zero/core/bloom"
	"github.com/zeromicro/go-zero/core/logx"
	zeroredis "github.com/zeromicro/go-zero/core/stores/redis"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

// Names of contestants, for tables and plots.
const (
	filterName = "upbloom Filter"
	windowName = "upbloom Window"
	// endlessName is a Filter whose calls have a context that cannot end, as
	// those of the wire limit have none.
	endlessName = "upbloom Filter, context.Background()"
	resp7Name   = "rueidis, 7 bits"
	respBName   = "rueidis, blocked"
	plainName   = "net/http + encoding/json"
	nodeName    = "@upstash/redis on Node"
	zeroName    = "go-zero bloom"
	scriptName  = "script of SETBITs, EVALSHA"
	setName     = "SADD, SMISMEMBER"
	keysName    = "SET NX EX, EXISTS"
	bitsName    = "bits-and-blooms v3"
)

// arena is the common ground of all contestants: one Redis, and one REST server
// in front of it.
type arena struct {
	ctx        context.Context
	calls      *contexts // of filters
	redis      string
	url, token string
	admin      *goredis.Client
	rueidis    rueidis.Client
	zero       *zeroredis.Redis
	nodeFolder string // "" without Node
	keys       int
}

func newArena(ctx context.Context, withNode bool) (*arena, error) {
	a := &arena{ctx: ctx, calls: newContexts(ctx)}
	var err error
	if a.redis, err = startRedis(ctx); err != nil {
		return nil, err
	}
	line, err := startRole(ctx, "server", a.redis)
	if err != nil {
		return nil, err
	}
	a.url, a.token, _ = strings.Cut(line, " ")
	a.admin = goredis.NewClient(&goredis.Options{Addr: a.redis, PoolSize: 64})
	if a.rueidis, err = rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{a.redis}, DisableCache: true,
	}); err != nil {
		return nil, err
	}
	logx.Disable()
	if a.zero, err = zeroredis.NewRedis(zeroredis.RedisConf{
		Host: a.redis, Type: zeroredis.NodeType,
	}); err != nil {
		return nil, err
	}
	if withNode {
		a.nodeFolder, err = installNode(ctx)
	}
	return a, err
}

// key returns a new key. No contest must find what another left.
func (a *arena) key(name string) string {
	a.keys++
	return fmt.Sprintf("%s:%d", name, a.keys)
}

func (a *arena) client(url string, opts ...upstash.Option) (*upstash.Client, error) {
	return upstash.New(url, a.token, append(opts, upstash.WithMaxConns(4096))...)
}

// entrant is a set before it is a contestant.
type entrant struct {
	name string
	set  set
}

// resp returns the entrants in Redis' own protocol.
func (a *arena) resp() ([]entrant, error) {
	b, err := blocked(a.key("rueidis-blocked"))
	if err != nil {
		return nil, err
	}
	return []entrant{
		{resp7Name, rueidisSet{a.ctx, a.rueidis, independent(a.key("rueidis"))}},
		{respBName, rueidisSet{a.ctx, a.rueidis, b}},
		{"go-redis, 7 bits", goredisSet{a.ctx, a.admin, independent(a.key("go-redis"))}},
		{scriptName, scriptSet{a.ctx, a.rueidis, independent(a.key("script"))}},
		{zeroName, zeroSet{a.ctx, zerobloom.New(a.zero, a.key("go-zero"), 20*capacity)}},
	}, nil
}

// rest returns the entrants over the REST server at url, without Node's.
func (a *arena) rest(url string) ([]entrant, error) {
	c, err := a.client(url)
	if err != nil {
		return nil, err
	}
	f, err := newFilter(c, a.key("filter"))
	if err != nil {
		return nil, err
	}
	return []entrant{
		{filterName, filterSet{a.calls, f}},
		{plainName, newPlain(url, a.token, a.key("plain"))},
		{setName, memberSet{a.ctx, c, a.key("set")}},
		{keysName, keySet{a.ctx, c, a.key("keys") + ":"}},
	}, nil
}

// limit returns the wire limit of an Add or an Exists of size items, for a
// filter like that of the contest.
func (a *arena) limit(url string, size int, write bool) (*contestant, error) {
	t, err := a.tapped(url, a.key("limit"), usual, size, write)
	if err != nil {
		return nil, err
	}
	// Of its own: with the idle connections of another contest it is slower by half.
	return t.ready(&fasthttp.Client{MaxConnsPerHost: 4096}, size)
}

// called returns how many commands Redis has run, including those of scripts.
func (a *arena) called() (total int64, err error) {
	text, err := a.admin.Info(a.ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		command, rest, ok := strings.Cut(line, ":calls=")
		if !ok || command == "cmdstat_info" || command == "cmdstat_ping" { // by clients that keep a connection alive
			continue
		}
		var n int64
		if _, err := fmt.Sscanf(rest, "%d,", &n); err != nil {
			return 0, fmt.Errorf("commandstats: %q: %w", line, err)
		}
		total += n
	}
	return total, nil
}

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
