package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// outlasting checks tokens in the process, while the database is silent, too. A
// Mirror is one of a Filter, which forgets nothing. So each hour in which tokens
// are issued has a Filter of its own, which expires when all of them have.
//
// A check is mostly no request. A refresh is one for each hour, of two billed
// commands if there is no filter, else of three, and of more if it has changed. In
// exchange a revocation counts after at most maxStale, and in an outage one of the
// last maxStale may be missed. After an eviction all tokens
// of an hour are let in, because no filter is an empty one: turn eviction off.
type outlasting struct {
	client *upstash.Client
	mu     sync.Mutex
	hours  map[int64]*bloom.Mirror
}

const (
	maxStale = 10 * time.Second
	patience = 15 * time.Minute // how long an outage may last
)

func newOutlasting(client *upstash.Client) *outlasting {
	return &outlasting{client: client, hours: make(map[int64]*bloom.Mirror)}
}

// revoke revokes a token, for the rest of its life. After an error the token
// may still be good: try again.
func (o *outlasting) revoke(ctx context.Context, tok token) error {
	m, err := o.hour(tok.issued)
	if err != nil {
		return err
	}
	if _, err := m.AddThrough(ctx, tok.id); !bloom.InFilter(err) {
		return err
	}
	return nil
}

// check returns nil if the token is good. A process that starts in an outage
// refuses all tokens: it has no copy.
func (o *outlasting) check(ctx context.Context, tok token) error {
	if time.Since(tok.issued) >= lifetime {
		return errExpired
	}
	m, err := o.hour(tok.issued)
	if err != nil {
		return err
	}
	revoked, err := m.Exists(ctx, tok.id)
	if err != nil {
		return err
	}
	if revoked {
		return errRevoked
	}
	return nil
}

// refresh brings the copies of all hours that count, and of the next one, up to
// date. Call it each maxStale, so that no check waits, and an outage that begins
// before an hour does not leave that hour without a copy.
func (o *outlasting) refresh(ctx context.Context) error {
	var failed error
	for _, ago := range []time.Duration{lifetime, 0, -time.Hour} {
		m, err := o.hour(time.Now().Add(-ago))
		if err == nil {
			err = m.Refresh(ctx)
		}
		if err != nil {
			failed = err
		}
	}
	return failed
}

// hour returns the revoked tokens of those issued in the hour of a time.
func (o *outlasting) hour(issued time.Time) (*bloom.Mirror, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	hour := issued.Unix() / 3600
	if m := o.hours[hour]; m != nil {
		return m, nil
	}
	f, err := bloom.New(o.client, fmt.Sprintf("revoked:%d", hour), bloom.Config{
		Capacity: 100_000, FPRate: 1e-6, MissingIsEmpty: true,
		TTL: time.Hour + lifetime + skew, // from the first revocation on
	})
	if err != nil {
		return nil, err
	}
	m, err := bloom.NewMirror(f, bloom.MirrorConfig{MaxStale: maxStale, StaleIfError: patience})
	if err != nil {
		return nil, err
	}
	o.hours[hour] = m
	for old := range o.hours {
		if old < time.Now().Add(-lifetime-time.Hour).Unix()/3600 {
			delete(o.hours, old)
		}
	}
	return m, nil
}
