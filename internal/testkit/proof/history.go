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
)

// History holds the calls of the clients of one key, and their results. Make
// one with NewHistory. It is safe for concurrent use.
type History struct {
	of Subject

	mu    sync.Mutex
	begin time.Time
	calls []*called
	ticks []time.Duration // when each beginning and end was
}

// called is a call with its beginning and its end. The order of all beginnings
// and ends counts, and for old answers their times count too.
type called struct {
	client, session string
	call            Call
	result          Result
	from, to        int64
	began, ended    time.Duration
	// spread is true if the call also spoke of other keys.
	spread bool
	// must is true if the handle had MustExist, unlike the others.
	must bool
}

// A Subject is a type of filter whose histories are checked.
type Subject interface {
	// Initial returns the state of the model before all calls. States are
	// compared with ==. Hash returns equal numbers for equal states.
	Initial() any
	Hash(state any) uint64
	// Steps turns a history into steps, each with the interval in which it took
	// effect. It returns an error if no state explains a result.
	Steps(h *History) ([]porcupine.Operation, error)
	// Describe describes an item to the reader of a history.
	Describe(item string) string
}

// A Step is the input of each operation that Subject.Steps returns. Next returns
// the state after the step, and reports whether the step's answers are right. Steps of
// several parts are of models that share nothing.
type Step interface {
	Next(before any) (after any, ok bool)
	Part() int
}

// NewHistory returns an empty History.
func NewHistory(of Subject) *History { return &History{of: of, begin: time.Now()} }

// tick returns the place of the present moment.
func (h *History) tick() (at int64, since time.Duration) {
	since = time.Since(h.begin)
	h.ticks = append(h.ticks, since)
	return int64(2 * len(h.ticks)), since
}

// before returns the place after all beginnings and ends earlier than t, and
// before all others.
func (h *History) before(t time.Duration) int64 {
	n, _ := slices.BinarySearch(h.ticks, t)
	return int64(2*n + 1)
}

// Do calls do, which makes the client's call, and adds the call to the history.
// Clients with the same session share their handles.
func (h *History) Do(client, session string, c Call, do func(Call) Result) Result {
	h.mu.Lock()
	n := &called{client: client, session: session, call: c, to: math.MaxInt64, ended: math.MaxInt64}
	n.from, n.began = h.tick()
	n.result = Result{End: Unknown, Lost: true, Err: "it has not returned"}
	h.calls = append(h.calls, n)
	h.mu.Unlock()
	r := do(c)
	h.mu.Lock()
	defer h.mu.Unlock()
	n.result = r
	n.to, n.ended = h.tick()
	return r
}

// Len returns the number of calls so far.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.calls)
}

// ErrUndecided is returned by Check if the calls have too many orders to try.
// In the simulation this happens to about one history in a thousand. On a loaded
// machine more calls of real processes end without an answer, and those may have
// run at any later time.
var ErrUndecided = errors.New("no order was found, and none excluded, in a million steps")

var errNoOrder = errors.New("no order of these calls explains their answers")

// ReportUndecided fails a test if more than half of its histories were
// undecided, because such a test proves little. It logs a smaller number.
func ReportUndecided(t testing.TB, undecided, of int) {
	t.Helper()
	if 2*undecided > of {
		t.Errorf("%d of %d histories are undecided, want half at most", undecided, of)
	} else if undecided > 0 {
		t.Logf("%d of %d histories are undecided", undecided, of)
	}
}

// Lapse is a possible expiry: see History.MayExpire.
const Lapse Verb = "lapse"

// MayExpire adds n expiries of each of the two keys. Each may have happened at
// any time, or never.
func (h *History) MayExpire(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range 2 * n {
		h.calls = append(h.calls, &called{
			client: "time", call: Call{Verb: Lapse, Key: i % 2}, result: Result{End: Unknown}, to: math.MaxInt64,
		})
	}
}

// Check returns nil if an order of the calls explains their answers. Otherwise
// it returns an error with the whole history, or ErrUndecided. All calls must
// have returned.
func (h *History) Check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	steps, err := h.of.Steps(h)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, h.text())
	}
	err = (&search{of: h.of, limit: searchLimit}).run(steps)
	if errors.Is(err, errNoOrder) {
		err = fmt.Errorf("%w\n%s", err, h.text())
	}
	return err
}

// text lists the calls in the order of their beginnings, with the times of
// their beginnings and ends.
func (h *History) text() string {
	var b strings.Builder
	items := make(map[string]bool)
	for i, c := range h.calls {
		fmt.Fprintf(&b, "%3d  %-8s [%3d, %3d] %12v  %v -> %v\n",
			i, c.client, c.from, c.to, c.began, c.call, c.result)
		for _, item := range c.call.Items {
			items[item] = true
		}
	}
	for _, item := range slices.Sorted(maps.Keys(items)) {
		fmt.Fprintf(&b, "     %s %s\n", item, h.of.Describe(item))
	}
	return b.String()
}

// String lists the calls and their results.
func (h *History) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text()
}

// searchLimit is how many steps a search for an order may try. Of 3,000
// simulated histories, 16 needed more than 20,000, and 4 more than four
// million. A limit in time would depend on the machine.
const searchLimit = 1_000_000

// search looks for an order of the steps of each part.
type search struct {
	of    Subject
	limit int    // how many steps a part may try
	parts []*int // how many steps each part may still try
}

// limited is a step that counts how often it is tried.
type limited struct {
	Step
	left *int
}

// gaveUp is the state after too many steps. It accepts the rest, and thus
// excludes no order.
type gaveUp struct{}

func (l limited) next(before any) (ok bool, after any) {
	if *l.left == 0 {
		return true, gaveUp{}
	}
	*l.left--
	after, ok = l.Next(before)
	return ok, after
}

func (s *search) hash(state any) uint64 {
	if state == (gaveUp{}) {
		return 0
	}
	return s.of.Hash(state)
}

// run returns nil if an order of each part is right, errNoOrder or ErrUndecided.
func (s *search) run(steps []porcupine.Operation) error {
	found := porcupine.CheckOperations(porcupine.Model{
		Init:      s.of.Initial,
		Step:      func(state, input, _ any) (bool, any) { return input.(limited).next(state) },
		Hash:      s.hash,
		Partition: s.split,
	}, steps)
	if !found {
		return errNoOrder
	}
	for _, left := range s.parts {
		if *left == 0 {
			return ErrUndecided
		}
	}
	return nil
}

// split groups the operations by their part.
func (s *search) split(all []porcupine.Operation) (parts [][]porcupine.Operation) {
	for _, o := range all {
		step := o.Input.(Step)
		n := step.Part()
		for len(parts) <= n {
			left := s.limit
			s.parts, parts = append(s.parts, &left), append(parts, nil)
		}
		o.Input = limited{step, s.parts[n]}
		parts[n] = append(parts[n], o)
	}
	return parts
}
