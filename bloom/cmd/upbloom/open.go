package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

// opened is the filter at a key, of any kind.
type opened struct {
	handle
	client *upstash.Client
	kind   string
}

// stats reads the state of the filter, with its parts.
func (o opened) stats(ctx context.Context) (bloom.Stats, error) {
	if _, ok := o.handle.(*bloom.Window); ok {
		// Without the server's time Stats goes by that of the last Add.
		if _, err := o.client.ServerTime(ctx); err != nil && ctx.Err() != nil {
			return bloom.Stats{}, err
		}
	}
	s, err := o.handle.Stats(ctx)
	if o.kind == shardedKind {
		err = shardMissing(err)
	}
	return s, err
}

// openKey opens the filter at the key by its kind: a plain filter in one request,
// another kind in two. If there is none, it looks for a sharded one.
func (a *app) openKey(ctx context.Context) (opened, error) {
	as := func(kind string) (opened, error) {
		h, err := openHandle(ctx, a.client, kind, a.key, a.seed)
		if err != nil {
			return opened{}, err
		}
		return opened{h, a.client, kind}, nil
	}
	o, err := as(plainKind)
	found, isOther := errors.AsType[*bloom.MismatchError](err)
	if errors.Is(err, bloom.ErrNotFound) {
		o, shardedErr := as(shardedKind)
		found, isOther := errors.AsType[*bloom.MismatchError](shardedErr)
		if isOther && found.GotKind == bloom.KindShard || !isAbsent(shardedErr) {
			return o, shardedErr
		}
		return opened{}, a.withoutFirst(ctx, err)
	}
	if !isOther {
		return o, err
	}
	switch found.GotKind {
	case bloom.KindWindow, bloom.KindScalable, bloom.KindCuckoo:
		return as(found.GotKind.String())
	case bloom.KindShard:
		err = advised{err, "the key holds one shard of a sharded filter: " + keyOfShards(a.key)}
	}
	return opened{}, err
}

