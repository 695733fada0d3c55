package proof

import (
	"errors"
	"time"
)

// warned returns an error if a call counted the cells of its pane, which was
// certainly over the capacity, and did not warn. A call that overlaps it may have
// warned instead.
func (k *windowCheck) warned(c *called) error {
	w := c.result.Watched
	if w == nil || w.Handle < 0 || w.Seen == 0 || len(w.Warnings) > 0 || w.Ended || k.of.Lag {
		return nil
	}
	_, alone := c.others(k.calls)
	switch {
	case !alone || w.StatsSeen < w.Stats || k.inPane(c) <= watchMost:
		return nil
	case w.Stats == 0:
		return errors.New("a look at a pane over its capacity, and did not ask for Stats")
	}
	return errors.New("asked for the Stats of a pane over its capacity, and did not warn")
}

// inPane returns how many items were certainly in the pane of an Add when it
// ended: its own, and those of earlier Adds in the same epoch, by any clock.
func (k *windowCheck) inPane(c *called) int {
	items := make(map[string]bool)
	for _, a := range k.adds {
		within := a.called == c || a.to < c.from
		if within && a.promised() && k.sameEpoch(a.began, c.ended) && !k.mayBeWiped(a.began, c.ended) {
			items[a.item] = true
		}
	}
	return len(items)
}

// sameEpoch reports whether two times are in one epoch, by any client's clock.
func (k *windowCheck) sameEpoch(from, to time.Duration) bool {
	at := func(t time.Duration) int64 {
		return k.begin.Add(t).Unix() / int64(k.of.Pane()/time.Second)
	}
	return at(from-clockError/2) == at(to+clockError/2)
}
