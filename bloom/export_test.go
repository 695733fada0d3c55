package bloom

import (
	"context"
	"time"

	"github.com/upbloom/upbloom/bloom/internal/cells"
	"github.com/upbloom/upbloom/internal/door"
)

// SetClock has a Mirror see another time than time.Now.
func (m *Mirror) SetClock(now func() time.Time) { door.MirrorClock(m, now) }

// RefreshFor refreshes for a call that found the copy too old, and before which
// something happened.
func (m *Mirror) RefreshFor(ctx context.Context, meanwhile func()) {
	k := &mirrorCall{m: m, began: m.now(), items: []string{"a"}}
	meanwhile()
	m.refreshFor(ctx, k)
}

// appendWords appends the words that a look-up reads of a blocked filter.
func (g Geometry) appendWords(dst []cells.Word, item string) []cells.Word {
	x, y := cells.Digest(item, g.Seed)
	return cells.AppendWords(dst, x, y, g.Bits/wordBits, g.Hashes/2)
}
