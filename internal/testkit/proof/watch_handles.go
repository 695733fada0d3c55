package proof

import (
	"fmt"
	"slices"

	"github.com/upbloom/upbloom/bloom"
)

// handle makes a handle for the key, with a number. It is watched if the
// history has watched handles.
func (s *session) handle(key int, cfg bloom.Config) (*bloom.Filter, error) {
	if s.watch == nil {
		return bloom.New(s.client, s.keys[key], cfg)
	}
	number, warn := s.watch.handle(key)
	cfg.WarnFill = func(st bloom.Stats) {
		wrong := ""
		if !tooFull(s.of.geometry(), int(st.SetBits)) || st.Capacity != watchCapacity || !st.OverCapacity() ||
			st.Geometry != s.of.geometry() {
			wrong = fmt.Sprintf("a WarnFill with %d bits of %v, for a Capacity of %d",
				st.SetBits, st.Geometry, st.Capacity)
		}
		warn(Warning{SetBits: int(st.SetBits)}, wrong)
	}
	f, err := bloom.New(s.client, s.keys[key], cfg)
	s.watched[f] = number
	return f, err
}

// watchedBy returns the number of the handle of a call, 0 if it has several, or
// -1 if the handle has no WarnFill.
func (s *session) watchedBy(c Call) int {
	f := s.whole[c.Key].Load()
	switch {
	case c.Verb == AddIn:
		return 0
	case c.mirrored() && s.mirror.Load() != s.first.mirror:
		return -1
	case c.mirrored():
		return s.watched[s.first.filter]
	case c.Parts:
		f = s.parts[c.Key].Load()
	}
	if number := s.watched[f]; number > 0 {
		return number
	}
	return -1
}

// handle makes a handle. It is watched if the history has watched handles.
func (s *windowSession) handle(cfg bloom.WindowConfig) (*bloom.Window, error) {
	if s.watch == nil {
		return bloom.NewWindow(s.client, s.key, cfg)
	}
	number, warn := s.watch.handle(0)
	cfg.WarnFill = func(st bloom.WindowStats) {
		wrong := ""
		full := slices.ContainsFunc(st.Panes, func(p bloom.PaneStats) bool { return p.Items > watchMost })
		if !full || st.Capacity != watchCapacity {
			wrong = fmt.Sprintf("a WarnFill with %+v", st)
		}
		warn(Warning{}, wrong)
	}
	w, err := bloom.NewWindow(s.client, s.key, cfg)
	s.watched[w] = number
	return w, err
}

// watchedBy returns the number of the handle of a call, or -1 if the handle has
// no WarnFill.
func (s *windowSession) watchedBy(c Call) int {
	w := s.whole.Load()
	if c.Parts {
		w = s.parts.Load()
	}
	if number := s.watched[w]; number > 0 && c.Verb != AddOther {
		return number
	}
	return -1
}
