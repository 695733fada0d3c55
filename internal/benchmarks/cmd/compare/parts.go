package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	bitsandblooms "github.com/bits-and-blooms/bloom/v3"
	"github.com/valyala/fasthttp"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

func operation(write bool) string {
	if write {
		return "Add"
	}
	return "Exists"
}

// measureCalls compares one item a call, at a server that answers from memory.
func measureCalls(a *arena, r *report) error {
	url, err := a.startRole("stub", a.url)
	if err != nil {
		return err
	}
	ours, err := a.filter(url)
	if err != nil {
		return err
	}
	plain := a.plain(url)
	sets := []set{ours, plain}
	var node *nodeSet
	if a.nodeFolder != "" {
		if node, err = a.startNode(url); err != nil {
			return err
		}
		sets = append(sets, node)
	}
	for _, s := range sets {
		if err := checkAtStub(s); err != nil {
			return err
		}
	}
	for _, write := range []bool{true, false} {
		for _, callers := range []int{1, 64} {
			limit, err := a.limit(url, write)
			if err != nil {
				return err
			}
			c := &contest{
				name:    fmt.Sprintf("%s, callers: %d", operation(write), callers),
				callers: callers,
				contestants: []*contestant{
					enter(filterName, ours, 1, write), limit, enter(plainName, plain, 1, write),
				},
			}
			if node != nil {
				c.contestants = append(c.contestants, node.contestant(write))
			}
			if err := r.play(a, c); err != nil {
				return err
			}
			if write && callers == 64 {
				r.factsOfAdds(c)
			}
		}
	}
	return nil
}

// factsOfAdds notes what the contest of 64 callers says of an Add.
func (r *report) factsOfAdds(c *contest) {
	ours := c.contestants[0]
	r.know("An `Add` takes %s times the client's CPU of fasthttp sending a ready request (64 callers; aim: at most"+
		" 1.7).", ratioText(ours.cpuRatio(c.find(wireName)).median))
	if node := c.find(nodeName); node != nil {
		r.know("64 callers add %s times as many items a second as with @upstash/redis on Node.",
			ratioText(ours.ratio(node).median))
	}
}

// checkAtStub checks a set at a server that gives each request the answer to the
// first one like it. Only one member can then be checked.
func checkAtStub(s set) error {
	for range 3 {
		if err := s.add(members[:1]); err != nil {
			return err
		}
		if _, err := count(s, members[:1], true); err != nil {
			return err
		}
	}
	return nil
}

// limit returns the limit of HTTP: fasthttp posts the request of an Add or an
// Exists over and over, and nobody reads the reply.
func (a *arena) limit(url string, write bool) (*contestant, error) {
	t := &tap{next: httptransport.New(&http.Client{})}
	c, err := a.client(url, upstash.WithTransport(t))
	if err != nil {
		return nil, err
	}
	f, err := bloom.New(c, a.key("limit"), usual)
	if err != nil {
		return nil, err
	}
	s := filterSet{a.calls, f}
	for range 2 { // the second does not create the filter
		if err := s.add(members[:1]); err != nil {
			return nil, err
		}
	}
	if !write {
		if _, err := count(s, members[:1], true); err != nil {
			return nil, err
		}
	}
	// Of its own: with the idle connections of another contest it is slower by half.
	client := &fasthttp.Client{MaxConnsPerHost: 4096}
	type exchange struct {
		req  fasthttp.Request
		resp fasthttp.Response
	}
	idle := sync.Pool{New: func() any {
		e := &exchange{}
		e.req.Header.SetMethod(fasthttp.MethodPost)
		e.req.SetRequestURI(t.url)
		for _, h := range t.header {
			e.req.Header.Set(h.Name, h.Value)
		}
		e.req.SetBodyRaw(t.body)
		return e
	}}
	return &contestant{name: wireName, items: 1, do: func(uint64) error {
		e := idle.Get().(*exchange)
		defer idle.Put(e)
		if err := client.Do(&e.req, &e.resp); err != nil {
			return err
		}
		if body := e.resp.Body(); e.resp.StatusCode() != fasthttp.StatusOK || len(body) != len(t.reply) {
			return fmt.Errorf("status %d, %d bytes; the client got %d", e.resp.StatusCode(), len(body), len(t.reply))
		}
		return nil
	}}, nil
}

// tap passes requests on and keeps the last one with its reply.
type tap struct {
	next   upstash.Transport
	url    string
	header []upstash.Header
	body   []byte
	reply  []byte
}

func (t *tap) RoundTrip(ctx context.Context, req *upstash.Request, resp *upstash.Response) error {
	err := t.next.RoundTrip(ctx, req, resp)
	t.url = req.URL
	t.header, t.body = append(t.header[:0], req.Header...), bytes.Clone(req.Body)
	t.reply = bytes.Clone(resp.Body)
	return err
}

