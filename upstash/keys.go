package upstash

import (
	"context"
	"iter"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/internal/pttl"
)

// Values of TTL in place of a time.
const (
	NoExpiry time.Duration = -1 // the key does not expire
	NoKey    time.Duration = -2 // there is no such key
)

// Expire makes key expire after ttl, at least 1 ms, and reports whether there
// is such a key. If a repetition found none, the error is [ErrMaybeRepeated].
func (c *Client) Expire(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	return c.flag(ctx, ExpireCmd(key, ttl))
}

// ExpireCmd returns the command of [Client.Expire] for a batch, with conditions
// such as "NX". Parts of a millisecond are cut off.
func ExpireCmd(key string, ttl time.Duration, conditions ...string) Command {
	name, n := "EXPIRE", int64(ttl/time.Second)
	if ttl%time.Second != 0 {
		name, n = "PEXPIRE", ttl.Milliseconds()
	}
	cmd := Cmd(name, append([]string{key, strconv.FormatInt(n, 10)}, conditions...)...)
	if ttl < time.Millisecond && cmd.err == nil {
		cmd.err = argumentError(name, "ttl is %v, which would delete the key: use at least 1ms, or Del", ttl)
	}
	return cmd
}

// Persist takes the expiry off key and reports whether it had one. It returns
// [ErrMaybeRepeated] if a repetition found none.
func (c *Client) Persist(ctx context.Context, key string) (bool, error) {
	return c.flag(ctx, Cmd("PERSIST", key))
}

// TTL returns the time until key expires, in milliseconds, or [NoExpiry] or
// [NoKey], which are negative.
func (c *Client) TTL(ctx context.Context, key string) (time.Duration, error) {
	n, err := c.integer(ctx, Cmd("PTTL", key))
	if err != nil {
		return 0, err
	}
	if n < 0 {
		return time.Duration(n), nil
	}
	return pttl.Duration(n), nil
}

// Del deletes keys and returns how many there were. It is not repeated after an
// attempt of unknown outcome. Without keys nothing is sent.
func (c *Client) Del(ctx context.Context, keys ...string) (int64, error) {
	if len(keys) == 0 {
		return 0, nil
	}
	return c.integer(ctx, Cmd("DEL", keys...))
}

// Scan returns the keys that match a pattern, such as "user:*", or "*" for all.
// It takes one request and one billed command for each thousand keys of the
// database, however few match. A key may come twice. One that is there all the
// while comes at least once. An error comes with an empty key and ends the
// iteration: [ErrNoPermission] for a read-only token.
func (c *Client) Scan(ctx context.Context, match string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		// A circle of cursors is found as Brent does (1980): each is compared with
		// an earlier one, which is chosen anew after 1, 2, 4, 8, ... steps.
		earlier, steps, until := "0", 0, 1
		for cursor := "0"; ; {
			r, err := c.Do(ctx, Cmd("SCAN", cursor, "MATCH", match, "COUNT", "1000").Binary())
			if err != nil {
				yield("", err)
				return
			}
			var keys []Reply
			cursor, keys, err = scanned(r)
			if err != nil {
				yield("", err)
				return
			}
			for _, k := range keys {
				key, err := k.textOrNumber()
				if !yield(key, err) || err != nil {
					return
				}
			}
			if cursor == "0" {
				return
			}
			if cursor == earlier {
				yield("", r.bad("SCAN repeats a cursor, and would not end"))
				return
			}
			steps++
			if steps == until {
				earlier, steps, until = cursor, 0, 2*until
			}
		}
	}
}

// maxCursor is the number of digits of 2^64.
const maxCursor = 20

// scanned returns what SCAN answers: the next cursor, and an array of keys.
func scanned(r Reply) (cursor string, keys []Reply, err error) {
	parts, err := r.Array()
	if err == nil && len(parts) != 2 {
		err = r.bad("%d elements, want a cursor and keys", len(parts))
	}
	if err == nil {
		cursor, err = parts[0].textOrNumber()
	}
	if err == nil && (cursor == "" || len(cursor) > maxCursor || !onlyOf(cursor, digits)) {
		err = r.bad("a cursor that is no number")
	}
	if err == nil {
		keys, err = parts[1].Array()
	}
	if err == ErrNil {
		err = r.bad("null, want a cursor and keys")
	}
	return cursor, keys, err
}

func (c *Client) integer(ctx context.Context, cmd Command) (int64, error) {
	n, _, err := c.answer(ctx, cmd)
	return n, err
}

// flag sends a command that answers 1 if it did something. A 0 to a repetition
// does not prove that the first attempt did nothing.
func (c *Client) flag(ctx context.Context, cmd Command) (bool, error) {
	n, r, err := c.answer(ctx, cmd)
	if err == nil && n == 0 && r.MaybeRepeated() {
		err = r.uncertain()
	}
	return n == 1, err
}

func (c *Client) answer(ctx context.Context, cmd Command) (int64, Reply, error) {
	r, err := c.Do(ctx, cmd)
	if err != nil {
		return 0, r, err
	}
	if r.IsNil() {
		return 0, r, r.bad("null for an integer")
	}
	n, err := r.Int64()
	return n, r, err
}

// BitCount returns the number of set bits in the string at key, or 0. The
// server takes about 1 ms a megabyte.
func (c *Client) BitCount(ctx context.Context, key string) (int64, error) {
	return c.integer(ctx, Cmd("BITCOUNT", key))
}
