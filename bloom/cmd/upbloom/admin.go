package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
		Description: "With a TIME, e.g. 24h or 7d, the filter expires after that time from now. With none\n" +
			"it stays. Programs whose Config has a TTL do not change it afterwards.\n\n" +
			"Only plain and scalable filters can be given another TTL. A window can be made with\n" +
			"create --expire-idle. A cuckoo filter expires only if a program has set that with EXPIRE;\n" +
			"PERSIST takes it away. A sharded filter does not expire.\n" +
			"A filter with a seed needs UPBLOOM_SEED.",
		Action: func(ctx context.Context, c *cli.Command) error {
			args, err := a.arguments(c, 1, 2)
			if err != nil {
				return err
			}
			if len(args) == 2 {
				if err := a.setTTL(ctx, args[0], args[1]); err != nil {
					return err
				}
			}
			left, err := a.ttlOf(ctx, args[0])
			if err != nil && a.wrote {
				return advised{written{err}, "the TTL was set, but could not be read: " + plain(err)}
			}
			if err != nil {
				return err
			}
			return a.print(expiring{args[0], left.Seconds()}, expiry(left))
		},
	}
}

// withoutTTL returns f, or without its --ttl another handle to the filter: f
// would set that on a filter without a TTL.
func (a *app) withoutTTL(f *bloom.Filter, c *cli.Command) (*bloom.Filter, error) {
	if !c.IsSet("ttl") {
		return f, nil
	}
	cfg, err := configOf(c)
	if err != nil {
		return nil, err
	}
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
	left, err := a.ttlOf(ctx, a.key)
	if err != nil || 0 < left && left <= want && want-left <= 5*time.Second {
		return ""
	}
	return fmt.Sprintf("%s was there: it %s, as before; --ttl is for a new filter, and upbloom ttl %[1]s"+
		" %[3]s changes it", printable(a.key), expires(left), ttl(want))
}

func expires(left time.Duration) string {
	if left <= 0 {
		return "does not expire"
	}
	return expiry(left)
}

// ttlOf returns a filter's time to live, or 0 if it has none. It needs the seed
// only of a sharded filter.
func (a *app) ttlOf(ctx context.Context, key string) (time.Duration, error) {
	client, err := a.connect(ctx)
	if err != nil {
		return 0, err
	}
	s, err := bloom.Inspect(ctx, client, key)
	if !errors.Is(err, bloom.ErrNotFound) {
		return s.TTL, err
	}
	o, err := a.openKey(ctx, key)
	if err != nil {
		return 0, err
	}
	all, _, err := o.stats(ctx)
	return time.Duration(all.TTL * float64(time.Second)), err
}

func (a *app) setTTL(ctx context.Context, key, text string) error {
	var d lifetime
	if text != "none" {
		if err := d.Set(text); err != nil {
			return usagef("%q is no time: %v, or none", text, err)
		}
		if time.Duration(d) < time.Millisecond {
			return usagef("%q would remove the filter at once: use upbloom rm", text)
		}
	}
	o, err := a.openKey(ctx, key)
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
		found, err = f.Expire(ctx, time.Duration(d))
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
}

func (a *app) rmCommand() *cli.Command {
	return &cli.Command{
		Name: "rm", Usage: "remove a filter", ArgsUsage: "KEY",
		Description: "Asks first. If standard input is no terminal, it needs --yes. A key that holds\n" +
			"anything but a filter is left alone. Of a sharded filter it removes all shards, and\n" +
			"none if one is missing: the filter may lie in several databases. A filter with a seed\n" +
			"needs UPBLOOM_SEED. If nobody has the seed any more, remove the key by DEL.",
		Flags: []cli.Flag{
			yesFlag("do not ask"),
			&cli.BoolFlag{Name: "rest", Usage: "remove the shards that are here, though others are missing"},
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			args, err := a.arguments(c, 1, 1)
			if err != nil {
				return err
			}
			o, err := a.openKey(ctx, args[0])
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
			return a.print(removed{args[0], true}, "removed")
		},
	}
}

