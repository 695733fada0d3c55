package main

import (
	"context"
	"time"

	"github.com/upbloom/upbloom/bloom"
)

// outlasting checks tokens in the process, while the database is silent, too.
//
// A check is mostly no request. A refresh is one, of three billed commands if
// nothing was revoked since, and of more and the bytes of a pane if something was.
// In exchange a revocation counts elsewhere once maxStale is over. In an outage one may be
// missed that came after the last refresh: it is up to maxStale and patience old.
type outlasting struct{ copied *bloom.Mirror }

const (
	maxStale = 10 * time.Second
	patience = 15 * time.Minute // how long an outage may last
)

func newOutlasting(t *tokens) (*outlasting, error) {
	m, err := bloom.NewMirror(t.revoked, bloom.MirrorConfig{MaxStale: maxStale, StaleIfError: patience})
	return &outlasting{m}, err
}

// revoke revokes a token, for the rest of its life. This process refuses it at
// once. After an error the token may still be good: try again.
func (o *outlasting) revoke(ctx context.Context, tok token) error {
	if _, err := o.copied.AddThrough(ctx, tok.id); !bloom.InFilter(err) {
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
	revoked, err := o.copied.Exists(ctx, tok.id)
	if err != nil {
		return err
	}
	if revoked {
		return errRevoked
	}
	return nil
}

// refresh brings the copy up to date. Call it when the process starts, and then
// twice in each maxStale, so that no check waits.
func (o *outlasting) refresh(ctx context.Context) error { return o.copied.Refresh(ctx) }
