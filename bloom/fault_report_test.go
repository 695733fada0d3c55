package bloom_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

// outcomes are the columns of the report, in order.
var outcomes = []string{"answered", "full", "uncertain", "filter gone", "did not run", "may have run", "undocumented"}

// outcome classifies the end of an operation by its documented error type.
func outcome(err error) string {
	var call *upstash.CallError
	var server *upstash.Error
	switch {
	case err == nil, errors.Is(err, bloom.ErrNoTTL) && !errors.Is(err, bloom.ErrUncertain):
		return "answered"
	case errors.Is(err, bloom.ErrFull):
		return "full"
	case errors.Is(err, bloom.ErrUncertain):
		return "uncertain"
	case errors.Is(err, bloom.ErrNotFound), errors.Is(err, bloom.ErrRecreated):
		return "filter gone"
	case !errors.As(err, &call) && !errors.As(err, &server) && !errors.Is(err, upstash.ErrBadResponse) &&
		!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, upstash.ErrReadOnly):
		return "undocumented"
	case upstash.SafeToRetry(err):
		return "did not run"
	}
	return "may have run"
}

// checkError fails on errors of no documented type, and on those that show
// secrets under any verb.
func (w *faultWorker) checkError(err error) {
	if outcome(err) == "undocumented" {
		w.t.Errorf("an error of no documented type: %v (%T)", err, err)
	}
	if leaks(fmt.Sprintf("%v|%+v|%#v|%q", err, err, err, err)) {
		w.t.Error("an error holds the token, a key or an item")
	}
}

func leaks(text string) bool {
	return strings.Contains(text, secretToken) || strings.Contains(text, secretKey) ||
		strings.Contains(text, secretItem)
}

// faultReport counts, for each kind of fault, the ends of the operations that
// met it.
type faultReport struct {
	mu   sync.Mutex
	ends map[string]map[string]int
}

func newFaultReport() *faultReport {
	return &faultReport{ends: make(map[string]map[string]int)}
}

func (r *faultReport) add(met []string, end string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(met) == 0 {
		met = []string{"(none)"}
	}
	for _, fault := range met {
		if r.ends[fault] == nil {
			r.ends[fault] = make(map[string]int)
		}
		r.ends[fault][end]++
	}
}

// merge adds the counts of another report.
func (r *faultReport) merge(other *faultReport) {
	for fault, ends := range other.ends {
		if r.ends[fault] == nil {
			r.ends[fault] = make(map[string]int)
		}
		for end, n := range ends {
			r.ends[fault][end] += n
		}
	}
}

// summary returns the number of faults, and the ends of the operations that met
// one.
func (r *faultReport) summary() string {
	faults, ends := 0, make(map[string]int)
	for fault, counts := range r.ends {
		for end, n := range counts {
			if ends[end] += n; fault != "(none)" {
				faults += n
			}
		}
	}
	return fmt.Sprintf("%d faults; %v", faults, ends)
}

func (r *faultReport) count(fault string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, c := range r.ends[fault] {
		n += c
	}
	return n
}

// String returns a table with a row for each fault: how often it was met, and
// how the operations ended.
func (r *faultReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s %8s", "fault", "met")
	for _, end := range outcomes {
		fmt.Fprintf(&b, " %13s", end)
	}
	names := make([]string, 0, len(r.ends))
	for name := range r.ends {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "\n%-26s %8d", name, r.count(name))
		for _, end := range outcomes {
			fmt.Fprintf(&b, " %13d", r.ends[name][end])
		}
	}
	return b.String()
}
