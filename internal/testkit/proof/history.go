package proof

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/upbloom/upbloom/bloom"
)

// History holds the calls of the clients of one key and their results. Make one
// with NewHistory. It is safe for concurrent use.
type History struct {
	geo  bloom.Geometry
	kind Kind

	mu    sync.Mutex
	now   int64 // counts beginnings and ends, whose order alone matters
	calls []*called
}

// called is a call with its beginning and its end.
type called struct {
	client     string
	call       Call
	oneRequest bool
	result     Result
	from, to   int64
}

// Kind is the part of the Config that all handles of a history share.
type Kind struct {
	TTL       bool
	MustExist bool
}

// NewHistory returns an empty History for handles with the Config cfg. Their
// filter must have at most MaxBits cells. The error is that of cfg.Geometry.
func NewHistory(cfg bloom.Config) (*History, error) {
	g, err := cfg.Geometry()
	if err != nil {
		return nil, err
	}
	if g.Bits > MaxBits {
		panic("proof: the filter is too large for the model")
	}
	return &History{geo: g, kind: Kind{cfg.TTL != 0, cfg.MustExist}}, nil
}

// Do calls do, which makes the call of a client, and adds the call to the
// history. oneRequest says that a batch is certainly one request, and so takes
// effect as a whole.
func (h *History) Do(client string, c Call, oneRequest bool, do func(Call) Result) Result {
	h.mu.Lock()
	h.now++
	n := &called{client: client, call: c, oneRequest: oneRequest, from: h.now, to: math.MaxInt64}
	n.result = Result{End: Unknown, Err: "it has not returned"}
	h.calls = append(h.calls, n)
	h.mu.Unlock()
	r := do(c)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now++
	n.result, n.to = r, h.now
	return r
}

// Len returns the number of calls so far.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.calls)
}

// ErrUndecided is returned by Check if the calls have too many orders to look
// at. On an idle machine that happens to about one history in ten thousand. On
// one under load more calls end without an answer, and may have run at any
// later time.
var ErrUndecided = errors.New("no order was found, and none excluded, in the time there is")

// checkLimit is far more than the microseconds that most histories take.
const checkLimit = 10 * time.Second

// ReportUndecided fails a test if more than half of its histories were
// undecided: such a test proves little. Fewer it reports in the log.
func ReportUndecided(t testing.TB, undecided, of int) {
	t.Helper()
	if 2*undecided > of {
		t.Errorf("%d of %d histories are undecided", undecided, of)
	} else if undecided > 0 {
		t.Logf("%d of %d histories are undecided", undecided, of)
	}
}

// MayExpire adds n expiries of the filter, each of which may have happened at
// any time or never.
func (h *History) MayExpire(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range n {
		h.calls = append(h.calls, &called{
			client: "time", call: Call{Verb: Lapse}, oneRequest: true,
			result: Result{End: Unknown}, to: math.MaxInt64,
		})
	}
}

// Check returns nil if an order of the calls explains their answers. Otherwise
// the error has the whole history, or is ErrUndecided. All calls must have
// returned.
func (h *History) Check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	steps, err := h.split()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, h.text())
	}
	switch porcupine.CheckOperationsTimeout(model, steps, checkLimit) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return ErrUndecided
	}
	return fmt.Errorf("no order of these calls explains their answers\n%s", h.text())
}

// text lists the calls in the order of their beginnings, with the times of
// their beginnings and ends.
func (h *History) text() string {
	var b strings.Builder
	for i, c := range h.calls {
		fmt.Fprintf(&b, "%3d  %-8s [%3d, %3d]  %v -> %v\n", i, c.client, c.from, c.to, c.call, c.result)
	}
	items := make(map[string]bool)
	for _, c := range h.calls {
		for _, item := range c.call.Items {
			items[item] = true
		}
	}
	for _, item := range slices.Sorted(maps.Keys(items)) {
		fmt.Fprintf(&b, "     %s owns %v\n", item, h.geo.Positions(nil, item))
	}
	return b.String()
}

// String lists the calls and their results.
func (h *History) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text()
}
