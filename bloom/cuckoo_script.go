package bloom

import (
	"fmt"
	"strconv"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/bloom/internal/opsize"
	"github.com/upbloom/upbloom/upstash"
)

// cuckooShape is the shape of a record of the cuckoo scheme. A look-up reads
// the item's two buckets; a write is a script.
type cuckooShape struct {
	geo     Geometry
	buckets uint64
}

func (cuckooShape) KindWord(*engine.Request) int64 { return 1 << (wordBits - 1) }

func (cuckooShape) MutableBits() uint           { return wordBits - 1 }
func (cuckooShape) differingField(int64) string { return "" }
func (s cuckooShape) length() uint64            { return s.geo.Bytes(LayoutHeaded) }

func (cuckooShape) MaxItems() int      { return cuckooItems }
func (cuckooShape) StoresCopies() bool { return true }

func (cuckooShape) howToShorten() string {
	return "lower the Capacity, raise the FPRate, or choose a larger plan"
}

func (s cuckooShape) ItemBytes(write bool) int {
	if write {
		return len(`,"9007199254740991"`)
	}
	return 2 * opsize.Get(engine.U53, format.HeaderBits+s.buckets*wordBits)
}

func (s cuckooShape) AppendWrite(q *engine.Request, item string) {
	x, y := cells.Digest(item, s.geo.Seed)
	fp, first, _ := cells.CuckooPlace(x, y, s.buckets, s.geo.Hashes)
	q.AppendOp(strconv.FormatUint(fp<<cuckooBucketBits+first, 10))
}

func (s cuckooShape) AppendRead(q *engine.Request, item string) {
	x, y := cells.Digest(item, s.geo.Seed)
	fp, first, second := cells.CuckooPlace(x, y, s.buckets, s.geo.Hashes)
	// The word's mask stands for the fingerprint to look for.
	q.Words = append(q.Words, cells.Word{Index: first, Mask: int64(fp)})
	q.Pos = append(q.Pos[:0], wordBits*first, wordBits*second)
	q.GetWords(format.HeaderBits, q.Pos)
	q.WordEnds = append(q.WordEnds, len(q.Words))
}

// JudgeWrite notes for each item whether it was new, or whether it was removed.
func (s cuckooShape) JudgeWrite(q *engine.Request, answers []upstash.NullInt64) error {
	if len(answers) != len(q.Items) {
		return engine.WrongCount(len(answers), len(q.Items))
	}
	for i, a := range answers {
		if !a.Valid || a.Int64 > 1 {
			return fault.Errorf("bloom: %w: an answer about an item that is neither 0 nor 1", upstash.ErrBadResponse)
		}
		if a.Int64 < 0 {
			return &fullError{item: i, items: len(answers), copies: a.Int64 == -2, slots: s.geo.Hashes}
		}
		q.JudgeItem(a.Int64 == 1, false)
	}
	return nil
}

func (s cuckooShape) JudgeRead(q *engine.Request, answers []upstash.NullInt64) error {
	for i, w := range q.Words {
		first, err := engine.FieldWord(answers[2*i])
		if err != nil {
			return err
		}
		second, err := engine.FieldWord(answers[2*i+1])
		if err != nil {
			return err
		}
		fp, k := uint64(w.Mask), s.geo.Hashes
		q.Found = append(q.Found, cells.CuckooHas(uint64(first), fp, k) || cells.CuckooHas(uint64(second), fp, k))
	}
	return nil
}

// Failed explains a write whose outcome is not known.
func (cuckooShape) Failed(q *engine.Request, err error) error {
	if upstash.SafeToRetry(err) || engine.IsForeign(err) || fault.Is(err, ErrNotFound) {
		return err
	}
	return &copiesError{err, q.Removing}
}

// The writes of a Cuckoo are scripts. Each reads the words of its items in one
// command, works out the new ones, and writes them in one more, with the kind's
// own word as the last operation. If it cannot place all of its items, it
// writes nothing.
//
// ARGV[1] is the header, which also says the number of buckets and of slots.
// From ARGV[4] on, each argument is an item: its fingerprint times 2^27, plus
// its first bucket. All numbers stay below 2^53: Lua carries such integers
// exactly. A bucket is a key of tables by minus its number: the Lua of Go, in
// test servers, would fill an array up to the largest positive key.

