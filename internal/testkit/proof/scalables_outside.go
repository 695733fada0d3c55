package proof

import (
	"fmt"
	"strconv"

	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Outside makes a call on the database itself.
func (s *Scalables) Outside(dbs []*upstashtest.Server, key string, seed uint64, c Call) Result {
	switch c.Verb {
	case Fill:
		return s.fill(dbs[0], key)
	case Layers:
		n, err := s.layersAt(dbs[0], key)
		return outsideResult(err, n > 0, n)
	}
	return s.Plain.Outside(dbs, key, seed, c)
}

func outsideResult(err error, yes bool, count int) Result {
	if err != nil {
		return Result{End: Unknown, Err: err.Error()}
	}
	return Result{End: Answered, Yes: []bool{yes}, Count: count}
}

// layersAt returns the number of layers of the filter at key, or 0 without a
// filter.
func (s *Scalables) layersAt(db *upstashtest.Server, key string) (int, error) {
	reply, err := db.Exec("EVAL", `if redis.call('TYPE', KEYS[1]).ok ~= 'string' then return {0, 0} end
return redis.call('BITFIELD_RO', KEYS[1], 'GET', 'u53', '0', 'GET', 'u53', '128')`, "1", key)
	if err != nil {
		return 0, err
	}
	words, ok := reply.([]any)
	if !ok || len(words) != 2 {
		return 0, fmt.Errorf("two words are %v", reply)
	}
	if words[0] != s.header() {
		return 0, nil
	}
	return int(words[1].(int64) >> 48 & 15), nil
}

// header is the first word of the filter, by the documentation of the format:
// kind 2, version 1, scheme 0 and a tag of the seed.
func (s *Scalables) header() int64 {
	g := s.layer(0)
	return 1<<52 | 2<<50 | 1<<48 | int64(g.Hashes)<<39 | seedTag(s.Plain.Seed)<<32 | int64(g.Bits)
}

// fillScript sets whole bytes: KEYS[1] is the filter, ARGV[1] its header, ARGV[2]
// the number of layers, then pairs of an offset and a length.
const fillScript = `local w = redis.call('BITFIELD_RO', KEYS[1], 'GET', 'u53', '0', 'GET', 'u4', '129')
if w[1] ~= tonumber(ARGV[1]) or w[2] ~= tonumber(ARGV[2]) then return 0 end
for i = 3, #ARGV, 2 do
  redis.call('SETRANGE', KEYS[1], ARGV[i], string.rep('\255', tonumber(ARGV[i + 1])))
end
return 1`

func (s *Scalables) fill(db *upstashtest.Server, key string) Result {
	n, err := s.layersAt(db, key)
	if err != nil || n == 0 {
		return outsideResult(err, false, 0)
	}
	args := []string{"EVAL", fillScript, "1", key, strconv.FormatInt(s.header(), 10), strconv.Itoa(n)}
	for _, run := range s.freeBytes(n - 1) {
		args = append(args, strconv.FormatUint(run[0], 10), strconv.FormatUint(run[1]-run[0], 10))
	}
	reply, err := db.Exec(args...)
	return outsideResult(err, reply == int64(1), n)
}

// freeBytes returns the runs of bytes of layer i, from and to, without cells of
// the items.
func (s *Scalables) freeBytes(i int) (runs [][2]uint64) {
	g, offset := s.layer(i), s.offset(i)
	taken := make(map[uint64]bool)
	for n := range itemCount + len(lastItems) {
		for _, p := range g.Positions(nil, scalableItem(n)) {
			taken[(offset+p)/8] = true
		}
	}
	from := offset / 8
	for b := from; b <= (offset+g.Bits)/8; b++ {
		if !taken[b] && b < (offset+g.Bits)/8 {
			continue
		}
		if b > from {
			runs = append(runs, [2]uint64{from, b})
		}
		from = b + 1
	}
	return runs
}

// scalableItem returns an item. Behind the others are those of the last calls.
func scalableItem(n int) string {
	if n >= itemCount {
		return lastItems[n-itemCount]
	}
	return itemName(n)
}
