package bloom

import (
	"context"
	"strconv"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/upstash"
)

// turnScript moves the window to another epoch, if its word is still the one
// the caller saw (ARGV[2]): a late turn finds another word, and would clear
// panes in use. It stores the new word (ARGV[3]) and sets the TTL of ARGV[4]
// milliseconds, unless that is 0. Then it clears the panes whose first byte and
// length follow, in pieces of 1 MiB, as far as the string goes. If that fails,
// the panes hold old items, and no "no" is wrong.
var turnScript = upstash.NewScript(engine.LuaCheckHeader + `if w[4] ~= tonumber(ARGV[2]) then return {w[1], w[4]} end
redis.call('BITFIELD', KEYS[1], 'SET', 'u53', '128', ARGV[3])
if ARGV[4] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
local length = redis.call('STRLEN', KEYS[1])
local piece = 1048576
for i = 5, #ARGV, 2 do
  local from = tonumber(ARGV[i])
  local to = math.min(from + tonumber(ARGV[i + 1]), length)
  while from < to do
    local n = math.min(piece, to - from)
    redis.call('SETRANGE', KEYS[1], string.format('%d', from), string.rep('\0', n))
    from = from + n
  end
end
return {w[1], tonumber(ARGV[3])}`)

// turn runs the script for a window whose word was seen, to move it to epoch
// to. Repeating it is harmless: after the first run the word is another one.
func (s *windowShape) turn(ctx context.Context, r *engine.Record, word int64, to uint64) error {
	ttl := "0"
	if s.idle {
		ttl = engine.Milliseconds(s.idleTTL())
	}
	args := []string{strconv.FormatInt(word, 10), strconv.FormatInt(s.wordAt(to), 10), ttl}
	// The spare is the pane after the new epoch. It holds old items, and so do
	// the panes of epochs without a writer.
	for i := range min(s.since(to, epochOf(word)), s.panes()) {
		pane := s.areas[(to+1+s.cycle()-i)%s.panes()]
		args = append(args, strconv.FormatUint(pane.offset/8, 10),
			strconv.FormatUint((pane.end()-pane.offset)/8, 10))
	}
	_, _, err := r.RunChecked(ctx, r.Script(turnScript, nil, args...).Repeatable(true))
	return err
}

// turnOnce turns the window after an answer that counts, as settling a TTL does:
// one at a time for a handle, whatever becomes of the caller's context. If it is
// lost, the next writer turns.
func (s *windowShape) turnOnce(ctx context.Context, q *engine.Request) {
	if q.Rec.Client.ReadOnly() || s.turning.Swap(true) {
		return
	}
	defer s.turning.Store(false)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engine.SettleTimeout)
	defer cancel()
	_ = s.turn(ctx, q.Rec, q.KindWord, q.BuiltFor)
}
