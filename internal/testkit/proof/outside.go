package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// itemCount is how many items the calls choose from. They are few, so that
// calls share items.
const itemCount = 6

// Draw draws a call of a client.
func Draw(rng *rand.Rand) Call {
	verbs := []Verb{
		Create, Create, Add, Add, Add, Add, Add, Add, AddAll, AddAll,
		Exists, Exists, Exists, Exists, Exists, Exists, ExistsAll, ExistsAll, Delete, Delete,
		Persist, SetTTL,
	}
	c := Call{Verb: verbs[rng.IntN(len(verbs))]}
	switch c.Verb {
	case Add, Exists:
		c.Items = items(rng, 1)
	case AddAll, ExistsAll:
		c.Items = items(rng, 2+rng.IntN(2))
	}
	return c
}

func items(rng *rand.Rand, n int) []string {
	list := make([]string, n)
	for i, item := range rng.Perm(itemCount)[:n] {
		list[i] = "item-" + strconv.Itoa(item)
	}
	return list
}

// DrawOutside draws, with one call in ten, a change that does not come from a
// client of ours.
func DrawOutside(rng *rand.Rand) (c Call, ok bool) {
	verbs := []Verb{Expire, Expire, Clear, Overwrite}
	return Call{Verb: verbs[rng.IntN(len(verbs))]}, rng.IntN(10) == 0
}

// others are data of other programs: a text, and a filter of another geometry.
// The second word of each begins with a 1, so that no birth number can be added
// to it. So the answer to a write does not depend on a random number.
var others = []string{
	"a text, évident for another program, which it must be able to read again",
	"\x88\x40\x00\x00\x1f\x40\x00\x00" + "\x88\x00\x00\x00\x00\x00\x00\x00" + string(make([]byte, 125)),
}

// Outside runs Expire, HasTTL, Clear or Overwrite on the database behind s.
func Outside(s *upstashtest.Server, key string, seed uint64, c Call) Result {
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
	case Overwrite:
		_, err = s.Exec("SET", key, others[seed%2])
	default:
		panic("proof: nothing outside does " + string(c.Verb))
	}
	if err != nil {
		return Result{End: Unknown, Err: err.Error()}
	}
	return Result{End: Answered, Yes: []bool{reply == int64(1)}}
}

// Finish adds last calls to the history, after all faults: a look-up of every
// item, one more Add, and HasTTL. f is a new handle.
func Finish(ctx context.Context, h *History, s *upstashtest.Server, key string, f *bloom.Filter) error {
	all := Call{Verb: ExistsAll}
	for i := range itemCount {
		all.Items = append(all.Items, "item-"+strconv.Itoa(i))
	}
	run := func(c Call) Result {
		return h.Do("at last", c, true, func(c Call) Result { return Run(ctx, f, c) })
	}
	run(all)
	// Another item than those of the clients: a LostThenError may wait for the
	// repetition of one of their requests.
	r := run(Call{Verb: Add, Items: []string{"item-at-last"}})
	switch r.End {
	case Answered, Mismatch, Missing:
	default:
		return fmt.Errorf("an Add that met no fault: %v", r)
	}
	// A filter that should have a TTL has one by now. Other data have none.
	h.Do("outside", Call{Verb: HasTTL}, true, func(c Call) Result { return Outside(s, key, 0, c) })
	return nil
}
