package bloom

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/pttl"
	"github.com/upbloom/upbloom/upstash"
)

// What a Create does if some shards are there and some are missing.

var (
	// emptyScript returns the first set bit of the cells, -1 for none, and the
	// PTTL.
	emptyScript = upstash.NewScript(engine.LuaCheckHeader + `return {w[1],
  redis.call('BITPOS', KEYS[1], '1', '24'), redis.call('PTTL', KEYS[1])}`)
	// renewScript is emptyScript, and gives an empty string that expires within
	// ARGV[2] ms the expiry ARGV[3], '0' for none. It returns the old PTTL.
	renewScript = upstash.NewScript(engine.LuaCheckHeader + `local first = redis.call('BITPOS', KEYS[1], '1', '24')
local left = redis.call('PTTL', KEYS[1])
if first < 0 and left >= 0 and left < tonumber(ARGV[2]) then
  if ARGV[3] == '0' then
    redis.call('PERSIST', KEYS[1])
  else
    redis.call('PEXPIREAT', KEYS[1], ARGV[3])
  end
end
return {w[1], first, left}`)
)

// renewBelow is how long shards without items have to live at least, so that a
// Create completes them as they are. It is above the difference of clocks.
const renewBelow = time.Minute

// An unfinished is what a Create has to do.
type unfinished struct {
	missing []int // to be made
	// expireAt is when the shards will expire, in Unix milliseconds, 0 for never.
	expireAt int64
	// old are the shards that are there, empty, and get that moment too, if they
	// expire within this time. A shard that another Create made just now does not.
	old    []int
	within time.Duration
}

// unfinished tells an unfinished Create from the loss of shards.
func (s *Sharded) unfinished(ctx context.Context, missing []int) (u unfinished, err error) {
	u.missing = missing
	there := slices.DeleteFunc(s.all(), func(i int) bool { return slices.Contains(missing, i) })
	ttl := s.cfg.TTL
	if len(there) > 0 {
		left, lost, filled, err := s.survey(ctx, there, func(i int) upstash.Command {
			return s.shards[i].rec.Script(emptyScript, nil).Repeatable(true)
		})
		if err != nil {
			return u, err
		}
		u.miss(lost)
		if filled {
			return u, s.lost(ctx, &u, left)
		}
		soon := renewBelow
		u.within = math.MaxInt64
		if ttl > 0 {
			soon = min(soon, ttl/2)
			u.within = ttl - soon
		}
		switch {
		case len(lost) == len(there):
		case left > 0 && left < soon:
			u.old = slices.DeleteFunc(there, func(i int) bool { return slices.Contains(lost, i) })
		default:
			ttl = left
		}
	}
	if ttl == 0 {
		return u, nil
	}
	now, err := s.shards[0].rec.Client.ServerTime(ctx)
	if err != nil {
		return u, fault.Untouched(err)
	}
	u.expireAt = now.Add(ttl).UnixMilli()
	return u, nil
}

// miss adds to the missing shards.
func (u *unfinished) miss(shards []int) {
	u.missing = append(u.missing, shards...)
	slices.Sort(u.missing)
}

// lost looks for the missing shards once more, because others hold items:
// another Create may have completed them, and then items were added. left is how
// long the others have to live.
func (s *Sharded) lost(ctx context.Context, u *unfinished, left time.Duration) (err error) {
	if u.missing, err = s.look(ctx, u.missing); err != nil || len(u.missing) == 0 {
		return err
	}
	return &missingError{
		shards: u.missing, of: len(s.shards), filled: true, left: left, err: fault.Untouched(ErrNotFound),
	}
}

// renew gives the old shards the moment of those to be made. Those that have
// expired meanwhile are missing.
func (s *Sharded) renew(ctx context.Context, u *unfinished) error {
	if len(u.old) == 0 {
		return nil
	}
	left, lost, filled, err := s.survey(ctx, u.old, func(i int) upstash.Command {
		return s.shards[i].rec.Script(renewScript, nil, engine.Milliseconds(u.within),
			strconv.FormatInt(u.expireAt, 10)).Repeatable(true)
	})
	if err != nil {
		return err
	}
	u.miss(lost)
	if filled {
		return s.lost(ctx, u, left)
	}
	return nil
}

// survey runs emptyScript or renewScript. It reports whether one of the shards
// holds an item, and returns how long they have to live, 0 for ever, and which of
// them have gone meanwhile.
func (s *Sharded) survey(ctx context.Context, shards []int, script func(shard int) upstash.Command,
) (ttl time.Duration, lost []int, filled bool, err error) {
	answers := s.runCheckedOn(ctx, shards, script)
	for n, i := range shards {
		a := answers[n]
		switch {
		case fault.Is(a.err, ErrNotFound):
			lost = append(lost, i)
			continue
		case a.err == nil && (len(a.answers) != 2 || !a.answers[0].Valid || !a.answers[1].Valid):
			a.err = engine.WrongCount(1+len(a.answers), 3)
		}
		if a.err != nil {
			return 0, nil, false, s.named(i, a.err)
		}
		filled = filled || a.answers[0].Int64 >= 0
		if left := a.answers[1].Int64; left >= 0 { // 0 in the last millisecond
			d := max(pttl.Duration(left), time.Millisecond)
			if ttl == 0 || d < ttl {
				ttl = d
			}
		}
	}
	return ttl, lost, filled, nil
}
