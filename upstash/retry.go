package upstash

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// maxRetryAfter is the longest Retry-After a call waits for. For a longer one
// (a spent daily quota) the caller has to plan: Error.RetryAfter holds it.
const maxRetryAfter = 30 * time.Second

// pause returns the time to wait before retry n, counted from 1. server is the
// answer to the attempt before it, or nil.
func (s *settings) pause(n int, server *Error) time.Duration {
	if server != nil && server.RetryAfter > 0 {
		return server.RetryAfter + upTo(min(server.RetryAfter, s.backoffCap))
	}
	ceiling := s.backoffCap
	if shift := n - 1; s.backoffBase <= ceiling>>shift {
		ceiling = s.backoffBase << shift
	}
	return upTo(ceiling)
}

// upTo draws a time below ceiling.
func upTo(ceiling time.Duration) time.Duration {
	if ceiling <= 0 {
		return 0
	}
	return rand.N(ceiling)
}

// sleep waits for d and reports whether ctx is alive after it. It does not wait
// at all if the deadline of ctx would come first.
func sleep(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	if d <= 0 {
		return ctx.Err() == nil
	}
	pause, cancel := withTimeout(ctx, d)
	defer cancel()
	<-pause.Done()
	return ctx.Err() == nil
}

// budget bounds the retries of a client over all of its calls. A retry takes a
// token, and an answer brings a tenth of one back. While a server is down, it
// gets little more than one request a call, and not several from each caller.
// The zero value has no bound.
type budget struct {
	most   int64        // in tenths of a token
	tenths atomic.Int64 // that were taken
}

const tenthsOfToken = 10

func (b *budget) limit(tokens int) { b.most = int64(tokens) * tenthsOfToken }

// spend takes a token for a retry, and reports whether there was one.
func (b *budget) spend() bool {
	for b.most > 0 {
		taken := b.tenths.Load()
		if taken+tenthsOfToken > b.most {
			return false
		}
		if b.tenths.CompareAndSwap(taken, taken+tenthsOfToken) {
			break
		}
	}
	return true
}

// giveBack is called after a success. While the budget is full, it only reads.
func (b *budget) giveBack() {
	for taken := b.tenths.Load(); taken > 0; taken = b.tenths.Load() {
		if b.tenths.CompareAndSwap(taken, taken-1) {
			return
		}
	}
}
