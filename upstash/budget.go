package upstash

import "sync/atomic"

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

// take reports whether there was a token for a retry.
func (b *budget) take() bool {
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
