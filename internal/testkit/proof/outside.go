package proof

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// others are data of other programs: a text, and a filter of a later version.
// The second word of each begins with a 1, so no birth number can be added to
// it. The answer to a write then does not depend on a random number.
var others = []string{
	"a text, évident for another program, which it must be able to read again",
	"\x88\x40\x00\x00\x1f\x40\x00\x00" + "\x88\x00\x00\x00\x00\x00\x00\x00" + string(make([]byte, 125)),
}

// emptyTable is such data for the calls that replace a filter: an empty Cuckoo.
const emptyTable = "\x8d\x08\x00\x00\x00\x1c\x28\x00" + "\x80\x00\x00\x00\x00\x00\x08\x00" +
	"\x80\x00\x00\x00\x00\x00\x00\x00"

// copyScript copies KEYS[1] over KEYS[2], with its TTL. If KEYS[1] is missing, and
// ARGV[1] is 1, so is KEYS[2] afterwards.
const copyScript = `if redis.call('COPY', KEYS[1], KEYS[2], 'REPLACE') == 0 and ARGV[1] == '1' then
  redis.call('DEL', KEYS[2])
end
return 1`

// Outside makes a call on the database itself.
func (f Filters) Outside(dbs []*upstashtest.Server, key string, seed uint64, c Call) Result {
	s, otherKey := dbs[0], secondKey(key)
	if c.Key == 1 {
		key, otherKey = otherKey, key
	}
	var reply any
	var err error
	switch c.Verb {
	case Expire:
		reply, err = s.Exec("EVAL",
			"if redis.call('PTTL', KEYS[1]) > 0 then return redis.call('DEL', KEYS[1]) end return 0", "1", key)
	case HasTTL:
		reply, err = s.Exec("EVAL", "return redis.call('PTTL', KEYS[1]) > 0 and 1 or 0", "1", key)
	case Clear:
		reply, err = s.Exec("DEL", key)
	case ClearParts:
		err = clearParts(s, key, f.Long)
	case Overwrite:
		if f.Themes&Moves != 0 && seed%3 == 0 {
			_, err = s.Exec("SET", key, emptyTable+string(make([]byte, 113)))
			reply = int64(1)
		} else {
			_, err = s.Exec("SET", key, others[seed%2])
		}
	case Plant:
		_, err = s.Exec("SET", key, string(stringOf(localOf(f.geometry(), c.Items))))
	case Smudge:
		_, err = s.Exec(f.smudge(key, c.Items[0])...)
	case FlushScripts:
		_, err = s.Exec("SCRIPT", "FLUSH")
	case Keep:
		_, err = s.Exec("EVAL", copyScript, "2", key, key+":kept", "1")
	case Revert:
		_, err = s.Exec("EVAL", copyScript, "2", key+":kept", key, "1")
	case CopyOver:
		_, err = s.Exec("EVAL", copyScript, "2", key, otherKey, "0")
	default:
		panic("proof: nothing outside does " + string(c.Verb))
	}
	if err != nil {
		return Result{End: Unknown, Err: err.Error()}
	}
	return Result{End: Answered, Yes: []bool{reply == int64(1)}}
}

// clearParts removes the parts of all uploads, or only one of each that has
// several.
func clearParts(s *upstashtest.Server, key string, one bool) error {
	for _, key := range []string{key, secondKey(key)} {
		reply, err := s.Exec("KEYS", key+":load:*")
		if err != nil {
			return err
		}
		keys, _ := reply.([]any)
		for _, k := range keys {
			if one && !strings.HasSuffix(fmt.Sprint(k), ":1") {
				continue
			}
			if _, err := s.Exec("DEL", fmt.Sprint(k)); err != nil {
				return err
			}
		}
	}
	return nil
}

