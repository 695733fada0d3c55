package bloom

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

// unionScript ORs the filters at KEYS[2] and on into KEYS[1], all of header
// ARGV[1]. BITOP drops the TTL and mixes the second words, which are the key's
// own: both are restored. It returns the header, and the number of the first
// source that is missing or another, or 0.
const unionScript = `local w = redis.call('BITFIELD_RO', KEYS[1], 'GET', 'u53', '0', 'GET', 'u1', '127', 'GET', 'u53', '64')
local ttl = redis.call('PTTL', KEYS[1])
if w[1] ~= tonumber(ARGV[1]) and (w[1] ~= 0 or ttl ~= -2) then return {w[1], -1} end
for i = 2, #KEYS do
  local h = redis.call('BITFIELD_RO', KEYS[i], 'GET', 'u53', '0')[1]
  if h ~= tonumber(ARGV[1]) then return {h, i - 1} end
end
local birth, settled = ARGV[2], '0'
if ttl ~= -2 then birth, settled = string.format('%.0f', w[3]), tostring(w[2]) end
if settled == '0' and ARGV[3] ~= '0' then
  settled = '1'
  if ttl < 0 then ttl = tonumber(ARGV[3]) end
end
if w[1] == 0 then redis.call('BITOP', 'OR', unpack(KEYS)) else redis.call('BITOP', 'OR', KEYS[1], unpack(KEYS)) end
redis.call('BITFIELD', KEYS[1], 'SET', 'u53', '64', birth, 'SET', 'u1', '127', settled)
if ttl > 0 then redis.call('PEXPIRE', KEYS[1], string.format('%d', ttl)) end
return {tonumber(ARGV[1]), 0}`

// Union adds all items of srcs to dst, on the server and in one atomic step.
// All have the same geometry and client. dst is made if it is missing; a
// missing source is ErrNotFound, and nothing is changed then. dst keeps its TTL
// and its birth number. One request; the billed commands are five and one for
// each source. To call again is harmless.
//
// The union is exact: a filter of both. There is no Intersection, because the
// AND of two filters holds what is in both and more false positives than
// either, nor a difference; for numbers see EstimateIntersection.
func Union(ctx context.Context, dst *Filter, srcs ...*Filter) error {
	if err := sameGeometry(append([]*Filter{dst}, srcs...)); err != nil {
		return err
	}
	r := &dst.rec
	if err := r.mayWrite(); err != nil {
		return err
	}
	if len(srcs) == 0 {
		return nil
	}
	// The script passes all keys at once, and Lua ends at some thousands.
	const most = 1000
	if len(srcs) > most {
		return fmt.Errorf("bloom: %w: %d sources: use at most %d a call", upstash.ErrArgument, len(srcs), most)
	}
	reply, err := r.evalFor(ctx, setTimeout(r.geo, len(srcs)), unionScript, keysOf(srcs),
		strconv.FormatInt(newBirth(), 10), milliseconds(r.ttl))
	if err != nil {
		return explain(err)
	}
	n, err := reply.Ints(nil)
	if err != nil {
		return explain(err)
	}
	if len(n) != 2 {
		return wrongCount(len(n), 2)
	}
	word, err := fieldWord(n[0])
	if err != nil {
		return err
	}
	switch which := n[1].Int64; {
	case which > 0 && which <= int64(len(srcs)):
		return fmt.Errorf("bloom: source %d of %d: %w", which-1, len(srcs), trimmed{srcs[which-1].rec.compare(word)})
	case which == -1 && word == 0:
		return r.refuse(errNoHeader)
	}
	return r.learn(word)
}

// unionCountScript counts the set cells of KEYS[2] and KEYS[3], and of both in
// the scratch key KEYS[1].
const unionCountScript = `local h = {}
for i = 2, 3 do
  h[i] = redis.call('BITFIELD_RO', KEYS[i], 'GET', 'u53', '0')[1]
  if h[i] ~= tonumber(ARGV[1]) then return {h[i], i - 2} end
end
redis.call('BITOP', 'OR', KEYS[1], KEYS[2], KEYS[3])
local both = redis.call('BITCOUNT', KEYS[1], '16', '-1')
redis.call('DEL', KEYS[1])
return {tonumber(ARGV[1]), redis.call('BITCOUNT', KEYS[2], '16', '-1'), redis.call('BITCOUNT', KEYS[3], '16', '-1'), both}`

// EstimateIntersection estimates how many items are in both filters: n(a) +
// n(b) - n(a or b), each estimated from set cells counted on the server,
// without a download. Both have the same geometry and client. One request and
// eight billed commands; the server needs room for a third filter while it
// runs. A small intersection of large filters is the difference of large
// estimates: its error is that of theirs, a few in a thousand of the union.
// ErrSaturated means that all cells of one, or of both together, are set.
func EstimateIntersection(ctx context.Context, a, b *Filter) (uint64, error) {
	if err := sameGeometry([]*Filter{a, b}); err != nil {
		return 0, err
	}
	scratch := record{
		client: a.rec.client, key: a.rec.key + ":union:" + scratchName(),
		geo: a.rec.geo, header: a.rec.header,
	}
	reply, err := scratch.evalFor(ctx, setTimeout(a.rec.geo, 2), unionCountScript, keysOf([]*Filter{a, b}))
	if err != nil {
		return 0, explain(err)
	}
	n, err := reply.Ints(nil)
	if err != nil {
		return 0, explain(err)
	}
	if len(n) == 2 && n[1].Int64 >= 0 && n[1].Int64 < 2 {
		word, err := fieldWord(n[0])
		if err == nil {
			err = []*Filter{a, b}[n[1].Int64].rec.compare(word)
		}
		return 0, fmt.Errorf("bloom: filter %d of 2: %w", n[1].Int64, trimmed{err})
	}
	if len(n) != 4 {
		return 0, wrongCount(len(n), 4)
	}
	sum := 0.0
	for i, sign := range []float64{1, 1, -1} {
		items := a.rec.geo.EstimateItems(uint64(max(n[1+i].Int64, 0)))
		if math.IsInf(items, 1) {
			return 0, ErrSaturated
		}
		sum += sign * items
	}
	return uint64(math.Round(max(sum, 0))), nil
}

// sameGeometry checks filters that are to be combined.
func sameGeometry(filters []*Filter) error {
	for i, f := range filters {
		switch {
		case f == nil:
			return fmt.Errorf("bloom: %w: filter %d is nil", upstash.ErrArgument, i)
		case f.rec.client != filters[0].rec.client:
			return fmt.Errorf("bloom: %w: filter %d has another client than filter 0: the server can"+
				" combine what is in one database", upstash.ErrArgument, i)
		case !f.rec.headed():
			return configErrorf("Layout", "is bare: only filters with a header can be combined")
		case f.rec.geo != filters[0].rec.geo:
			return newMismatchError(KindFilter, filters[0].rec.geo, headerInfo{
				scheme: f.rec.geo.Scheme, hashes: f.rec.geo.Hashes,
				seedTag: seedTag(f.rec.geo.Seed), bits: f.rec.geo.Bits,
			})
		}
	}
	return nil
}

func keysOf(filters []*Filter) []string {
	keys := make([]string, len(filters))
	for i, f := range filters {
		keys[i] = f.rec.key
	}
	return keys
}

// setTimeout is how long a script about so many filters may take.
func setTimeout(g Geometry, filters int) time.Duration {
	return time.Duration(4+uint64(filters+1)*g.Bytes(LayoutHeaded)/(8*scriptRate)) * time.Second
}