// mayRemove asks whether to remove a filter, unless --yes says so. It refuses
// part of a sharded filter without --rest.
func (a *app) mayRemove(ctx context.Context, c *cli.Command, o opened) error {
	if c.Bool("yes") && o.kind != shardedKind {
		return nil
	}
	s, _, err := o.stats(ctx)
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
	if c.Bool("yes") {
		return nil
	}
	return a.askToRemove(ctx, what)
}

func partOnly(err error, text string) error {
	return advised{err, text + "; nothing was removed: upbloom rm --rest removes the shards that are here"}
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
	return advised{err, what + ", and no filter with a header: it was left alone. If it is not needed, remove it" +
		" with the command DEL of another tool, such as redis-cli"}
}

// mostShards is how many shards a filter has at most.
const mostShards = 256

// restScript removes the shards at all keys but the first, the key of shard 0,
// unless there is one again. ARGV has their headers. A full Redis refuses
// BITFIELD, which may write.
const restScript = `if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local n = 0
for i = 2, #KEYS do
  if redis.call('BITFIELD_RO', KEYS[i], 'GET', 'u53', '0')[1] == tonumber(ARGV[i - 1]) then
    n = n + redis.call('DEL', KEYS[i])
  end
end
return n`

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
	headers, err := a.headersOf(ctx, rest)
	if err == nil && !c.Bool("yes") {
		err = a.askToRemove(ctx, what)
	}
	if err != nil {
		return err
	}
	a.wrote = true
	args := slices.Concat([]string{restScript, strconv.Itoa(1 + len(rest)), a.key + ":0"}, rest, headers)
	reply, err := a.client.Do(ctx, upstash.Cmd("EVAL", args...))
	if err != nil {
		return err
	}
	if n, err := reply.Int64(); err != nil || n == 0 {
		return missing
	}
	return a.print(removed{a.key, true}, "removed")
}

// headersOf returns the headers of shards, as numbers. A shard with another seed
// than UPBLOOM_SEED is an error.
func (a *app) headersOf(ctx context.Context, keys []string) ([]string, error) {
	withSeed, err := seed()
	if err != nil {
		return nil, err
	}
	cmds := make([]upstash.Command, len(keys))
	for i, key := range keys {
		cmds[i] = upstash.NewBitField(key).Get("u53", 0).ReadOnly().Command()
	}
	replies, err := a.client.Pipeline(ctx, cmds...)
	if err != nil {
		return nil, err
	}
	var headers []string
	for i, r := range replies {
		n, err := r.Ints(nil)
		if err != nil || len(n) != 1 {
			return nil, cmp.Or(err, upstash.ErrBadResponse)
		}
		header := strconv.FormatInt(n[0].Int64, 10)
		if !slices.Contains(headers, header) { // all shards of a filter have the same
			var shard *bloom.MismatchError
			_, err := bloom.Open(ctx, a.client, keys[i], bloom.Config{Seed: withSeed})
			if !errors.As(err, &shard) || shard.GotKind != bloom.KindShard || shard.OtherSeed {
				return nil, cmp.Or(err, bloom.ErrNotFound)
			}
		}
		headers = append(headers, header)
	}
	return headers, nil
}

// askToRemove shows what would be lost, and returns an error unless the answer
// is yes.
func (a *app) askToRemove(ctx context.Context, what string) error {
	what = fmt.Sprintf("%s: %s", printable(a.key), what)
	if !a.typed() {
		return usagef("%s\nNothing was removed: --yes does it.", what)
	}
	fmt.Fprintf(a.errOut, "%s\nRemove it? Type yes: ", what)
	answer, err := bufio.NewReader(a.interruptible(ctx, a.in)).ReadString('\n')
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if answer = strings.TrimSpace(answer); err != nil || answer != "yes" && answer != "y" {
		return usagef("nothing was removed")
	}
	return nil
}
