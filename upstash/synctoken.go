package upstash

import "sync/atomic"

// syncTokens keeps the token of the latest state that this client has seen, for
// read-your-writes on a global database. Tokens are opaque and cannot be
// compared, so the order of requests decides what replaces what. Of two writes
// that overlap, the one whose answer comes last wins, be it the newer or not:
// only to send one after the other would settle it, at the price of waiting.
type syncTokens struct {
	current atomic.Pointer[string]
}

// load returns the token to send, "" at first, and a mark for store.
func (t *syncTokens) load() (string, *string) {
	p := t.current.Load()
	if p == nil {
		return "", nil
	}
	return *p, p
}

// store keeps the token that answered a request which was sent with mark. The
// answer to a read may come from a replica behind a write that finished
// meanwhile, so it only takes the place of the token that it was sent with. A
// write's token always counts.
func (t *syncTokens) store(token string, mark *string, read bool) {
	if !isSyncToken(token) || mark != nil && *mark == token {
		return
	}
	kept := token // on the heap from here on only
	if read {
		t.current.CompareAndSwap(mark, &kept)
		return
	}
	t.current.Store(&kept)
}

// maxSyncToken is far above what the API sends; it bounds what each request
// would drag along.
const maxSyncToken = 1 << 10

// isSyncToken refuses what could not be sent back in a header: it would fail
// every call from then on.
func isSyncToken(token string) bool {
	for i := 0; i < len(token); i++ {
		if token[i] < ' ' || token[i] > '~' {
			return false
		}
	}
	return token != "" && len(token) <= maxSyncToken
}
