package linear

import (
	"context"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/proof"
	"github.com/upbloom/upbloom/upstash"
)

// target is the filter of a handle, and the URL by which the handle reaches it.
// It travels to other processes as JSON.
type target struct {
	URL, Token, Key string
	Bits            uint64
	Hashes          int
	TTL             time.Duration
	MustExist       bool
}

// The limits are far longer than an answer over the loopback interface takes.
// On a machine under load more attempts end without an answer. That makes no
// history wrong.
const (
	attemptLimit = 25 * time.Millisecond
	callLimit    = 80 * time.Millisecond
)

func (t target) config() bloom.Config {
	return bloom.Config{Bits: t.Bits, Hashes: t.Hashes, TTL: t.TTL, MustExist: t.MustExist}
}

// handle makes calls on a filter.
type handle struct {
	client *upstash.Client
	whole  *bloom.Filter // its batches are one request
	parts  *bloom.Filter // its batches are several
}

func open(t target) (*handle, error) {
	c, err := upstash.New(t.URL, t.Token, upstash.WithObserver(proof.Observe),
		upstash.WithTimeout(attemptLimit), upstash.WithRetry(2),
		upstash.WithBackoff(time.Millisecond, 4*time.Millisecond), upstash.WithMaxResponse(32<<10))
	if err != nil {
		return nil, err
	}
	cfg := t.config()
	whole, err := bloom.New(c, t.Key, cfg)
	if err != nil {
		return nil, err
	}
	cfg.BatchBytes = 1
	parts, err := bloom.New(c, t.Key, cfg)
	return &handle{c, whole, parts}, err
}

func (h *handle) run(c proof.Call, oneRequest bool) proof.Result {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	f := h.whole
	if !oneRequest {
		f = h.parts
	}
	return proof.Run(ctx, f, c)
}

func (h *handle) close() { _ = h.client.Close() }
