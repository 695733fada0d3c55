package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// The kinds of filters, as the program names them.
const (
	plainKind    = "filter"
	windowKind   = "window"
	scalableKind = "scalable"
	cuckooKind   = "cuckoo"
	shardedKind  = "sharded"
)

// kindOf names a kind as the commands do. A shard by itself is a "shard".
func kindOf(k bloom.Kind, g bloom.Geometry) string {
	switch {
	case k == bloom.KindLayers:
		return scalableKind
	case k == bloom.KindFilter && g.Scheme == bloom.SchemeCuckoo:
		return cuckooKind
	}
	return k.String()
}

// kindNoun names a kind in a sentence.
func kindNoun(kind string) string {
	switch kind {
	case plainKind:
		return "plain filter"
	case scalableKind, cuckooKind, shardedKind:
		return kind + " filter"
	case "shard":
		return "shard of a sharded filter"
	}
	return kind
}

// A handle is a filter of any kind, as far as the commands need it.
type handle interface {
	Create(ctx context.Context) (bool, error)
	AddAll(ctx context.Context, items []string) ([]bool, error)
	ExistsAll(ctx context.Context, items []string) ([]bool, error)
	Delete(ctx context.Context) (bool, error)
	Geometry() bloom.Geometry // of a pane, the first layer or a shard
}

// A handle that is an expirer can set when its filter expires.
type expirer interface {
	Expire(ctx context.Context, ttl time.Duration) (bool, error)
	Persist(ctx context.Context) (bool, error)
}

// opened is a handle of a kind. stats reads the state and returns it for
// programs and for people. place is nil for a plain filter, whose bits are
// counted, and for a cuckoo filter, which refuses when it is full.
type opened struct {
	handle
	kind  string
	stats func(ctx context.Context) (state, string, error)
	place func(ctx context.Context) (place, error)
}

// openKey opens the filter at the key by its kind: a plain filter in one request,
// another kind in two. If there is none, it looks for a sharded one.
func (a *app) openKey(ctx context.Context, key string) (opened, error) {
	s, err := seed()
	if err != nil {
		return opened{}, err
	}
	client, err := a.connect(ctx)
	if err != nil {
		return opened{}, err
	}
	f, err := bloom.Open(ctx, client, key, bloom.Config{Seed: s})
	var mismatch *bloom.MismatchError
	switch {
	case err == nil:
		return a.ofFilter(f), nil
	case errors.Is(err, bloom.ErrNotFound):
		shards, shardedErr := bloom.OpenSharded(ctx, []*upstash.Client{client}, key,
			bloom.ShardedConfig{Seed: s})
		if shardedErr == nil {
			return a.ofSharded(shards), nil
		}
		if errors.As(shardedErr, &mismatch) && mismatch.GotKind == bloom.KindShard || !isAbsent(shardedErr) {
			return opened{}, shardedErr
		}
		return opened{}, a.withoutFirst(ctx, err)
	case errors.Is(err, bloom.ErrNotFilter):
		c, cuckooErr := bloom.OpenCuckoo(ctx, client, key, bloom.CuckooConfig{Seed: s})
		if cuckooErr == nil {
			return a.ofCuckoo(c), nil
		}
		if errors.As(cuckooErr, &mismatch) && mismatch.Got.Scheme == bloom.SchemeCuckoo || !isAbsent(cuckooErr) {
			return opened{}, cuckooErr
		}
		return opened{}, err
	case !errors.As(err, &mismatch):
		return opened{}, err
	}
	switch mismatch.GotKind {
	case bloom.KindWindow:
		w, err := bloom.OpenWindow(ctx, client, key, bloom.WindowConfig{Seed: s})
		return a.ofWindow(w), err
	case bloom.KindLayers:
		l, err := bloom.OpenScalable(ctx, client, key, bloom.ScalableConfig{Seed: s})
		return a.ofScalable(l), err
	case bloom.KindShard:
		err = advised{err, "the key holds one shard of a sharded filter: " + keyOfShards(key)}
	}
	return opened{}, err
}

// keyOfShards says which key to use for the shard at this one.
func keyOfShards(key string) string {
	i := strings.LastIndexByte(key, ':')
	if _, err := strconv.ParseUint(key[i+1:], 10, 16); i < 0 || err != nil {
		return "it was renamed, because a shard's key ends in a colon and a number: rename it back," +
			" or remove it by DEL"
	}
	return "use the key without the colon and the number at its end"
}

// withoutFirst is the error of a key without a filter: there may be a sharded
// one without its shard 0, which create makes last and rm removes first.
func (a *app) withoutFirst(ctx context.Context, missing error) error {
	rest, err := a.rest(ctx)
	if err != nil || len(rest) == 0 {
		return missing
	}
	return headless{advised{missing, "shards of a sharded filter are here, and shard 0 is missing: a create or an" +
		" rm was interrupted, or it was lost, or it is in another database: run the create again if it was" +
		" interrupted, or remove the shards with upbloom rm --rest"}}
}

