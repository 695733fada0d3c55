package bloom

import (
	"strconv"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/fault"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/bloom/internal/opsize"
	"github.com/upbloom/upbloom/upstash"
)

// scalableItems is how many items a script takes.
const scalableItems = 1000

// scalableAddScript adds items, each to the newest layer if no layer holds it,
// and begins a layer when the newest has taken as many items as it is for. All
// of this is one step: whatever others do, a layer never takes more.
//
// ARGV[1] is the header, which also says the length of the first layer and the
// words an item has in a layer. ARGV[2] is the birth number, 0 if nothing may
// be made, ARGV[3] the kind's word of a filter without items, ARGV[4] the TTL
// in milliseconds or 0, and ARGV[5] how many layers there may be. From ARGV[6]
// on, each item has its words in every possible layer. Each is a number, the
// word's index times 53^2 plus the first of the item's bits times 53 plus the
// second.
//
// The script returns the header, bit 127, the birth number, the kind's word, and
// for each item 1 if it was new, else 0. A word is a key of tables by minus its
// offset: the Lua of Go, in test servers, would fill an array up to the largest
// positive key.
var scalableAddScript = upstash.NewScript(engine.LuaFlags + `local key, floor = KEYS[1], math.floor
local header, empty, limit = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[5])
local hashed = floor(header / 549755813888) % 64 / 2
local start, last, at, size = {}, {}, 192, header % 4294967296
for layer = 1, 5 do
  local stop = at + floor((size + 7) / 8) * 8
  if stop > 4294967296 then break end
  start[layer] = at
  last[layer] = stop - 1
  at = stop
  size = size * 4
end
local all = #start
local each = hashed * all
local items = (#ARGV - 5) / each

local function place(item, layer, i)
  local v = tonumber(ARGV[5 + (item - 1) * each + (layer - 1) * hashed + i])
  return -start[layer] - 53 * floor(v / 2809), 2 ^ (52 - floor(v / 53) % 53), 2 ^ (52 - v % 53)
end

-- reads the listed words, the first time behind the filter's own
local words, list, w, layers = {}, {}, nil, all
local function read()
  local ops, skip = {}, 0
  if not w then
    ops = {` + engine.LuaWords + `}
    skip = 4
  end
  for i = 1, #list do
    ops[#ops + 1] = 'GET'
    ops[#ops + 1] = 'u53'
    ops[#ops + 1] = string.format('%.0f', -list[i])
  end
  local got = redis.call('BITFIELD_RO', key, unpack(ops))
  for i = 1, #list do words[list[i]] = got[skip + i] end
  list = {}
  if not w then
    w = {got[1], got[2], got[3], got[4]}
    layers = 0
    if w[1] == header then layers = math.min(floor(w[4] / 4294967296) % 16, all) end
  end
end
for item = 1, items do
  if #list + each > 1980 then read() end
  for layer = 1, layers do
    for i = 1, hashed do
      local o = place(item, layer, i)
      if not words[o] then
        words[o] = 0
        list[#list + 1] = o
      end
    end
  end
end
if #list > 0 or not w then read() end

local made = w[1] == 0
if made then
  if ARGV[2] == '0' then return {0} end
  if redis.call('EXISTS', key) == 1 then return {1} end
  w = {header, 0, tonumber(ARGV[2]), empty}
elseif w[1] ~= header then
  return {w[1]}
end
layers = floor(w[4] / 4294967296) % 16
local fixed = floor(w[4] / 68719476736)
if fixed ~= floor(empty / 68719476736) or layers < 1 or layers > all then return w end
local taken, room = w[4] % 4294967296, fixed % 65536
room = floor((2048 + room % 2048) * 2 ^ (floor(room / 2048) - 11)) * 4 ^ (layers - 1)

local function holds(item, layer)
  for i = 1, hashed do
    local o, a, b = place(item, layer, i)
    local v = words[o] or 0
    if floor(v / a) % 2 == 0 or floor(v / b) % 2 == 0 then return false end
  end
  return true
end

-- adds a layer, unless the database refuses so long a string
local function grow()
  local answer = redis.pcall('SETBIT', key, string.format('%.0f', last[layers + 1]), '0')
  if type(answer) == 'table' then
    limit = 0
    return
  end
  layers = layers + 1
  taken = 0
  room = room * 4
end

local answers, changed, dirty = {}, {}, {}
for item = 1, items do
  answers[item] = 1
  for layer = layers, 1, -1 do
    if holds(item, layer) then
      answers[item] = 0
      break
    end
  end
  if answers[item] == 1 then
    if taken >= room and layers < math.min(limit, all) then grow() end
    taken = math.min(taken + 1, 4294967295)
    for i = 1, hashed do
      local o, a, b = place(item, layers, i)
      local v = words[o] or 0
      if floor(v / a) % 2 == 0 then v = v + a end
      if floor(v / b) % 2 == 0 then v = v + b end
      words[o] = v
      if not dirty[o] then
        dirty[o] = true
        changed[#changed + 1] = o
      end
    end
  end
end
w[4] = (fixed * 16 + layers) * 4294967296 + taken

` + engine.LuaSet + `-- The words go from the last to the first: the string grows at once or not at
-- all. The kind's word is the last of all.
local settle = ARGV[4] ~= '0' and w[2] == 0
if made then
  set('0', header)
  set('64', w[3])
end
if settle then set('127', 1, 'u1') end
table.sort(changed, function(a, b) return a < b end)
for i = 1, #changed do
  local o = changed[i]
  set(string.format('%.0f', -o), words[o])
end
if made or changed[1] then set('128', w[4]) end
if ops[1] then redis.call('BITFIELD', key, unpack(ops)) end
if settle then
  local answer = redis.pcall('PEXPIRE', key, ARGV[4], 'NX')
  w[2] = 1
  if type(answer) == 'table' then -- refused: the caller settles it, or says why not
    redis.call('SETBIT', key, '127', '0')
    w[2] = 0
  end
end
for item = 1, items do w[item + 4] = answers[item] end
return w`)

