//go:build !wasm

package conn

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// lookupFunc finds the addresses of a host, as a net.Resolver does.
type lookupFunc func(ctx context.Context, network, host string) ([]netip.Addr, error)

// lookups looks up one host. The zero value is ready to use. It is safe for
// concurrent use.
//
// Go's resolver runs on for some seconds after the end of its context, with two
// goroutines and two sockets. If each dial looked up the host by itself, an
// outage of the name servers would soon use up the descriptors of the process.
type lookups struct {
	mu     sync.Mutex
	newest *lookup // nil if none is under way
}

// lookup is one lookup. Its result is there once done is closed.
type lookup struct {
	began time.Time
	done  chan struct{}
	ips   []netip.Addr
	err   error
}

// maxShared is the age up to which a dial waits for a lookup of another dial. An
// older one may wait for a lost packet, and a new one be quicker.
const maxShared = time.Second

// find returns the addresses of host. It returns when ctx ends, while the lookup
// may go on for another dial.
func (l *lookups) find(ctx context.Context, f lookupFunc, host string) ([]netip.Addr, error) {
	one := l.join(f, host)
	select {
	case <-one.done:
		return one.ips, one.err
	case <-ctx.Done():
		return nil, fmt.Errorf("lookup %s: %w", host, ctx.Err())
	}
}

// join returns the newest lookup, or begins one.
func (l *lookups) join(f lookupFunc, host string) *lookup {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.newest != nil && !isOlder(l.newest.began, now, maxShared) {
		return l.newest
	}
	one := &lookup{began: now, done: make(chan struct{})}
	l.newest = one
	go func() {
		one.ips, one.err = f(context.Background(), "ip", host)
		l.mu.Lock()
		if l.newest == one {
			l.newest = nil
		}
		l.mu.Unlock()
		close(one.done)
	}()
	return one
}

// isOlder reports whether more time than limit has passed by either clock: the
// monotonic clock can stand still in a frozen process. If the wall clock was set
// back by as much, nobody knows.
func isOlder(then, now time.Time, limit time.Duration) bool {
	wall := now.Round(0).Sub(then.Round(0))
	return now.Sub(then) > limit || wall.Abs() > limit
}
