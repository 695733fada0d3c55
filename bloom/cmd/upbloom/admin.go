package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

// expiring is the JSON of ttl.
type expiring struct {
	Key string  `json:"key"`
	TTL float64 `json:"ttl"` // in seconds, 0 without one
}

func (a *app) ttlCommand() *cli.Command {
	return &cli.Command{
		Name: "ttl", Usage: "show or set when a filter expires", ArgsUsage: "KEY [TIME or none]",
		Action: a.onDatabase(1, 2, func(ctx context.Context, c *cli.Command, args []string) error {
			if len(args) == 2 {
				if err := a.setTTL(ctx, args[1]); err != nil {
					return err
				}
			}
			left, err := a.ttlOf(ctx)
			if err != nil && a.wrote {
				return advised{marked{err, errWritten}, "the TTL was set, but could not be read: " + plain(err)}
			}
			if err != nil {
				return err
			}
			return a.print(expiring{args[0], left.Seconds()}, expiry(left))
		}),
	}
}

func (a *app) setTTL(ctx context.Context, text string) error {
	var left time.Duration
	if text != "none" {
		var err error
		left, err = parseLifetime(text)
		if errors.Is(err, errTooLong) {
			return usagef("%q: %v; none lets the filter stay", text, err)
		}
		if err != nil {
			return usagef("%q is no time: %v, or none", text, err)
		}
		if left < time.Millisecond {
			return usagef("%q would remove the filter at once: use upbloom rm", text)
		}
	}
	o, err := a.openKey(ctx)
	if err != nil {
		return err
	}
	f, ok := o.handle.(expirer)
	if !ok {
		return usagef("%s; nothing was changed", map[string]string{
			windowKind: "a window has no TTL but that of create --expire-idle: it forgets by itself",
			cuckooKind: "a cuckoo filter has no TTL of its own: take items out with upbloom remove, or remove" +
				" the filter with upbloom rm; the command PERSIST of another tool takes away one that a program set",
			shardedKind: "a sharded filter has no TTL: remove it with upbloom rm",
		}[o.kind])
	}
	a.wrote = true
	found := true
	if text == "none" {
		_, err = f.Persist(ctx)
	} else {
		found, err = f.Expire(ctx, left)
	}
	if err == nil && !found {
		err = bloom.ErrNotFound
	}
	return err
}

// removed is the JSON of rm.
type removed struct {
	Key     string `json:"key"`
	Removed bool   `json:"removed"`
	Host    string `json:"host"` // of the database
}

func (a *app) rmCommand() *cli.Command {
	return &cli.Command{
		Name: "rm", Usage: "remove a filter", ArgsUsage: "KEY, or --match PATTERN",
		Flags: []cli.Flag{
			matchFlag("remove all filters whose keys match `PATTERN`, e.g. 'tenant:*'"),
			yesFlag("do not ask"),
			&cli.BoolFlag{Name: "rest", Usage: "remove the shards that are here, though others are missing"},
		},
		Action: a.oneOrAll(1, func(ctx context.Context, c *cli.Command, args []string) error {
			o, err := a.openKey(ctx)
			if errors.Is(err, bloom.ErrNotFound) {
				return a.removeRest(ctx, c, err)
			}
			if err != nil {
				return a.leftAlone(ctx, err)
			}
			if c.Bool("rest") && o.kind != shardedKind {
				return usagef("--rest is for the shards of a sharded filter, and the key holds a %s: leave --rest"+
					" out to remove that", kindNoun(o.kind))
			}
			if err := a.mayRemove(ctx, c, o); err != nil {
				return err
			}
			a.wrote = true
			gone, err := o.Delete(ctx)
			if err != nil && o.kind == shardedKind && exitStatus(err) == exitUnknown {
				return advised{err, fmt.Sprintf("some of its shards may be gone: upbloom rm --rest %s removes the others",
					printable(a.key))}
			}
			if err == nil && !gone {
				err = bloom.ErrNotFound
			}
			if err != nil {
				return a.leftAlone(ctx, err)
			}
			return a.print(removed{args[0], true, a.host()}, "removed from "+a.host())
		}, 0, a.removeAll),
	}
}

// mayRemove asks whether to remove a filter, unless --yes says so. It refuses
// part of a sharded filter without --rest.
func (a *app) mayRemove(ctx context.Context, c *cli.Command, o opened) error {
	if c.Bool("yes") && o.kind != shardedKind {
		return nil
	}
	s, err := o.stats(ctx)
	what := ""
	switch {
	case err == nil:
		what = brief(s)
	case o.kind != shardedKind || !errors.Is(err, bloom.ErrNotFound):
		return err
	case !c.Bool("rest"):
		return partOnly(err, plain(err))
	default:
		what = "the shards of a sharded filter that are here"
	}
	return a.askToRemove(ctx, c, what)
}