// measureBatches compares many items a call, in front of Redis.
func measureBatches(a *arena, r *report) error {
	ours, err := a.filter(a.url)
	if err != nil {
		return err
	}
	raw, err := a.raw()
	if err != nil {
		return err
	}
	for _, write := range []bool{true, false} {
		for _, size := range []int{10, 100, 1000} {
			c := &contest{name: fmt.Sprintf("%sAll(%d), one caller", operation(write), size), callers: 1}
			for _, e := range []entrant{{filterName, ours}, {respName, raw}} {
				if err := check(e.set, size); err != nil {
					return fmt.Errorf("%s: %w", e.name, err)
				}
				c.contestants = append(c.contestants, enter(e.name, e.set, size, write))
			}
			if err := r.play(a, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// An entrant is a set before it is a contestant.
type entrant struct {
	name string
	set  set
}

// measureLocal compares filters in memory, a thousand items a call.
func measureLocal(a *arena, r *report) error {
	const size = 1000
	for _, n := range []int{10_000, 1_000_000} {
		g, err := bloom.Config{Capacity: uint64(n), FPRate: rate}.Geometry()
		if err != nil {
			return err
		}
		ours, theirs := bloom.NewLocal(g), bitsandblooms.NewWithEstimates(uint(n), rate)
		in, out := emails("in-", n), emails("out-", n)
		for _, work := range []struct {
			name         string
			items        []string
			ours, theirs func(item string) bool
		}{
			{"Add", in, ours.Add, func(item string) bool { theirs.AddString(item); return true }},
			{"found", in, ours.Exists, theirs.TestString},
			{"not found", out, ours.Exists, theirs.TestString},
		} {
			each := func(name string, f func(string) bool) *contestant {
				return &contestant{name: name, items: size, do: func(k uint64) error {
					all := true
					for _, item := range window(work.items, k, size) {
						all = f(item) && all
					}
					if work.name == "found" && !all {
						return errors.New("an item that was added is not found")
					}
					return nil
				}}
			}
			for _, item := range in { // all of them, however short a turn is
				ours.Add(item)
				theirs.AddString(item)
			}
			c := &contest{
				name: fmt.Sprintf("%d items, %s", n, work.name), callers: 1,
				contestants: []*contestant{each("upbloom Local", work.ours), each(bitsName, work.theirs)},
			}
			if err := r.play(a, c); err != nil {
				return err
			}
			if n == 1_000_000 && work.name == "found" {
				r.know("In memory a `Local` of a million items finds members %s times as fast as bits-and-blooms.",
					ratioText(c.contestants[0].ratio(c.contestants[1]).median))
			}
		}
	}
	return nil
}

// A typed is a filter of one type.
type typed struct {
	name string
	set  filterSet
}

// types returns a filter of each type for n items.
func (a *arena) types(n uint64) ([]typed, error) {
	c, err := a.client(a.url)
	if err != nil {
		return nil, err
	}
	f, err1 := bloom.New(c, a.key("filter"), bloom.Config{Capacity: n, FPRate: rate})
	w, err2 := bloom.NewWindow(c, a.key("window"), bloom.WindowConfig{
		Capacity: n, FPRate: rate, Span: 24 * time.Hour,
	})
	grows, err3 := bloom.NewScalable(c, a.key("scalable"), bloom.ScalableConfig{Capacity: n, FPRate: rate})
	spread, err4 := bloom.NewSharded([]*upstash.Client{c}, a.key("sharded"), bloom.ShardedConfig{
		Capacity: n, FPRate: rate, Shards: 4,
	})
	cuckoo, err5 := bloom.NewCuckoo(c, a.key("cuckoo"), bloom.CuckooConfig{Capacity: n, FPRate: rate})
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return nil, err
	}
	if _, err := spread.Create(a.ctx); err != nil {
		return nil, err
	}
	return []typed{
		{filterName, filterSet{a.calls, f}},
		{"upbloom Window", filterSet{a.calls, w}},
		{"upbloom Scalable", filterSet{a.calls, grows}},
		{"upbloom Sharded, 4 shards", filterSet{a.calls, spread}},
		{cuckooName, filterSet{a.calls, cuckoo}},
	}, nil
}

// countBilled counts the commands that Redis runs for an Add and an Exists, with
// those called by scripts.
func countBilled(a *arena, r *report) error {
	types, err := a.types(capacity)
	if err != nil {
		return err
	}
	r.printf("Commands that Redis runs for one call, those of a script counted too.\n\n" +
		"| | Add | Exists, found |\n|---|---|---|\n")
	for _, t := range types {
		if err := check(t.set, checked/2); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		add, err := a.billed(t.set.add)
		if err != nil {
			return err
		}
		exists, err := a.billed(func(items []string) error {
			_, err := count(t.set, items, true)
			return err
		})
		if err != nil {
			return err
		}
		r.printf("| %s | %.3g | %.3g |\n", t.name, add, exists)
	}
	r.printf("\n")
	return nil
}

// billed returns how many commands Redis runs for a call with one known item.
func (a *arena) billed(do func(items []string) error) (float64, error) {
	const calls = 100
	before, err := a.called()
	if err != nil {
		return 0, err
	}
	for n := range uint64(calls) {
		if err := do(window(members, n, 1)); err != nil {
			return 0, err
		}
	}
	after, err := a.called()
	return float64(after-before) / calls, err
}

// measureColdStart compares the time from the start of a process to its end after
// the first answer, and the sizes of the programs.
func measureColdStart(a *arena, r *report) error {
	const packages = "github.com/upbloom/upbloom/internal/benchmarks/cold/"
	dir, err := os.MkdirTemp("", "compare-cold")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	env := append(os.Environ(), "UPSTASH_REDIS_REST_URL="+a.url, "UPSTASH_REDIS_REST_TOKEN="+a.token)
	c := &contest{name: "processes a second, one after the other", callers: 1}
	for _, p := range []struct{ name, folder string }{{filterName, "upbloom"}, {plainName, "plain"}} {
		exe := filepath.Join(dir, p.folder)
		build := exec.CommandContext(a.ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", exe, packages+p.folder)
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", p.folder, err, out)
		}
		info, err := os.Stat(exe)
		if err != nil {
			return err
		}
		r.printf("%s is a program of %.1f MB, built with -ldflags='-s -w'. ", p.name, float64(info.Size())/1e6)
		c.contestants = append(c.contestants, a.starting(p.name, env, "", exe))
	}
	r.printf("\n\n")
	if a.nodeFolder != "" {
		c.contestants = append(c.contestants, a.starting(nodeName, env, a.nodeFolder, "node", "cold.mjs"))
	}
	return r.play(a, c)
}

// starting runs the program once a call. Its answer is "true" the first time and
// "false" from then on. Node's answer is a list.
func (a *arena) starting(name string, env []string, dir, exe string, args ...string) *contestant {
	one := &contestant{name: name, items: 1}
	var calls uint64
	one.run = func(_ int, d time.Duration) (e effort, err error) {
		for start := time.Now(); e.took < d || e.calls == 0; e.took = time.Since(start) {
			cmd := exec.CommandContext(a.ctx, exe, args...)
			cmd.Env, cmd.Dir, cmd.WaitDelay = env, dir, time.Second
			out, err := cmd.Output()
			if err != nil {
				return e, err
			}
			calls++
			e.calls++
			if got, want := strings.Trim(string(out), "[] \n"), fmt.Sprint(calls == 1); got != want {
				return e, fmt.Errorf("call %d answered %q, want %q", calls, got, want)
			}
			e.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		}
		return e, nil
	}
	return one
}

// measureRates counts how many absent items each type finds, beside the rate in its
// Stats, and each scheme beside its formula.
func measureRates(a *arena, r *report) error {
	n, asked := 20_000, 50_000
	if r.turn > 0 { // a run that only shows that all works
		n, asked = 2_000, 2_000
	}
	items, others := emails("in-", 2*n), emails("out-", asked)
	r.printf("False positives at 1 in 100, %d items, %d look-ups; measured / by Stats or by the formula.\n\n"+
		"| | half of Capacity | Capacity | twice Capacity |\n|---|---|---|---|\n", n, asked)
	row := func(name string, s set, rate func(items int) (float64, error)) error {
		r.printf("| %s |", name)
		from := 0
		for _, to := range []int{n / 2, n, 2 * n} {
			if name == cuckooName && to > n {
				r.printf(" full |")
				break
			}
			if err := s.add(items[from:to]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			from = to
			found, err := count(s, others, false)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			want, err := rate(to)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			r.printf(" %.3f%% / %.3f%% |", 100*float64(found)/float64(asked), 100*want)
		}
		r.printf("\n")
		return nil
	}
	types, err := a.types(uint64(n))
	if err != nil {
		return err
	}
	for _, t := range types {
		err := row(t.name, t.set, func(int) (float64, error) {
			s, err := t.set.f.Stats(a.ctx)
			return s.LiveFPRate, err
		})
		if err != nil {
			return err
		}
	}
	for _, scheme := range []bloom.Scheme{bloom.SchemeBlocked, bloom.SchemeXXH3, bloom.SchemeFNV1a} {
		g, err := bloom.Config{Capacity: uint64(n), FPRate: rate, Scheme: scheme}.Geometry()
		if err != nil {
			return err
		}
		err = row(fmt.Sprint("Local, scheme ", scheme), localSet{bloom.NewLocal(g)}, func(items int) (float64, error) {
			return g.FalsePositiveRate(uint64(items)), nil
		})
		if err != nil {
			return err
		}
	}
	r.printf("\n")
	return nil
}

// localSet is a Local as a set.
type localSet struct{ l *bloom.Local }

func (s localSet) add(items []string) error {
	s.l.AddAll(items)
	return nil
}

func (s localSet) exists(items []string) ([]bool, error) { return s.l.ExistsAll(items), nil }