// smudge is the command of an Add by a handle of another geometry.
func (f Filters) smudge(key, item string) []string {
	g := geometryOf(f.other())
	text := stringOf(bloom.NewLocal(g))
	header := binary.BigEndian.Uint64(text) >> 11
	body := uint64(len(text))*8 - (g.Bits+7)/8*8
	cmd := []string{
		"BITFIELD", key, "OVERFLOW", "FAIL", "INCRBY", "u53", "0", strconv.FormatUint(header, 10),
		"INCRBY", "u53", "64", strconv.FormatUint(1<<52+7, 10), "OVERFLOW", "WRAP",
	}
	for _, p := range g.Positions(nil, item) {
		cmd = append(cmd, "SET", "u1", strconv.FormatUint(body+p, 10), "1")
	}
	return cmd
}

// Finish adds last calls to the history, after all faults: a look-up of every
// item, one more Add, HasTTL, and a Load and a Snapshot if filters are moved. s is
// a new client's.
func (f Filters) Finish(
	ctx context.Context, h *History, dbs []*upstashtest.Server, key string, s Handles,
) error {
	if err := lastCalls(ctx, h, s, allItems(f.items()), !f.Bare); err != nil {
		return err
	}
	var moves []Call
	load, snapshot := Call{Verb: Load, Items: []string{itemName(0), itemName(1)}}, Call{Verb: Snapshot}
	switch {
	case f.Near:
		moves = []Call{snapshot, snapshot}
	case f.Themes&(Moves|Copies) != 0:
		moves = []Call{snapshot, load, snapshot}
	}
	for i, c := range moves {
		r := h.Do(atLast, atLast, c, func(c Call) Result { return s.Run(ctx, c) })
		if r.End == Recreated && 0 < f.TTL && f.TTL < time.Minute {
			continue // on a real clock it may expire between two parts
		}
		if r.End == Recreated && f.Lag && !f.Tokens {
			continue // the region may not have the filter
		}
		// The first Snapshot may meet a LostThenError, as lastCalls says.
		if err := unharmed(c, r); i > 0 && err != nil {
			return err
		}
	}
	// By now a filter meant to have a TTL has one. Other data has none.
	h.Do("outside", "outside", Call{Verb: HasTTL}, func(c Call) Result {
		return f.Outside(dbs, key, 0, c)
	})
	return nil
}

// DrawOutside draws, after one call in ten, a change from outside.
func (f Filters) DrawOutside(rng *rand.Rand) (c Call, ok bool) {
	verbs := []Verb{Expire, Expire, Clear, Overwrite}
	often := 10
	if f.Themes&Moves != 0 && rng.IntN(3) == 0 {
		verbs = []Verb{ClearParts}
	}
	if f.Themes&Writers != 0 {
		verbs, often = append(verbs, Plant, Plant, Plant, Plant, Smudge, Smudge), 6
	}
	if f.Themes&Losses != 0 {
		verbs, often = append(slices.Clip(lossVerbs), CopyOver, Clear), 3
		c.Key = rng.IntN(6) / 5
	}
	c.Verb = pick(rng, verbs)
	switch c.Verb {
	case Plant:
		c.Items = items(rng, 1+rng.IntN(4))
	case Smudge:
		c.Items = items(rng, 1)
	}
	return c, rng.IntN(often) == 0 && !f.Bare && (!f.Near || rng.IntN(3) == 0)
}

// lossVerbs are the changes of a database that comes back with an older state.
var lossVerbs = []Verb{Keep, Keep, Keep, Revert, Revert, Revert}

// drawLoss draws such a change instead of another one, half of the time.
func (c *Call) drawLoss(rng *rand.Rand, on bool) (drawn bool) {
	if !on || rng.IntN(2) > 0 {
		return false
	}
	c.Verb = pick(rng, lossVerbs)
	return true
}

// evict deletes keys.
func evict(s *upstashtest.Server, keys ...string) Result {
	reply, err := s.Exec(append([]string{"DEL"}, keys...)...)
	if err != nil {
		return Result{End: Unknown, Err: err.Error()}
	}
	return Result{End: Answered, Yes: []bool{reply == int64(1)}}
}

func outsideResult(err error, yes bool, count int) Result {
	if err != nil {
		return Result{End: Unknown, Err: err.Error()}
	}
	return Result{End: Answered, Yes: []bool{yes}, Count: count}
}
