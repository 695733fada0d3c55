package bloom

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/internal/synced"
	"github.com/upbloom/upbloom/upstash"
)

// unionScript ORs the filters at KEYS[2] and on into KEYS[1]. All must have the
// header ARGV[1]. ARGV[2] is the birth number of a new filter, or of one that has
// none: a source may be longer than its header says, and the union is then too.
// ARGV[3] is the TTL of a new filter in milliseconds, '0' for none. ARGV[4] is
// '1' if the target must be there.
// BITOP drops the TTL and mixes the second words, which belong to the keys: the
// script restores both. It returns a header and a number: 0 if all went well, i
// if source i is missing or is another filter, -1 if the target is, -2 if that
// is missing and must be there.
var unionScript = upstash.NewScript(engine.LuaFlags + `local w = redis.call('BITFIELD_RO', KEYS[1],
  'GET', 'u53', '0', 'GET', 'u1', '127', 'GET', 'u53', '64')
local ttl = redis.call('PTTL', KEYS[1])
if ttl == -2 and ARGV[4] == '1' then return {0, -2} end
if w[1] ~= tonumber(ARGV[1]) and (w[1] ~= 0 or ttl ~= -2) then return {w[1], -1} end
for i = 2, #KEYS do
  local h = redis.call('BITFIELD_RO', KEYS[i], 'GET', 'u53', '0')[1]
  if h ~= tonumber(ARGV[1]) then return {h, i - 1} end
end
local birth, settled = ARGV[2], '0'
if ttl ~= -2 then settled = tostring(w[2]) end
if w[3] ~= 0 then birth = string.format('%.0f', w[3]) end
if settled == '0' and ARGV[3] ~= '0' then
  settled = '1'
  if ttl < 0 then ttl = tonumber(ARGV[3]) end
end
if w[1] == 0 then
  redis.call('BITOP', 'OR', unpack(KEYS))
else
  redis.call('BITOP', 'OR', KEYS[1], unpack(KEYS))
end
redis.call('BITFIELD', KEYS[1], 'SET', 'u53', '64', birth, 'SET', 'u1', '127', settled)
if ttl >= 0 then redis.call('PEXPIRE', KEYS[1], string.format('%d', math.max(ttl, 1))) end
return {tonumber(ARGV[1]), 0}`)

// Union adds all items of srcs to dst in one atomic step on the server. It
// makes a missing dst with [Config.TTL], unless [Config.MustExist] is set;
// another keeps its TTL and birth number. All must have the same geometry, seed
// and client. If a source is missing, the error is [ErrNotFound] and nothing is
// changed.
func Union(ctx context.Context, dst *Filter, srcs ...*Filter) error {
	name := func(i int) string {
		if i == 0 {
			return "dst"
		}
		return fmt.Sprintf("srcs[%d]", i-1)
	}
	if err := sameGeometry(append([]*Filter{dst}, srcs...), name); err != nil {
		return fault.Untouched(err)
	}
	r := &dst.rec
	if err := r.MayWrite(); err != nil {
		return err
	}
	if len(srcs) == 0 {
		return nil
	}
	// The script passes all keys to one call, and Lua passes some thousands of
	// values at most.
	const most = 1000
	if len(srcs) > most {
		return fault.Errorf("bloom: %w: %d sources: use at most %d a call",
			upstash.ErrArgument, len(srcs), most)
	}
	birth, ttl, must := r.NewBirth(), r.TTL, "0"
	if r.MustExist {
		ttl, must = 0, "1"
	}
	n, _, err := r.RunForIntegers(ctx, r.Script(unionScript, keysOf(srcs), strconv.FormatInt(birth, 10),
		engine.Milliseconds(ttl), must).Timeout(combineTimeout(r.geo, len(srcs))))
	if foreign := engine.Explain(err); fault.Is(foreign, ErrNotFilter) {
		return fault.Untouched(foreign) // the script has read all headers before it writes
	}
	if err != nil {
		if !upstash.SafeToRetry(err) && r.IsMade(ctx, birth) {
			return nil // it ran and made dst, and only the reply was lost
		}
		return r.Explain(err)
	}
	if len(n) != 2 || !n[1].Valid {
		return engine.WrongCount(len(n), 2)
	}
	word, err := engine.FieldWord(n[0])
	if err != nil {
		return err
	}
	switch which := n[1].Int64; {
	case which == 0:
		return r.Learn(word)
	case which > 0 && which <= int64(len(srcs)):
		err = srcs[which-1].rec.Compare(word)
	case which == -1 && word == 0:
		return fault.Untouched(r.Refuse(engine.ErrNoHeader))
	case which == -2:
		return fault.Untouched(r.Learn(0))
	case which == -1:
		return engine.UntouchedUnlessRepeated(engine.OrContradiction(r.Learn(word)), false)
	}
	return fault.Errorf("bloom: srcs[%d]: %w", n[1].Int64-1, engine.UntouchedUnlessRepeated(engine.OrContradiction(err), false))
}

