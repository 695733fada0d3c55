package bloom

import (
	"time"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/internal/door"
)

// SetClock has a Mirror see another time than time.Now.
func (m *Mirror) SetClock(now func() time.Time) { door.MirrorClock(m, now) }

// SetMaxPartItems changes how many items a request carries at most, and returns
// what it was.
func SetMaxPartItems(n int) (old int) {
	old, engine.MaxPartItems = engine.MaxPartItems, n
	return old
}

// SetSettleTimeout changes how long the settling of a TTL may take.
func SetSettleTimeout(d time.Duration) { engine.SettleTimeout = d }

// SetScriptTimeout changes how long a script may take, and returns what it was.
func SetScriptTimeout(d time.Duration) (before time.Duration) {
	before, engine.ScriptTimeout = engine.ScriptTimeout, d
	return before
}

// SetAskAbove changes above how many bytes an upload first asks whether the
// database takes so long a string, and returns what it was.
func SetAskAbove(n int) (old int) {
	old, engine.AskAbove = engine.AskAbove, n
	return old
}

// appendWords appends the words that a look-up reads of a blocked filter.
func (g Geometry) appendWords(dst []cells.Word, item string) []cells.Word {
	x, y := cells.Digest(item, g.Seed)
	return cells.AppendWords(dst, x, y, g.Bits/wordBits, g.Hashes/2)
}