// cuckooRead begins both scripts. It reads the words of all items' buckets, at
// most 500 items in one command, and returns what it found if there is no such
// filter.
const cuckooRead = engine.LuaFlags + `local key, floor = KEYS[1], math.floor
local header = tonumber(ARGV[1])
local buckets, slots = header % 4294967296 / 53, floor(header / 549755813888) % 64
local size, unit = 2 ^ floor(53 / slots), {1}
for s = 2, slots do unit[s] = unit[s - 1] * size end

local function other(fp, b)
  local o = -(fp * 96280213 % buckets) - b
  if o > 0 then o = o - buckets end
  return o
end

local words, old = {}, {}
-- the slot, from 1 up, of the word of bucket b that holds fp; nil if none does
local function slot(b, fp)
  local w = words[b]
  for s = 1, slots do
    if floor(w / unit[s]) % size == fp then return s end
  end
end
local function put(b, s, difference)
  if not old[b] then old[b] = words[b] end
  words[b] = words[b] + difference * unit[s]
end
local function ones(n)
  local c = 0
  while n > 0 do
    c = c + n % 2
    n = floor(n / 2)
  end
  return c
end
local function offset(b) return string.format('%.0f', 192 - 53 * b) end

-- reads the words of at most 2,000 buckets behind the operations that stand
local function read(list, from, ops, skip)
  local last = math.min(#list, from + 1999)
  for i = from, last do
    ops[#ops + 1] = 'GET'
    ops[#ops + 1] = 'u53'
    ops[#ops + 1] = offset(list[i])
  end
  local got = redis.call('BITFIELD_RO', key, unpack(ops))
  for i = from, last do words[list[i]] = got[skip + i - from + 1] end
  return got, last + 1
end

local fps, one, two, list, listed = {}, {}, {}, {}, {}
for i = 4, #ARGV do
  local a = tonumber(ARGV[i])
  local fp, b = floor(a / 134217728), -(a % 134217728)
  local o = other(fp, b)
  fps[#fps + 1], one[#one + 1], two[#two + 1] = fp, b, o
  if not listed[b] then listed[b] = true list[#list + 1] = b end
  if not listed[o] then listed[o] = true list[#list + 1] = o end
end
local w = read(list, 1, {` + engine.LuaWords + `}, 4)
local made = w[1] == 0
if made then
  if ARGV[2] == '0' then return {0} end
  if redis.call('EXISTS', key) == 1 then return {1} end
  w[1], w[3], w[4] = header, tonumber(ARGV[3]), 4503599627370496
elseif w[1] ~= header then
  return {w[1]}
elseif w[4] < 4503599627370496 then
  return {w[1], w[2], w[3], w[4]}
end
local count, sum = floor(w[4] / 1048576) % 4294967296, w[4] % 1048576
`

// cuckooWrite ends both scripts. It writes the changed words from the last to
// the first: the string grows at once or not at all. It returns the answers
// behind the header's.
const cuckooWrite = engine.LuaSet + `local changed = {}
for b, was in pairs(old) do
  if was ~= words[b] then changed[#changed + 1] = b end
end
table.sort(changed, function(a, b) return a < b end)
if made then
  set('0', header)
  set('64', w[3])
end
for i = 1, #changed do set(offset(changed[i]), words[changed[i]]) end
w[4] = 4503599627370496 + count * 1048576 + (sum + 1048576) % 1048576
if ops[1] or changed[1] then
  set('128', w[4])
  if ops[1] then redis.call('BITFIELD', key, unpack(ops)) end
end
local out = {w[1], w[2], w[3], w[4]}
for i = 1, #fps do out[i + 4] = answers[i] end
return out`

