package simulation

import (
	"crypto/tls"
	"math"
	"math/rand/v2"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/proof"
)

// scenario is drawn from a seed. The fates are drawn from it too, but
// separately.
type scenario struct {
	of proof.Type
	draws
}

// draws is the rest of a scenario.
type draws struct {
	seed    uint64
	clients int
	workers int // of each client
	calls   int // of each worker
	rate    int
	tls     bool
	foreign bool // another program's data is there first
	shared  bool // the workers of a client share its handles
	lag     int  // how many writes the nearest region is behind
	caught  int  // before this call of a worker the region catches up, and is stuck again
	stale   bool // clients send no sync token
	old     bool // the server knows no flags in scripts

	late       bool          // two scripts in three run late
	unscripted bool          // the token may not run scripts
	held       bool          // one BITFIELD in four waits longer than its client
	twice      bool          // uploads are late: see ofUpload
	crossing   bool          // replies come after others
	outages    bool          // the model judges what a Mirror says late
	crowded    bool          // no client rests long
	slow       bool          // one TIME in two is as late as it may be
	patience   time.Duration // how long clients wait for an answer, or 0
	panics     bool          // observers panic when an Add settles the TTL
	budget     int           // of retries, or 0
	queue      bool          // the workers of a client wait for its only connection

	restless bool // see yield; it is not drawn
}

// newScenario draws the scenario of a seed, with one of the types.
func newScenario(seed uint64, types []string, themes proof.Theme) scenario {
	rng := rand.New(rand.NewPCG(seed, 1<<40))
	s := scenario{of: proof.DrawType(rng, types[seed%uint64(len(types))], themes)}
	s.draws = draws{
		seed:    seed,
		clients: 1 + rng.IntN(3), workers: 1 + rng.IntN(2), calls: 3 + rng.IntN(4),
		rate:    []int{0, 5, 10, 15, 20}[rng.IntN(5)],
		tls:     rng.IntN(8) == 0 && serverTLS != nil,
		foreign: rng.IntN(5) == 0, shared: rng.IntN(2) == 0,
	}
	b := s.of.Base()
	b.Silences = true
	s.old = b.OldServer
	switch f := s.of.(type) {
	case *proof.Filters:
		s.drawFilter(rng, f)
	case *proof.Cuckoos:
		s.calls++
	case *proof.Scalables:
		s.old, s.unscripted, s.late = rng.IntN(8) == 0, rng.IntN(10) == 0, f.Churn
		if f.Latecomers {
			s.drawLatecomers(rng)
		}
	case *proof.Shardeds:
		s.old = rng.IntN(8) == 0
		if f.Latecomers {
			s.drawLatecomers(rng)
		}
	case *proof.Windows:
		if rng.IntN(4) > 0 {
			s.clients, s.workers = s.clients+s.workers-1, 1
		}
		if s.slow = f.Slow; s.slow {
			s.clients, s.workers = 2, 1
		}
		s.drawWindow(rng, f)
	case *proof.Mixed:
		s.foreign, s.rate, s.old = false, min(s.rate, 10), rng.IntN(8) == 0
		if f.Window != nil {
			s.drawWindow(rng, f.Window)
		}
	}
	if b.Lag {
		s.drawLag(rng)
	}
	s.queue = rng.IntN(8) == 0
	_, forgets := s.of.(*proof.Mixed) // a script in another form is no retry
	if !s.old && !forgets && rng.IntN(8) == 0 {
		s.budget = 1 + rng.IntN(2)
	}
	if b.Lag && !s.crossing && rng.IntN(2) == 0 {
		s.workers, s.crossing = 2, true
	}
	switch s.of.(type) {
	case *proof.Filters, *proof.Scalables:
		b.Tokens = b.Lag && !s.stale
	}
	if mayRestore(s.of) && !b.Lag && !b.Losses && rng.IntN(3) > 0 {
		b.Backups = new(proof.Backups)
	}
	return s
}

// drawLatecomers has few others disturb a history with late attempts.
func (s *scenario) drawLatecomers(rng *rand.Rand) {
	s.clients, s.workers, s.rate, s.foreign, s.unscripted = 1+rng.IntN(2), 1, min(s.rate, 5), false, false
}