// headless is the error of a key at which a sharded filter lacks shard 0. It is
// an ErrNotFound, but no other filter may be made there.
type headless struct{ error }

func (e headless) Unwrap() error { return e.error }

func isHeadless(err error) bool {
	var e headless
	return errors.As(err, &e)
}

// rest returns the keys of the shards that are here, but for shard 0.
func (a *app) rest(ctx context.Context) ([]string, error) {
	keys := make([]string, mostShards-1)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s:%d", a.key, i+1)
	}
	reply, err := a.client.Do(ctx, upstash.Cmd("EXISTS", keys...))
	if err != nil {
		return nil, err
	}
	if n, err := reply.Int64(); err != nil || n == 0 {
		return nil, err
	}
	var rest []string
	for part := range slices.Chunk(keys, inspectAtOnce) {
		found, err := bloom.InspectAll(ctx, a.client, part)
		if err != nil {
			return nil, err
		}
		for i, f := range found {
			if f.Err == nil && f.Stats.Kind == bloom.KindShard {
				rest = append(rest, part[i])
			}
		}
	}
	return rest, nil
}

// isAbsent reports whether the server said that the key holds no filter of the
// requested kind. After any other error it is unknown what the key holds.
func isAbsent(err error) bool {
	var mismatch *bloom.MismatchError
	return errors.Is(err, bloom.ErrNotFound) || errors.Is(err, bloom.ErrNotFilter) || errors.As(err, &mismatch)
}

func (a *app) ofFilter(f *bloom.Filter) opened {
	return opened{handle: f, kind: plainKind, stats: func(ctx context.Context) (state, string, error) {
		s, err := f.Stats(ctx)
		return stateOf(a.key, s), s.String(), err
	}}
}

func (a *app) ofWindow(w *bloom.Window) opened {
	stats := func(ctx context.Context) (bloom.WindowStats, error) {
		// Without the server's time Stats goes by that of the last Add.
		if _, err := a.client.ServerTime(ctx); err != nil && ctx.Err() != nil {
			return bloom.WindowStats{}, err
		}
		return w.Stats(ctx)
	}
	return opened{handle: w, kind: windowKind, stats: func(ctx context.Context) (state, string, error) {
		s, err := stats(ctx)
		out := a.state(windowKind, s.Geometry, s.Bytes, s.TTL)
		out.Rate, out.PaneSpan, out.Span = &s.LiveFPRate, s.PaneSpan.Seconds(), s.Span.Seconds()
		for _, p := range s.Panes {
			out.SetBits += p.SetBits
			out.Saturated = out.Saturated || p.Saturated
			out.Parts = append(out.Parts, part{p.SetBits, p.Fill, p.Items, p.LiveFPRate, p.Saturated, 0})
		}
		return out, s.String(), err
	}, place: func(ctx context.Context) (place, error) {
		s, err := stats(ctx)
		if err != nil {
			return place{}, err
		}
		// Stats leaves out the panes whose time is over. The number of the
		// others tells which pane takes the items: of all panes the second,
		// because the first is a spare, and the first once a pane is over. If
		// two are, the next Add clears one.
		all := int((s.Span+s.PaneSpan-1)/s.PaneSpan) + 2
		p := place{
			geometry: w.Geometry(), share: 1, parts: all, where: "in its newest pane", all: "in all its panes",
		}
		newest, passes := 1-(all-len(s.Panes)), 1.0
		for i, pane := range s.Panes {
			if i == newest {
				p.items = pane.Items
			} else {
				passes *= 1 - pane.LiveFPRate
			}
		}
		p.others = 1 - passes
		return p, nil
	}}
}

func (a *app) ofScalable(l *bloom.Scalable) opened {
	return opened{handle: l, kind: scalableKind, stats: func(ctx context.Context) (state, string, error) {
		s, err := l.Stats(ctx)
		out := a.state(scalableKind, s.Geometry, s.Bytes, s.TTL)
		out.Items, out.Fill, out.Rate = &s.Items, &s.Fill, &s.LiveFPRate
		out.SetBits, out.Saturated, out.Parts = s.SetBits, s.Saturated, partsOf(s.Layers)
		for i, layer := range s.Layers {
			out.Parts[i].Bits = layer.Geometry.Bits
		}
		out.MaxLayers = s.MaxLayers
		return out, s.String(), err
	}, place: func(ctx context.Context) (place, error) {
		s, err := l.Stats(ctx)
		g := l.Geometry()
		for i, layer := 1, g.Bits; i < s.MaxLayers; i++ { // as if all layers were one filter
			layer *= 4
			g.Bits += layer
		}
		return place{
			geometry: g, items: s.Items, share: 1, parts: mostLayers,
			where:  "if all the layers that it can have were one filter",
			layers: s.Layers, most: s.MaxLayers, all: "in all its layers",
		}, err
	}}
}