// unionCountScript returns the header and the set cells of KEYS[2], of KEYS[3],
// and of both together, which it makes in the scratch key KEYS[1]. The cells are
// the bits from ARGV[2] to ARGV[3]. If a filter is missing or is another, it
// returns its header and its number, 0 or 1.
var unionCountScript = upstash.NewScript(engine.LuaFlags + `local h = {}
for i = 2, 3 do
  h[i] = redis.call('BITFIELD_RO', KEYS[i], 'GET', 'u53', '0')[1]
  if h[i] ~= tonumber(ARGV[1]) then return {h[i], i - 2} end
end
redis.call('BITOP', 'OR', KEYS[1], KEYS[2], KEYS[3])
local n = {}
for i = 1, 3 do n[i] = redis.call('BITCOUNT', KEYS[i], ARGV[2], ARGV[3], 'BIT') end
redis.call('DEL', KEYS[1])
return {tonumber(ARGV[1]), n[2], n[3], n[1]}`)

// EstimateIntersection estimates how many items are in both filters. Its error
// is a few in a thousand of the union, however small the intersection is. Both
// must have the same geometry, seed and client, whose token may write. A
// missing filter is [ErrNotFound], whatever MissingIsEmpty says.
func EstimateIntersection(ctx context.Context, a, b *Filter) (items uint64, err error) {
	defer fault.OnlyReads(&err)
	name := func(i int) string { return "ab"[i : i+1] }
	if err := sameGeometry([]*Filter{a, b}, name); err != nil {
		return 0, err
	}
	scratch := record{
		Record: engine.Record{Client: a.rec.Client, Key: a.rec.Key + ":union:" + engine.ScratchName(), Header: a.rec.Header},
		geo:    a.rec.geo,
	}
	scratch.Meaning = &scratch
	first, last := scratch.cellRange()
	script := scratch.Script(unionCountScript, keysOf([]*Filter{a, b}), first, last)
	n, _, err := scratch.RunForIntegers(synced.Looking(ctx),
		script.Repeatable(true).Timeout(combineTimeout(a.rec.geo, 2)))
	if err != nil {
		return 0, scratch.Explain(err)
	}
	if len(n) != 2 && len(n) != 4 {
		return 0, engine.WrongCount(len(n), 4)
	}
	word, err := engine.FieldWord(n[0])
	if err != nil {
		return 0, err
	}
	if err := a.rec.Compare(word); err != nil || len(n) == 2 {
		which := name(0)
		if n[1].Int64 == 1 {
			which = name(1)
		}
		return 0, fault.Errorf("bloom: %s: %w", which, engine.OrContradiction(err))
	}
	sum := 0.0
	for i, sign := range []float64{1, 1, -1} {
		if c := n[1+i]; !c.Valid || c.Int64 < 0 {
			return 0, engine.ErrNegative
		}
		items := a.rec.geo.EstimateItems(uint64(n[1+i].Int64))
		if math.IsInf(items, 1) {
			return 0, ErrSaturated
		}
		sum += sign * items
	}
	return uint64(math.Round(max(sum, 0))), nil
}

// sameGeometry returns an error if the filters cannot be combined. name returns
// the caller's name of filter i.
func sameGeometry(filters []*Filter, name func(i int) string) error {
	for i, f := range filters {
		switch {
		case f == nil:
			return fault.Errorf("bloom: %w: %s is nil", upstash.ErrArgument, name(i))
		case f.rec.Client != filters[0].rec.Client:
			return fault.Errorf("bloom: %w: %s has another client than %s: the server can combine what is"+
				" in one database", upstash.ErrArgument, name(i), name(0))
		case !f.rec.Headed():
			return configErrorf("Layout", "is bare: only filters with a header can be combined")
		case f.rec.geo != filters[0].rec.geo:
			err := newMismatchError(KindFilter, filters[0].rec.geo, headerInfo{
				scheme: f.rec.geo.Scheme, hashes: f.rec.geo.Hashes,
				seedTag: seedTag(f.rec.geo.Seed), bits: f.rec.geo.Bits,
			})
			err.local = true // the handles differ, whatever is at their keys
			return fault.Errorf("bloom: %s and %s: %w", name(i), name(0), err)
		}
	}
	return nil
}

func keysOf(filters []*Filter) []string {
	keys := make([]string, len(filters))
	for i, f := range filters {
		keys[i] = f.rec.Key
	}
	return keys
}

// combineTimeout returns how long a script about so many filters may take.
func combineTimeout(g Geometry, filters int) time.Duration {
	return time.Duration(4+uint64(filters+1)*g.Bytes(LayoutHeaded)/(8*engine.ScriptRate)) * time.Second
}