// cuckooAddScript places all items together. In each round, a waiting item
// looks for the shortest path of moves to an empty slot among the words read,
// breadth first over at most 400 buckets; then the words missed by the searches
// are read. An item is answered by 1 if no copy of it was there, else by 0. If
// an item finds no place, it is answered by -1, or by -2 if its buckets hold
// nothing but copies of it, and nothing is written.
var cuckooAddScript = upstash.NewScript(cuckooRead + `local answers, there, waiting = {}, {}, {}
for i = 1, #fps do
  local fp, b, o = fps[i], one[i], two[i]
  local place = fp * 134217728 - math.max(b, o)
  answers[i] = 1
  if there[place] or slot(b, fp) or slot(o, fp) then answers[i] = 0 end
  there[place], waiting[i] = true, i
  count, sum = count + 1, sum + ones(fp)
end

local function full(i)
  local out, why = {w[1], w[2], w[3], w[4]}, -2
  for s = 1, slots do
    if floor(words[one[i]] / unit[s]) % size ~= fps[i] then why = -1 end
    if floor(words[two[i]] / unit[s]) % size ~= fps[i] then why = -1 end
  end
  for j = 1, #fps do out[j + 4] = 0 end
  out[i + 4] = why
  return out
end

while waiting[1] do
  local later, wanted, listed = {}, {}, {}
  for _, i in ipairs(waiting) do
    local nodes, n, met, blind = {one[i]}, 1, {[one[i]] = true}, {}
    local from, via, last, empty = {}, {}, 1, nil
    if two[i] ~= one[i] then nodes[2], n, met[two[i]] = two[i], 2, true end
    while last <= n do
      local b = nodes[last]
      if not words[b] then
        blind[#blind + 1] = b
      else
        empty = slot(b, 0)
        if empty then break end
        for s = 1, slots do
          local o = other(floor(words[b] / unit[s]) % size, b)
          if n < 400 and not met[o] then
            n = n + 1
            nodes[n], from[n], via[n], met[o] = o, last, s, true
          end
        end
      end
      last = last + 1
    end
    if empty then
      while from[last] do
        local b, s = nodes[from[last]], via[last]
        local fp = floor(words[b] / unit[s]) % size
        put(nodes[last], empty, fp)
        put(b, s, -fp)
        last, empty = from[last], s
      end
      put(nodes[last], empty, fps[i])
    elseif blind[1] then
      later[#later + 1] = i
      for _, b in ipairs(blind) do
        if not listed[b] then listed[b] = true wanted[#wanted + 1] = b end
      end
    else
      return full(i)
    end
  end
  local next = 1
  while next <= #wanted do local _, n = read(wanted, next, {}, 0) next = n end
  waiting = later
end
` + cuckooWrite)

// cuckooRemoveScript takes one copy of each item out. An item is answered by 1 if
// there was one, else by 0.
var cuckooRemoveScript = upstash.NewScript(cuckooRead + `local answers = {}
for i = 1, #fps do
  local fp, b = fps[i], one[i]
  local s = slot(b, fp)
  if not s then
    b = two[i]
    s = slot(b, fp)
  end
  answers[i] = 0
  if s then
    put(b, s, -fp)
    answers[i], count, sum = 1, math.max(count - 1, 0), sum - ones(fp)
  end
end
` + cuckooWrite)

const (
	// cuckooItems is how many items a script takes. Their words and the header
	// are one read.
	cuckooItems = 500
	// cuckooBucketBits is room for a bucket below a fingerprint.
	cuckooBucketBits = 27
)

// Script returns the command of a write.
func (cuckooShape) Script(q *engine.Request) upstash.Command {
	r := q.Rec
	script, create := cuckooAddScript, "1"
	if q.Removing {
		script = cuckooRemoveScript
	}
	if q.Removing || r.MustExist {
		create = "0"
	}
	args := append([]string{create, strconv.FormatInt(q.Birth, 10)}, q.ScriptOps...)
	return engine.Numbered(r.Script(script, nil, args...).AllOrNothing(), q.Birth)
}

// A fullError is ErrFull about one item of a request, none of which was added.
type fullError struct {
	item, items int  // its index, and how many there were
	copies      bool // its places hold nothing but copies of it
	slots       int  // of a bucket
}

func (e *fullError) Error() string {
	which := "the item"
	if e.items > 1 {
		which = fmt.Sprintf("item %d of %d in a request", e.item+1, e.items)
	}
	if e.copies {
		return fmt.Sprintf("bloom: %s is in the cuckoo filter as often as it can be, about %d times, and"+
			" nothing was added: remove it as often as you add it", which, 2*e.slots)
	}
	return fmt.Sprintf("%v (no place for %s)", ErrFull, which)
}

func (e *fullError) Is(target error) bool { return target == ErrFull }
func (e *fullError) SafeToRetry() bool    { return true }

// A copiesError is ErrUncertain of a write to a Cuckoo. It is not known whether
// the write has run, and running it twice is not the same as once.
type copiesError struct {
	err      error
	removing bool
}

func (e *copiesError) Error() string {
	if e.removing {
		return "bloom: it is not known whether a copy of an item was removed; to remove it again may" +
			" take another copy, or another item's: " + fault.TextOf(e.err)
	}
	return "bloom: it is not known whether an item was added; to add it again may store a second" +
		" copy, which takes a second Remove: " + fault.TextOf(e.err)
}

func (e *copiesError) Is(target error) bool { return target == ErrUncertain }
func (e *copiesError) Unwrap() error        { return e.err }
func (e *copiesError) SafeToRetry() bool    { return false }
