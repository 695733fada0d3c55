package proof

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"

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

// Outside makes a call on the database itself.
func (f Filters) Outside(dbs []*upstashtest.Server, key string, seed uint64, c Call) Result {
	s := dbs[0]
	if c.Key == 1 {
		key = secondKey(key)
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
		err = clearParts(s, key)
	case Overwrite:
		_, err = s.Exec("SET", key, others[seed%2])
	case Plant:
		_, err = s.Exec("SET", key, string(stringOf(localOf(f.geometry(), c.Items))))
	case Smudge:
		_, err = s.Exec(f.smudge(key, c.Items[0])...)
	default:
		panic("proof: nothing outside does " + string(c.Verb))
	}
	if err != nil {
		return Result{End: Unknown, Err: err.Error()}
	}
	return Result{End: Answered, Yes: []bool{reply == int64(1)}}
}

func clearParts(s *upstashtest.Server, key string) error {
	for _, key := range []string{key, secondKey(key)} {
		reply, err := s.Exec("KEYS", key+":load:*")
		if err != nil {
			return err
		}
		keys, _ := reply.([]any)
		for _, k := range keys {
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
// item, one more Add, and HasTTL. s is a new client's.
func (f Filters) Finish(
	ctx context.Context, h *History, dbs []*upstashtest.Server, key string, s Handles,
) error {
	if err := lastCalls(ctx, h, s, itemCount); err != nil {
		return err
	}
	// By now a filter meant to have a TTL has one. Other data has none.
	h.Do("outside", "outside", Call{Verb: HasTTL}, func(c Call) Result {
		return f.Outside(dbs, key, 0, c)
	})
	return nil
}
