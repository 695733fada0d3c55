// Command tokens refuses tokens that were revoked before they expired. Each
// request with a token costs one look-up: one request and one billed command,
// or nothing if the token has expired.
//
// A revocation is kept as long as a token lives. Then it is forgotten, because
// the token is refused as expired. A "no" of the window is certain, so no
// revoked token is let in. One good token in a million is refused as a false
// positive, and its user logs in again.
//
//	go run ./examples/tokens
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

const (
	// lifetime is how long a token is valid. The window's Span must not be
	// shorter, or a token would be good again once its revocation is forgotten.
	lifetime = time.Hour
	// skew is how far a process's clock may be behind the database's.
	skew = 5 * time.Minute
)

func main() {
	// A request waits a second or two for an answer about its token, no longer.
	err := run(context.Background(), os.Stdout, upstash.WithTimeout(time.Second), upstash.WithRetry(1))
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, opts ...upstash.Option) error {
	server, err := upstashtest.Start() // upstash.FromEnv for your database
	if err != nil {
		return err
	}
	defer server.Close()
	client := server.Client(opts...)
	defer client.Close()
	t, err := newTokens(client)
	if err != nil {
		return err
	}
	if _, err := t.deploy(ctx); err != nil {
		return err
	}
	now := time.Now()
	good, stolen := token{"jti-1", now}, token{"jti-2", now}
	if err := t.revoke(ctx, stolen); err != nil {
		return err
	}
	for _, tok := range []token{good, stolen, {"jti-3", now.Add(-lifetime)}} {
		fmt.Fprintln(out, tok.id, t.check(ctx, tok))
	}
	return nil
}

// token is the content of a signed token, once its signature is checked.
type token struct {
	id     string // "jti"
	issued time.Time
}

var (
	errExpired = errors.New("the token has expired")
	errRevoked = errors.New("the token was revoked")
)

// tokens knows which tokens were revoked.
type tokens struct{ revoked *bloom.Window }

func newTokens(client *upstash.Client) (*tokens, error) {
	revoked, err := bloom.NewWindow(client, "revoked", bloom.WindowConfig{
		Capacity: 100_000, FPRate: 1e-6, Span: lifetime + skew,
		// No empty window may replace this one after an eviction, because its
		// "no" would let every revoked token in. With MustExist a revocation is
		// then an error, as is each check.
		MustExist: true,
	})
	return &tokens{revoked}, err
}

// deploy makes the window, and reports whether it was missing. Call it once, when
// the service is deployed. At the start of each process it would hide an
// eviction. If the window is missing at a later deployment, its revocations are
// lost: refuse all tokens that were issued before.
func (t *tokens) deploy(ctx context.Context) (made bool, err error) {
	return t.revoked.Create(ctx)
}

// revoke revokes a token, for the rest of its life. After an error the token
// may still be good: try again.
func (t *tokens) revoke(ctx context.Context, tok token) error {
	if _, err := t.revoked.Add(ctx, tok.id); !bloom.InFilter(err) {
		return err
	}
	return nil
}

// check returns nil if the token is good. If the database does not answer, or
// has lost the window, nobody knows, and the token is refused. A full database
// does not answer either. For processes that only check, a client with
// upstash.WithReadOnly avoids that. In a global database the nearest region then
// answers, which may learn of a revocation a moment later.
func (t *tokens) check(ctx context.Context, tok token) error {
	if time.Since(tok.issued) >= lifetime {
		return errExpired
	}
	revoked, err := t.revoked.Exists(ctx, tok.id)
	if err != nil {
		return err
	}
	if revoked {
		return errRevoked
	}
	return nil
}