// keyOfShards says which key to use for the shard at this one.
func keyOfShards(key string) string {
	if baseOf(key) == key {
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
	return marked{advised{missing, "shards of a sharded filter are here, and shard 0 is missing: a create or" +
		" an rm was interrupted, or it was lost, or it is in another database: run the create again if it was" +
		" interrupted, or remove the shards with upbloom rm --rest"}, errHeadless}
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
	return errors.Is(err, bloom.ErrNotFound) || errors.Is(err, bloom.ErrNotFilter) || isA[*bloom.MismatchError](err)
}

// isFree reports whether the server said that nothing is at the key, nor shards
// without the first beside it.
func isFree(err error) bool {
	return errors.Is(err, bloom.ErrNotFound) && !errors.Is(err, errHeadless)
}

// shardMissing replaces the text of a sharded filter's ErrNotFound.
func shardMissing(err error) error {
	if !errors.Is(err, bloom.ErrNotFound) {
		return err
	}
	text := missingShards(err) + ": lost, or in another database, and upbloom works on only one"
	if failed, ok := errors.AsType[*bloom.BatchError](err); ok {
		counts, _, _ := strings.Cut(strings.TrimPrefix(failed.Error(), "bloom: "), ": ")
		text = counts + ": " + text
	}
	return advised{err, text}
}

// missingShards says which shards are missing.
func missingShards(err error) string {
	missing, of := bloom.MissingShards(err)
	if len(missing) == 0 {
		return "a shard is missing"
	}
	text := human.List(missing, 8)
	if of > 0 {
		text += fmt.Sprintf(" of %d", of)
	}
	if len(missing) == 1 {
		return "shard " + text + " is missing"
	}
	return "shards " + text + " are missing"
}

// plainOnly improves the error of a command for plain filters if the key holds
// another kind.
func (a *app) plainOnly(ctx context.Context, err error) error {
	if !isAbsent(err) {
		return err
	}
	kind := ""
	o, openErr := a.openKey(ctx)
	other, isOther := errors.AsType[*bloom.MismatchError](openErr)
	switch {
	case openErr == nil:
		kind = o.kind
	case isOther:
		kind = other.GotKind.String()
	case errors.Is(err, bloom.ErrNotFound) && (errors.Is(openErr, errHeadless) || !isAbsent(openErr)):
		return openErr // it may be a sharded one
	}
	if kind == "" || kind == plainKind {
		return err
	}
	return otherKind{a.refuse(kind, "use another key"), o}
}

// otherKind is the error of a command for plain filters that found another one.
type otherKind struct {
	error
	opened opened
}

func (o otherKind) Unwrap() error { return o.error }

// refuse returns the error of a command for plain filters at a key with another
// kind, and what to do instead, which is the advice unless the command has its own.
func (a *app) refuse(kind, advice string) error {
	needs, command := "plain filter", a.command
	switch a.command {
	case "add":
		advice, command = "leave --items out to add to it", "add --items"
	case "load":
		advice, needs = "upbloom add KEY - adds the lines of standard input to it", "plain or sharded filter"
		if kind == shardedKind {
			advice, needs, command = "leave --items out to load it", "plain filter", "load --items"
		}
	case "replace":
		advice = "make another at a new key, add the items to both, and remove this one when all programs ask the other"
	}
	if kind == "shard" {
		advice = keyOfShards(a.key)
	}
	return advised{bloom.ErrNotFilter, fmt.Sprintf("the key holds a %s, and not a %s, as upbloom"+
		" %s needs; nothing was changed: %s", kindNoun(kind), needs, command, advice)}
}

// filter returns a handle to the plain filter at the key, which must exist. If the
// sizeFlags have --items, the handle creates a missing filter.
func (a *app) filter(ctx context.Context, c *cli.Command) (*bloom.Filter, error) {
	cfg, err := a.configOf(c)
	if err != nil {
		return nil, err
	}
	if cfg.Capacity != 0 {
		f, err := bloom.New(a.client, a.key, cfg)
		return f, flagError(err)
	}
	f, err := bloom.Open(ctx, a.client, a.key, bloom.Config{Seed: a.seed})
	if err != nil {
		err = a.plainOnly(ctx, err)
	}
	if isFree(err) {
		return nil, marked{err, errMakeable}
	}
	return f, err
}

// mostShards is how many shards a filter has at most.
const mostShards = 256

// inspectAtOnce is how many filters one request reads. The server counts the
// cells of all of them, about 1 ms a megabyte.
const inspectAtOnce = 32

// inspect returns the state of the plain filter at the command's key, or nil if
// there is none. Another kind of filter is an error.
func (a *app) inspect(ctx context.Context) (*bloom.Stats, error) {
	s, err := bloom.Inspect(ctx, a.client, a.key)
	if err != nil {
		if err = a.plainOnly(ctx, err); isFree(err) {
			err = nil
		}
		return nil, err
	}
	if kind := s.Kind.String(); kind != plainKind {
		return nil, a.refuse(kind, "use another key")
	}
	return &s, nil
}

// isResized reports whether there is a filter at the key, of another geometry than g.
func isResized(before *bloom.Stats, g bloom.Geometry) bool {
	g.Seed = 0
	return before != nil && before.Geometry != g
}

// errOtherSize returns an error if the filter at the key is resized.
func errOtherSize(before *bloom.Stats, g bloom.Geometry) error {
	if !isResized(before, g) {
		return nil
	}
	g.Seed = 0
	return otherFilter(before.Geometry, g)
}

// otherFilter is the error of a command that found a filter of another size
// before it changed anything.
func otherFilter(got, want bloom.Geometry) error {
	return advised{
		&bloom.MismatchError{Want: want, Got: got, WantKind: bloom.KindFilter, GotKind: bloom.KindFilter},
		fmt.Sprintf("another filter is at this key, %v, and not %v, and nothing was changed: use another key,"+
			" or leave --items out to use the filter as it is", got, want),
	}
}

// isThere reports whether the key holds the filter of f. If it holds anything
// else, that is an error. An Add returns that error too, but sets its bits
// first.
func (a *app) isThere(ctx context.Context, f *bloom.Filter) (bool, error) {
	want := f.Geometry()
	there, err := bloom.Open(ctx, a.client, a.key, bloom.Config{Seed: want.Seed})
	if err != nil {
		err = a.plainOnly(ctx, err)
	}
	if isFree(err) {
		return false, nil
	}
	if err == nil && there.Geometry() != want {
		return false, otherFilter(there.Geometry(), want)
	}
	return err == nil, err
}

// ttlOf returns a filter's time to live, or 0 if it has none. It needs the seed
// only of a sharded filter.
func (a *app) ttlOf(ctx context.Context) (time.Duration, error) {
	s, err := bloom.Inspect(ctx, a.client, a.key)
	if !errors.Is(err, bloom.ErrNotFound) {
		return s.TTL, err
	}
	o, err := a.openKey(ctx)
	if err != nil {
		return 0, err
	}
	all, err := o.stats(ctx)
	return all.TTL, err
}

// withoutTTL returns f, or without its --ttl another handle to the filter: f
// would set that on a filter without a TTL.
func (a *app) withoutTTL(f *bloom.Filter, c *cli.Command) (*bloom.Filter, error) {
	if !c.IsSet("ttl") {
		return f, nil
	}
	cfg, _ := a.configOf(c) // which was right when f was made
	cfg.TTL = 0
	return bloom.New(a.client, a.key, cfg)
}

// keptTTL says that --ttl had no effect on a filter that was there. It returns
// "" if the filter has about this TTL all the same.
func (a *app) keptTTL(ctx context.Context, c *cli.Command) string {
	if !c.IsSet("ttl") {
		return ""
	}
	want := lifetimeOf(c, "ttl")
	left, err := a.ttlOf(ctx)
	if err != nil || 0 < left && left <= want && want-left <= 5*time.Second {
		return ""
	}
	return fmt.Sprintf("%s was there: it %s, as before; --ttl is for a new filter, and upbloom ttl %[1]s"+
		" %[3]s changes it", printable(a.key), expires(left), ttl(want))
}