func (a *app) ofCuckoo(f *bloom.Cuckoo) opened {
	return opened{handle: f, kind: cuckooKind, stats: func(ctx context.Context) (state, string, error) {
		s, err := f.Stats(ctx)
		out := a.state(cuckooKind, s.Geometry, s.Bytes, s.TTL)
		out.Items, out.Fill, out.Rate = &s.Items, &s.Fill, &s.LiveFPRate
		out.Capacity, out.RateFull, out.Damaged = s.Capacity, s.FPRate, s.Damaged
		return out, s.String(), err
	}}
}

func (a *app) ofSharded(f *bloom.Sharded) opened {
	return opened{handle: f, kind: shardedKind, stats: func(ctx context.Context) (state, string, error) {
		s, err := f.Stats(ctx)
		out := a.state(shardedKind, f.Geometry(), s.Bytes, 0)
		out.Items, out.Rate, out.Saturated = &s.Items, &s.LiveFPRate, s.Saturated
		out.Parts = partsOf(s.Shards)
		fill := 0.0
		for _, p := range s.Shards {
			out.SetBits += p.SetBits
			fill += p.Fill / float64(len(s.Shards))
		}
		out.Fill = &fill
		return out, s.String(), shardMissing(err)
	}, place: func(ctx context.Context) (place, error) {
		s, err := f.Stats(ctx)
		n := max(uint64(len(s.Shards)), 1)
		p := place{geometry: f.Geometry(), items: s.Items / n, share: n, parts: 1, where: "in each shard", all: "in each shard"}
		for _, shard := range s.Shards {
			p.setBits += shard.SetBits
		}
		return p, shardMissing(err)
	}}
}

// shardMissing replaces the text of a sharded filter's ErrNotFound.
func shardMissing(err error) error {
	if !errors.Is(err, bloom.ErrNotFound) {
		return err
	}
	text := missingShards(err) + ": lost, or in another database, and upbloom works on only one"
	var failed *bloom.BatchError
	if errors.As(err, &failed) {
		counts, _, _ := strings.Cut(strings.TrimPrefix(failed.Error(), "bloom: "), ": ")
		text = counts + ": " + text
	}
	return advised{err, text}
}

// namedShards finds the numbers in the text of a sharded filter's ErrNotFound.
var namedShards = regexp.MustCompile(`shard ([0-9]+)((?:, [0-9]+)*(?: and [0-9]+ more)?(?: of [0-9]+)?) not found`)

// missingShards says which shards are missing, as far as the error names them.
func missingShards(err error) string {
	m := namedShards.FindStringSubmatch(err.Error())
	switch {
	case m == nil:
		return "a shard is missing"
	case strings.HasPrefix(m[2], ",") || strings.HasPrefix(m[2], " and"):
		return "shards " + m[1] + m[2] + " are missing"
	}
	return "shard " + m[1] + m[2] + " is missing"
}

// state returns the fields common to all kinds but a plain filter.
func (a *app) state(kind string, g bloom.Geometry, bytes uint64, ttl time.Duration) state {
	return state{
		Key: a.key, Kind: kind, Scheme: g.Scheme.String(), Bits: g.Bits, Hashes: g.Hashes,
		Seeded: g.Seed != 0, Bytes: bytes, TTL: ttl.Seconds(),
	}
}

func partsOf(all []bloom.Stats) []part {
	parts := make([]part, len(all))
	for i, s := range all {
		parts[i] = part{s.SetBits, s.Fill, s.Items, s.LiveFPRate, s.Saturated, 0}
	}
	return parts
}

// plainOnly improves the error of a command for plain filters if the key holds
// another kind.
func (a *app) plainOnly(ctx context.Context, err error) error {
	if !isAbsent(err) {
		return err
	}
	kind := ""
	o, openErr := a.openKey(ctx, a.key)
	var other *bloom.MismatchError
	switch {
	case openErr == nil:
		a.other, kind = o, o.kind
	case errors.As(openErr, &other):
		kind = kindOf(other.GotKind, other.Got)
	case errors.Is(err, bloom.ErrNotFound) && (isHeadless(openErr) || !isAbsent(openErr)):
		return openErr // it may be a sharded one
	}
	if kind == "" || kind == plainKind {
		return err
	}
	return a.refuse(kind)
}

// refuse returns the error of a command for plain filters at a key with another
// kind, and what to do instead.
func (a *app) refuse(kind string) error {
	advice, needs, command := "use another key", "plain filter", a.command
	switch a.command {
	case "add":
		advice, command = "leave --items out to add to it", "add --items"
	case "load":
		advice, needs = "upbloom add KEY - adds the lines of standard input to it", "plain or sharded filter"
		if kind == shardedKind {
			advice, needs, command = "leave --items out to load it", "plain filter", "load --items"
		}
	case "save", "restore":
		advice = "it can only be filled again from where its items come from"
	case "replace":
		advice = "remove it with upbloom rm, create it and add the items"
	}
	if kind == "shard" && a.command != "save" { // of the whole one save says the same
		advice = keyOfShards(a.key)
	}
	return advised{bloom.ErrNotFilter, fmt.Sprintf("the key holds a %s, and not a %s, as upbloom"+
		" %s needs; nothing was changed: %s", kindNoun(kind), needs, command, advice)}
}
