package upstash

import (
	"math"
	"sync"
)

// syncTokens keeps the token of the latest state this client has seen, for
// read-your-writes on a global database. Tokens are opaque and cannot be
// compared: the order of requests decides which token replaces which. Of two
// overlapping writes, the one whose answer comes last wins, even if it is the
// older one. Only sending them one after the other would avoid this, and the
// second would have to wait.
type syncTokens struct {
	mu      sync.Mutex // an atomic pointer would be one allocation more for each token
	current string
	version uint64 // counts the tokens
}

// load returns the token to send, "" at first, and a mark for store.
func (t *syncTokens) load() (token string, mark uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current, t.version
}

// store keeps the token of an answer. The request was sent with the token sent
// and its mark. The answer to a read may come from a replica without a write
// that ended meanwhile. So the token of a read replaces only the one it was
// sent with; the token of a write replaces any.
func (t *syncTokens) store(token, sent string, mark uint64, read bool) {
	if token == sent || !isSyncToken(token) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !read || mark == t.version {
		t.current = token
		t.version++
	}
}

// noMark is the mark of a read that was sent with another token than the
// client's: its answer may be older than what the client has seen.
const noMark = math.MaxUint64

// maxSyncToken is far above the length of the API's tokens. It bounds what each
// request carries along.
const maxSyncToken = 1 << 10

// isSyncToken reports whether token can be sent back in a header. Any other
// would fail every call from then on.
func isSyncToken(token string) bool {
	for i := 0; i < len(token); i++ {
		if token[i] < ' ' || token[i] > '~' {
			return false
		}
	}
	return token != "" && len(token) <= maxSyncToken
}
