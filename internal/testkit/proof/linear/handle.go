package linear

import (
	"context"
	"encoding/json"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/proof"
	"github.com/upbloom/upbloom/upstash"
)

// target is the filters of a session, and the session's URL. It travels to
// other processes as JSON. Of is a proof.Type with the name Type.
type target struct {
	URL, Token, Key string
	Type            string
	Of              json.RawMessage
}

// The limits are far longer than an answer over the loopback interface takes.
// On a loaded machine more attempts end without an answer, but no history
// becomes wrong.
const (
	attemptLimit = 25 * time.Millisecond
	callLimit    = 80 * time.Millisecond
)

// handle makes calls of a session.
type handle struct {
	client  *upstash.Client
	session proof.Handles
}

func open(t target) (*handle, error) {
	c, err := upstash.New(t.URL, t.Token, upstash.WithObserver(proof.Observe),
		upstash.WithTimeout(attemptLimit), upstash.WithRetry(2),
		upstash.WithBackoff(time.Millisecond, 4*time.Millisecond), upstash.WithMaxResponse(32<<10))
	if err != nil {
		return nil, err
	}
	of, err := proof.ReadType(t.Type, t.Of)
	if err != nil {
		return nil, err
	}
	s, err := of.Open([]*upstash.Client{c}, t.Key)
	return &handle{c, s}, err
}

func (h *handle) run(c proof.Call) proof.Result {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	return h.session.Run(ctx, c)
}

func (h *handle) close() { _ = h.client.Close() }