// drawFilter draws what is special in a history of a Filter.
func (s *scenario) drawFilter(rng *rand.Rand, f *proof.Filters) {
	s.unscripted, s.held, s.twice = f.NoScripts, f.Slow, f.Twice
	s.panics = f.TTL != 0 && rng.IntN(4) == 0
	if f.Slow || f.Crossing || f.Themes&proof.Mirrors != 0 && rng.IntN(2) == 0 { // who share a Mirror
		s.workers, s.shared = 2, true
	}
	if s.twice {
		s.clients, s.workers, s.calls, s.rate = 2, 1, 2*s.calls, min(s.rate, 5)
	}
	if f.Slow || f.Crossing { // only a long order of calls shows something
		s.clients, s.calls, s.rate = 1, 2*s.calls, min(s.rate, 5)
	}
	s.crossing, s.crowded = f.Crossing, f.Crossing
	if f.Latecomers != "" {
		s.drawLatecomers(rng)
	}
	around := f.Latecomers != "" || f.Near || f.Lag || f.Slow || f.Losses || f.Twice || f.Themes&proof.Writers != 0
	if !around && (f.Themes&proof.Mirrors != 0 && rng.IntN(3) > 0 || rng.IntN(4) == 0) {
		f.DrawOutages(rng)
		s.outages, s.rate = true, min(s.rate, 5)
		if f.MissingIsEmpty { // only three who share a Mirror show something
			s.clients, s.workers, s.shared, s.calls = 1, 3, true, 3*s.calls
			s.crossing, s.crowded, s.foreign = true, true, false
		}
		if rng.IntN(2) == 0 { // or one who is not disturbed
			s.clients, s.workers, s.crossing, s.foreign = 1, 1, false, false
		}
	}
	if f.Near {
		s.clients, s.workers, s.foreign, s.crossing, s.crowded = 2+rng.IntN(3), 2, false, true, rng.IntN(4) > 0
	}
	if s.crowded && f.Near {
		s.clients, s.calls = 2, 8+rng.IntN(4)
	}
}

// drawWindow draws what is special in a history with a Window: its calls need
// more time.
func (s *scenario) drawWindow(rng *rand.Rand, w *proof.Windows) {
	s.calls, s.foreign, s.rate = 2*s.calls, false, min(s.rate, 10)
	if w.Latecomers {
		s.drawLatecomers(rng)
	} else if w.Mirrors && !w.Slow && !w.Lag && !w.Others && !w.Renames && w.Patient == 0 && rng.IntN(2) == 0 {
		w.DrawOutages(rng)
		s.outages, s.rate = true, min(s.rate, 5)
		s.clients, s.workers, s.shared = 1+rng.IntN(2), 1, true
		if rng.IntN(3) == 0 { // who share a Mirror
			s.workers = 2
		}
	}
	if w.Patient > 0 {
		s.clients, s.workers, s.rate = 3, 1, 10+10*rng.IntN(3)
		s.patience = time.Duration(w.Patient) * w.Pane()
	}
}

// drawLag draws how far a region is behind.
func (s *scenario) drawLag(rng *rand.Rand) {
	s.lag, s.stale = []int{1, 3, math.MaxInt}[rng.IntN(3)], rng.IntN(2) == 0
	s.caught = rng.IntN(s.calls)
	if f, ok := s.of.(*proof.Filters); ok && f.Near {
		s.stale = !f.Bare && !s.crowded && rng.IntN(4) == 0 // else its Snapshots have too many orders
		s.lag = []int{1, 2, 3, 5, 8, math.MaxInt}[rng.IntN(6)]
	}
}

// mayRestore reports whether clients may restore a Backup: only among their own
// data, and in a history that is about nothing else.
func mayRestore(of proof.Type) bool {
	switch f := of.(type) {
	case *proof.Scalables:
		return !f.Untimed && !f.Stays
	case *proof.Windows:
		return !f.Others && !f.Renames && !f.Slow && f.Patient == 0 && !f.Latecomers
	}
	return false
}

// serverTLS is the server's TLS configuration. It is nil if the platform's
// clients cannot be made to trust it.
var serverTLS *tls.Config