// leftAlone says what is at a key that holds no filter, and what removes it.
func (a *app) leftAlone(ctx context.Context, err error) error {
	if !errors.Is(err, bloom.ErrNotFilter) {
		return err
	}
	what := "other data"
	if reply, err := a.client.Do(ctx, upstash.Cmd("TYPE", a.key)); err == nil {
		if kind, err := reply.Text(); err == nil && kind != "none" {
			what = "data of type " + kind
		}
	}
	if reply, err := a.client.Do(ctx, upstash.Cmd("STRLEN", a.key)); err == nil {
		if n, err := reply.Int64(); err == nil && n > 0 {
			what = "a string of " + human.Counted(uint64(n), "byte")
		}
	}
	return advised{err, what + ", and no filter with a header: it was left alone. If it is not needed, remove" +
		" it with the command DEL of another tool, such as redis-cli"}
}

// removeRest removes what an interrupted rm left of a sharded filter: its
// shards but for shard 0, which goes first. If there are none, it returns
// missing.
func (a *app) removeRest(ctx context.Context, c *cli.Command, missing error) error {
	rest, err := a.rest(ctx)
	if err != nil {
		return err
	}
	if len(rest) == 0 {
		return missing
	}
	what := human.Counted(uint64(len(rest)), "shard") + " of a sharded filter whose shard 0 is missing"
	if !c.Bool("rest") {
		return partOnly(missing, "here are "+what+": it was lost, or it is in another database")
	}
	ids, err := a.identities(ctx, rest)
	if err == nil {
		err = a.haveTheSeed(ctx, rest, ids)
	}
	if err == nil {
		err = a.askToRemove(ctx, c, what)
	}
	if err != nil {
		return err
	}
	a.wrote = true
	// There must still be no shard 0, which would make the filter whole.
	reply, err := a.client.Do(ctx, removal(append(rest, a.key+":0"), append(ids, identity{})))
	if err == nil {
		err = removedBy(reply)
	}
	if err != nil {
		return err
	}
	return a.print(removed{a.key, true, a.host()}, "removed from "+a.host())
}

// haveTheSeed returns an error if a shard has another seed than UPBLOOM_SEED.
func (a *app) haveTheSeed(ctx context.Context, keys []string, ids []identity) error {
	for i, id := range ids {
		if i > 0 && id.header == ids[i-1].header { // all shards of a filter have the same
			continue
		}
		_, err := bloom.Open(ctx, a.client, keys[i], bloom.Config{Seed: a.seed})
		shard, ok := errors.AsType[*bloom.MismatchError](err)
		if !ok || shard.GotKind != bloom.KindShard || shard.OtherSeed {
			return cmp.Or(err, bloom.ErrNotFound)
		}
	}
	return nil
}

// askToRemove shows what would be lost, and returns an error unless the answer
// is yes, or --yes is set.
func (a *app) askToRemove(ctx context.Context, c *cli.Command, what string) error {
	if c.Bool("yes") {
		return nil
	}
	what = fmt.Sprintf("%s at %s: %s", printable(a.key), a.host(), what)
	if !a.typed() {
		return usagef("%s\nNothing was removed: --yes does it.", what)
	}
	answer, err := a.ask(ctx, fmt.Sprintf("%s\nRemove it from %s? Type yes: ", what, a.host()))
	if err == nil && answer != "yes" && answer != "y" {
		err = usagef("nothing was removed")
	}
	return err
}

// removeScript removes the strings at KEYS if each still is the filter of ARGV: its
// header and its birth number, and the bits that are 0 in every filter. Those of a key
// that holds nothing are 0. A full Redis refuses BITFIELD, which may write.
const removeScript = `for i = 1, #KEYS do
  local r = redis.call('BITFIELD_RO', KEYS[i], 'GET', 'u53', '0', 'GET', 'u53', '64', 'GET', 'u10', '117')
  if r[1] ~= tonumber(ARGV[2 * i - 1]) or r[2] ~= tonumber(ARGV[2 * i]) or r[3] ~= 0 then return 0 end
end
return redis.call('DEL', unpack(KEYS))`

// removal is the command that removes these filters.
func removal(keys []string, ids []identity) upstash.Command {
	args := append([]string{removeScript, strconv.Itoa(len(keys))}, keys...)
	for _, id := range ids {
		args = append(args, strconv.FormatInt(id.header, 10), strconv.FormatInt(id.birth, 10))
	}
	return upstash.Cmd("EVAL", args...)
}

// removeAll removes the filters that match --match.
func (a *app) removeAll(ctx context.Context, c *cli.Command, _ []string) error {
	if c.IsSet("rest") {
		return usagef("--rest is for one sharded filter: leave --match out")
	}
	list, err := a.matching(ctx, c.String("match"))
	if err != nil {
		return err
	}
	for i, m := range list {
		if m.err == nil && !slices.ContainsFunc(m.ids, func(id identity) bool { return !id.sure() }) {
			continue
		}
		list[i].err = cmp.Or[error](m.err, advised{bloom.ErrNotFilter, "it was left alone: it begins as a filter does, and has no" +
			" birth number, so that it may be other data: upbloom rm removes it by its own key"})
	}
	t := a.newTally("remove", "from "+a.host(), list)
	if err := t.confirm(ctx, c); err != nil {
		return err
	}
	for part := range slices.Chunk(list, 50) {
		if ctx.Err() != nil {
			break
		}
		a.removePart(ctx, part, t)
	}
	return t.end(ctx)
}

