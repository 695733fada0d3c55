package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/human"
	"github.com/upbloom/upbloom/upstash"
)

// A WindowView is a Window as the page shows it.
type WindowView struct {
	Text  string  `json:"text"`
	Now   string  `json:"now"`
	Panes []Pane  `json:"panes"`
	Items []Known `json:"items"`
	Facts []Fact  `json:"facts"`
}

// A Pane is one filter of the window's string.
type Pane struct {
	Bits string `json:"bits"`
	Role string `json:"role"`
	// State is "now", "counts", "spare" or "old".
	State string `json:"state"`
}

// A Known is an item added by the reader or made by the page, and whether it is
// found now.
type Known struct {
	Item  string `json:"item"`
	Added string `json:"added"`
	Found bool   `json:"found"`
}

// View shows the window as it is.
func (w *Window) View(ctx context.Context) (WindowView, error) {
	return w.view(ctx, "The window is empty. Add something, and let time pass.")
}

func (w *Window) view(ctx context.Context, text string) (WindowView, error) {
	passed := w.clock.now.Sub(w.start)
	v := WindowView{
		Text: text, Items: []Known{},
		Now: fmt.Sprintf("day %d, %02d:00", passed/(24*time.Hour)+1, passed/time.Hour%24),
	}
	var err error
	if v.Panes, err = w.panes(ctx); err != nil {
		return v, err
	}
	names := slices.Concat(w.typed, w.made)
	found, err := w.look.ExistsAll(ctx, names)
	if err != nil {
		return v, err
	}
	for i, name := range names {
		v.Items = append(v.Items, Known{quoted(name), ago(w.clock.now.Sub(w.added[name])), found[i]})
	}
	v.Facts = []Fact{
		{"clock", v.Now},
		{"requests so far", human.Count(uint64(w.requests))},
		{"billed commands so far", human.Count(uint64(w.billed))},
	}
	return v, nil
}

// word returns the epoch in the window's own word, and the number of panes in
// the string: see FORMAT.md.
func (w *Window) word(ctx context.Context) (epoch, panes int64, err error) {
	got, err := w.eye.BitField(ctx, upstash.NewBitField(windowKey).Get("u53", 128))
	if err != nil {
		return 0, 0, err
	}
	return got[0].Int64 & (1<<24 - 1), got[0].Int64 >> 47 & 15, nil
}

// turns returns the window's epoch, which changes when it is turned.
func (w *Window) turns(ctx context.Context) int64 {
	epoch, _, _ := w.word(ctx)
	return epoch
}

// panes reads the string and describes each pane. Epoch e is in pane e mod R.
func (w *Window) panes(ctx context.Context) ([]Pane, error) {
	turned, n, err := w.word(ctx)
	if err != nil {
		return nil, err
	}
	reply, err := w.eye.Do(ctx, upstash.Cmd("GET", windowKey).Binary())
	if err != nil {
		return nil, err
	}
	data, err := reply.Bytes()
	if err != nil {
		return nil, err
	}
	g := w.window.Geometry()
	length := int(g.Bytes(bloom.LayoutBare))
	header := int(g.Bytes(bloom.LayoutHeaded)) - length
	data = append(data, make([]byte, header+int(n)*length)...)
	now := w.clock.now.Unix() / int64(w.epoch/time.Second)
	panes := make([]Pane, n)
	for i := range n {
		// The last epoch of this pane, up to the one after the window's.
		last := turned + 1 - ((turned+1-i)%n+n)%n
		p := &panes[i]
		p.Bits = bitsOf(data[header+int(i)*length:], g.Bits)
		p.State, p.Role = w.role(last, turned, now, n-2)
	}
	return panes, nil
}

// role describes the pane of the epoch last, in a window last turned to turned.
// span is the window's Span in panes.
func (w *Window) role(last, turned, now, span int64) (state, role string) {
	switch {
	case last == now:
		return "now", "takes what is added now"
	case last > now:
		return "spare", "spare: clear, for the next epoch"
	case last >= max(turned, now)-span:
		return "counts", "counts: added up to " + hours(time.Duration(now-last+1)*w.epoch) + " ago"
	}
	return "old", "no longer counts; the next turn clears it"
}