// layers is the shape of a Scalable. Layer number i is areas[i].
type layers struct {
	geo   Geometry      // of layer 0
	areas []format.Area // all possible ones; behind the string's end Redis answers 0
	first uint64        // the capacity of layer 0, as the kind's word has it
	limit int           // this handle adds no layer beyond this number
}

// layersOf returns the layers of a filter whose first one is for so many items.
func layersOf(geo Geometry, capacity, maxBytes uint64) layers {
	l := layers{geo: geo, areas: format.LayerAreas(geo.Bits), first: format.HeldCapacity(capacity), limit: 1}
	for l.limit < len(l.areas) && l.areas[l.limit].End()/8 <= maxBytes {
		l.limit++
	}
	return l
}

// capacity returns how many items layer i is sized for.
func (l *layers) capacity(i int) uint64 { return l.first << (2 * i) }

func (l *layers) geometry(i int) Geometry {
	g := l.geo
	g.Bits = l.areas[i].Words * wordBits
	return g
}

// newest returns how many layers the kind's word says there are.
func (l *layers) newest(word int64) (int, error) {
	n := format.ParseLayers(word).Layers
	if n < 1 || n > len(l.areas) {
		return 0, format.ErrHeaderBits
	}
	return n, nil
}

func (l *layers) KindWord(*engine.Request) int64 {
	return format.LayersWord{Capacity: l.first, Layers: 1}.Word()
}

// MutableBits are the number of layers and how many items the newest has taken.
func (l *layers) MutableBits() uint { return format.LayersBits }

func (l *layers) differingField(int64) string { return "Capacity" }

// length returns the length of the first layer alone: a script lengthens the
// string to the end of each further one, or does not add it.
func (l *layers) length() uint64 { return l.areas[0].End() / 8 }

func (l *layers) howToShorten() string {
	return "lower the Capacity, from which the filter grows, raise the FPRate, or choose a larger plan"
}

func (l *layers) MaxItems() int      { return scalableItems }
func (l *layers) StoresCopies() bool { return false }

func (l *layers) ItemBytes(write bool) int {
	last, z := l.areas[len(l.areas)-1], l.geo.Hashes/2
	if write {
		return len(l.areas) * z * len(`,"`+strconv.FormatUint(last.Words*wordBits*wordBits, 10)+`"`)
	}
	return len(l.areas) * z * opsize.Get(engine.U53, last.End())
}

// AppendWrite appends the item's words in all layers, as scalableAddScript takes
// them.
func (l *layers) AppendWrite(q *engine.Request, item string) {
	x, y := cells.Digest(item, l.geo.Seed)
	for _, a := range l.areas {
		q.Pos = cells.AppendBlocked(q.Pos[:0], x, y, a.Words, l.geo.Hashes/2)
		for i := 0; i < len(q.Pos); i += 2 {
			word, first, second := q.Pos[i]/wordBits, q.Pos[i]%wordBits, q.Pos[i+1]%wordBits
			q.AppendOp(strconv.FormatUint((word*wordBits+first)*wordBits+second, 10))
		}
	}
}

func (l *layers) AppendRead(q *engine.Request, item string) {
	getInAreas(q, l.geo, l.areas, item)
}

// Script is the command of a write.
func (l *layers) Script(q *engine.Request) upstash.Command {
	r := q.Rec
	birth, ttl := strconv.FormatInt(q.Birth, 10), engine.Milliseconds(r.TTL)
	if r.MustExist { // nothing is made, and Create has settled the TTL
		birth, ttl = "0", "0"
	}
	args := append([]string{birth, strconv.FormatInt(l.KindWord(q), 10), ttl, strconv.Itoa(l.limit)}, q.ScriptOps...)
	return engine.Numbered(r.Script(scalableAddScript, nil, args...).Repeatable(true).AllOrNothing(), q.Birth)
}

// JudgeWrite notes for each item whether it was new. If it was not, an earlier
// attempt of the command may have added it.
func (l *layers) JudgeWrite(q *engine.Request, answers []upstash.NullInt64) error {
	if _, err := l.newest(q.KindWord); err != nil {
		return q.Rec.Refuse(err)
	}
	if len(answers) != len(q.Items) {
		return engine.WrongCount(len(answers), len(q.Items))
	}
	for i := range answers {
		isNew, err := engine.CountOnes(answers[i : i+1])
		if err != nil {
			return err
		}
		q.JudgeItem(isNew == 1, q.Wrote.MaybeRepeated)
	}
	return nil
}

// JudgeRead finds the items that one layer holds.
func (l *layers) JudgeRead(q *engine.Request, answers []upstash.NullInt64) error {
	if _, err := l.newest(q.KindWord); err != nil {
		return err
	}
	var room [64]uint8
	held, err := appendHeld(room[:0], q, l.geo.Hashes, len(l.areas), inNone, answers)
	if err != nil {
		return err
	}
	for _, in := range held {
		q.Found = append(q.Found, in != 0)
	}
	return nil
}

// Failed explains the error of a write.
func (l *layers) Failed(_ *engine.Request, err error) error {
	if fault.IsDenied(err) {
		return fault.Errorf("bloom: a Scalable adds by a script: use a token that may run EVAL and EVALSHA: %w", err)
	}
	return err
}
