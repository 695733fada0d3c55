package bloom

import (
	"context"
	"strconv"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/upstash"
)

// growScript raises the number of layers until the newest has room, to ARGV[2]
// at most. For each number of layers there are three arguments about the newest
// of them: its first and its last byte, and the most set bits with which it has
// room, -1 if it never has. Skipped layers stay empty. The script lengthens the
// string to the new layer's end: a database that refuses so long a record keeps
// the layers as they are. It returns the header and the number of layers.
var growScript = upstash.NewScript(engine.LuaCheckHeader + `local was = math.floor(w[4] / 281474976710656) % 16
local newest, limit = was, tonumber(ARGV[2])
while newest > 0 and newest < limit do
  local most = tonumber(ARGV[3 * newest + 2])
  if most >= 0 and redis.call('BITCOUNT', KEYS[1], ARGV[3 * newest], ARGV[3 * newest + 1]) <= most then break end
  newest = newest + 1
end
if newest > was then
  redis.call('BITFIELD', KEYS[1], 'SET', 'u4', '129', newest, 'INCRBY', 'u8', '#' .. ARGV[3 * newest + 1], '0')
end
return {w[1], newest}`)

const lowerMaxBytes = "lower MaxBytes, or choose a larger plan"

// grow has the newest layer make room for n more items, and returns how many
// layers there are then. grew is false if it certainly added none.
func (l *layers) grow(ctx context.Context, n uint64) (newest int, grew bool, err error) {
	r := &l.h.rec
	before := l.known.Load()
	args := []string{strconv.Itoa(l.limit)}
	for i := range l.limit {
		args = append(args, strconv.FormatUint(l.areas[i].offset/8, 10),
			strconv.FormatUint(l.areas[i].end()/8-1, 10), strconv.FormatInt(l.full(i, n), 10))
	}
	layers, repeated, err := r.RunForNumber(ctx, r.Script(growScript, nil, args...).Repeatable(true))
	if large, ok := fault.As[*RecordTooLargeError](err); ok {
		large.Bytes, large.advice = 0, lowerMaxBytes
	}
	if err != nil {
		return 0, repeated, err
	}
	if layers < 1 || layers > int64(len(l.areas)) {
		return 0, repeated, r.Refuse(engine.ErrHeaderBits)
	}
	l.known.Store(int32(layers))
	return int(layers), repeated || int32(layers) != before, nil
}

// makeRoom is grow for items about to be added. If there is no filter, it makes
// one whose newest layer has room for them. The error is that of the last
// command, and grew is false if those before it certainly changed nothing.
func (l *layers) makeRoom(ctx context.Context, n uint64) (newest int, grew bool, err error) {
	for range 3 {
		var more bool
		newest, more, err = l.grow(ctx, n)
		grew = grew || more
		switch {
		case err == nil:
			return newest, grew, nil
		case fault.IsRefusal(err) && !engine.IsForeign(err):
			return 0, grew, &growthError{err, false}
		case !fault.Is(err, ErrNotFound):
			return 0, grew, err
		case l.h.rec.MustExist:
			return 0, grew, err
		}
		newest = l.roomFor(n)
		created, err := l.h.create(ctx, l.areas[newest-1].end(), layersWord(newest))
		if large, ok := fault.As[*RecordTooLargeError](err); ok && newest > 1 {
			large.advice = lowerMaxBytes
		}
		if err != nil {
			return 0, grew, err
		}
		if created {
			l.known.Store(int32(newest))
			return newest, true, nil
		}
	}
	return 0, grew, ErrRecreated // made and deleted by others, again and again
}