func (a *app) removePart(ctx context.Context, part []member, t *tally) {
	var cmds []upstash.Command
	for _, m := range part {
		if m.err == nil {
			cmds = append(cmds, removal(m.parts, m.ids))
		}
	}
	a.wrote = a.wrote || len(cmds) > 0
	replies, failed := a.client.Pipeline(ctx, cmds...)
	at := 0
	for _, m := range part {
		err := m.err
		if err == nil {
			if err = failed; err == nil {
				err = removedBy(replies[at])
			}
			at++
		}
		t.add(m, removed{m.key, true, a.host()}, err)
	}
}

// removedBy reads the answer of removeScript.
func removedBy(r upstash.Reply) error {
	n, err := r.Int64()
	if err == nil && n == 0 {
		err = advised{bloom.ErrRecreated, "it was left alone: it has changed since it was listed, or is gone"}
	}
	return err
}

// made is the JSON of create.
type made struct {
	Key     string  `json:"key"`
	Kind    string  `json:"kind"`
	Created bool    `json:"created"`
	Bytes   uint64  `json:"bytes"`
	TTL     float64 `json:"ttl"` // in seconds, 0 without one
	Note    string  `json:"note,omitempty"`
}

func (a *app) createCommand() *cli.Command {
	return &cli.Command{
		Name: "create", Usage: "make an empty filter", ArgsUsage: "KEY",
		Flags: slices.Concat(sizeFlags("for `N` items, e.g. 5M; required"), kindFlags()),
		Action: a.onDatabase(1, 1, func(ctx context.Context, c *cli.Command, args []string) error {
			if !c.IsSet("items") {
				return usagef("--items is missing: say for how many items, e.g. upbloom create --items 5M KEY")
			}
			o, err := a.newOf(c)
			if err != nil {
				return err
			}
			there, err := a.openKey(ctx)
			if err == nil && there.kind != o.kind {
				return advised{bloom.ErrNotFilter, fmt.Sprintf("the key holds a %s, and not a %s: use"+
					" another key, or remove it with upbloom rm", kindNoun(there.kind), kindNoun(o.kind))}
			}
			if err != nil && !errors.Is(err, bloom.ErrNotFound) || errors.Is(err, errHeadless) && o.kind != shardedKind {
				return err
			}
			a.wrote = true
			created, err := o.Create(ctx)
			if o.kind == shardedKind && errors.Is(err, bloom.ErrNotFound) {
				return advised{err, missingShards(err) + ", and others hold items: lost, or in another database;" +
					" nothing was changed: upbloom rm --rest removes the others"}
			}
			if err != nil {
				return suited(c, otherSize(err, o.kind))
			}
			s, err := o.stats(ctx)
			if err != nil {
				if created {
					err = marked{err, errWritten}
				}
				return advised{err, "the filter is there, but its state could not be read: " + plain(err)}
			}
			text, note := "created  "+sizeOf[o.kind]+o.Geometry().String(), ""
			switch {
			case !created:
				text, note = "it was there already, and is as it was  "+brief(s), a.keptTTL(ctx, c)
			case o.kind == shardedKind:
				text = fmt.Sprintf("created  sharded filter of %d, each shard %v", c.Int("shards"), o.Geometry())
			case o.kind == scalableKind:
				note = endOfGrowth(countOf(c, "items"), s.MaxParts)
			}
			if note != "" {
				text += "\n" + note
			}
			return a.print(made{args[0], o.kind, created, s.Bytes, s.TTL.Seconds(), note}, text)
		}),
	}
}

// otherSize explains the error of a Create if the key holds a filter of the
// same kind and another size.
func otherSize(err error, kind string) error {
	mismatch, ok := errors.AsType[*bloom.MismatchError](err)
	if !ok || mismatch.OtherSeed || mismatch.Field != "" ||
		mismatch.WantKind != mismatch.GotKind {
		return err
	}
	return advised{err, fmt.Sprintf("another %s is at this key, %v, and not %v: use another key, or the same"+
		" flags as then", kindNoun(kind), mismatch.Got, mismatch.Want)}
}

// sizeOf says what the Geometry of each kind describes.
var sizeOf = map[string]string{
	windowKind: "window, each pane ", scalableKind: "scalable filter, first layer ",
	cuckooKind: "cuckoo filter, ",
}

// newOf returns a handle of the kind and the size in the flags.
func (a *app) newOf(c *cli.Command) (opened, error) {
	kind, err := chosenKind(c)
	if err != nil {
		return opened{}, err
	}
	cfg, err := a.configOf(c)
	if err != nil {
		return opened{}, err
	}
	h, err := newHandle(a.client, kind, a.key, spec{
		Config: cfg, span: lifetimeOf(c, "window"), panes: c.Int("panes"), expireIdle: c.Bool("expire-idle"),
		shards: c.Int("shards"),
	})
	return opened{h, a.client, kind}, flagError(err)
}
