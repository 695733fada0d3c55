package bloom

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/upbloom/upbloom/bloom/internal/engine"
	"github.com/upbloom/upbloom/bloom/internal/format"
	"github.com/upbloom/upbloom/upstash"
)

// cut is a transport without a network.
type cut struct{}

func (cut) RoundTrip(context.Context, *upstash.Request, *upstash.Response) error { return io.EOF }

// A command whose bits are lost leaves what its call knew as it was: the items are in
// no pane that counts, and who set other bits before is not forgotten.
func TestWindowLostBits(t *testing.T) {
	c, err := upstash.New("https://db.example.com", "token", upstash.WithTransport(cut{}), upstash.WithRetry(0))
	if err != nil {
		t.Fatal(err)
	}
	s := &windowShape{areas: format.PaneAreas(530, 3), seconds: 15}
	w := &windowCommand{epoch: 33, now: 33, late: true, tainted: true}
	q := &engine.Request{Rec: &engine.Record{Client: c}, Kept: w}
	q.KindWord = s.wordAt(30)
	if again, in := s.Follow(t.Context(), q); !again || in || !w.tainted || !errors.Is(q.Err, nil) {
		t.Errorf("sent again %t, in %t, tainted %t, %v; want true, false, true", again, in, w.tainted, q.Err)
	}
	w.now = 30 // the clock was set back, and the pane has another epoch
	if s.holdsBits(q) {
		t.Error("lost bits are in a pane that counts")
	}
}