// growByChance looks whether the newest layer is full after one stored item in
// a 64th of its capacity, and adds a layer then. The items are in: the caller's
// context does not cut it. If no answer comes, a later Add looks. If the server
// refuses, it will refuse the next time too: this is the error of the write.
func (l *layers) growByChance(ctx context.Context, stored int) error {
	newest := int(l.known.Load())
	if newest >= l.limit || !byLot(ctx, stored, growthShare, l.capacity(newest-1)) || l.growing.Swap(true) {
		return nil
	}
	defer l.growing.Store(false)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engine.SettleTimeout)
	defer cancel()
	if _, _, err := l.grow(ctx, 0); fault.IsRefusal(err) && !engine.IsForeign(err) {
		return &growthError{err, true}
	}
	return nil
}

// growthError is ErrNoGrowth.
type growthError struct {
	err error
	in  bool // the items are in, and the answers hold
}

func (e *growthError) Error() string {
	if fault.Is(e.err, upstash.ErrRecordTooLarge) || fault.Is(e.err, upstash.ErrOutOfMemory) { // whatever the token
		return "bloom: the filter cannot grow: " + fault.WordsOf(e.err)
	}
	return ErrNoGrowth.Error() + ": " + fault.WordsOf(e.err)
}
func (e *growthError) Is(target error) bool { return target == ErrNoGrowth }
func (e *growthError) Unwrap() error        { return e.err }
func (e *growthError) SafeToRetry() bool    { return !e.in && upstash.SafeToRetry(e.err) }

// anewScript makes the filter again with the kind's word ARGV[5] and the bits
// ARGV[6] and on. It does so only if the filter is what one write made of
// nothing: its birth number is ARGV[2], its kind's word ARGV[3], as many bits
// are set as ARGV[4] says, and nobody has settled its TTL. It returns the
// header and whether it did.
var anewScript = upstash.NewScript(engine.LuaCheckHeader + `if w[2] == 1 or w[3] ~= tonumber(ARGV[2]) or w[4] ~= tonumber(ARGV[3])
  or redis.call('BITCOUNT', KEYS[1], '24', '-1') ~= tonumber(ARGV[4]) then return {w[1], 0} end
redis.call('DEL', KEYS[1])
local ops = {'SET', 'u53', '0', ARGV[1], 'SET', 'u53', '64', ARGV[2], 'SET', 'u53', '128', ARGV[5]}
for i = 6, #ARGV do
  ops[#ops + 1] = 'SET'
  ops[#ops + 1] = 'u1'
  ops[#ops + 1] = ARGV[i]
  ops[#ops + 1] = '1'
  if #ops >= 3997 or i == #ARGV then
    redis.call('BITFIELD', KEYS[1], unpack(ops))
    ops = {}
  end
end
return {w[1], 1}`)

// beginAnew moves the items of a write that made the filter to a new first
// layer. Somebody had deleted the filter, and in the newest layer known to the
// handle one item takes the memory of all layers. The items move in one step:
// nobody misses them meanwhile. If somebody has added to the filter since, or
// no answer comes, it stays as it is.
func (l *layers) beginAnew(ctx context.Context, q *engine.Request) {
	if l.isMany(len(q.Items), q.TargetArea+1) {
		return // they are what the layer is for
	}
	set := map[uint64]bool{}
	for _, item := range q.Items {
		q.Pos = l.geometry(q.TargetArea).Positions(q.Pos[:0], item)
		for _, p := range q.Pos {
			set[p] = true
		}
	}
	newest := l.roomFor(uint64(len(q.Items)))
	args := []string{
		strconv.FormatInt(q.Birth, 10), strconv.FormatInt(layersWord(q.TargetArea+1), 10),
		strconv.Itoa(len(set)), strconv.FormatInt(layersWord(newest), 10),
	}
	for _, item := range q.Items {
		q.Pos = l.geometry(newest-1).Positions(q.Pos[:0], item)
		for _, p := range q.Pos {
			args = append(args, strconv.FormatUint(l.areas[newest-1].offset+p, 10))
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engine.SettleTimeout)
	defer cancel()
	r := &l.h.rec
	done, _, err := r.RunForNumber(ctx, r.Script(anewScript, nil, args...).Repeatable(true))
	if err == nil && done == 1 {
		l.known.Store(int32(newest))
	}
}
