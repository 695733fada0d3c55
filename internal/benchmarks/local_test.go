// Package benchmarks measures package bloom beside other programs. It is a module of its own,
// so that who uses the library does not download them.
package benchmarks

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	peer "github.com/bits-and-blooms/bloom/v3"

	"github.com/upbloom/upbloom/bloom"
)

// chunk is how many items take turns: the two filters get the same ones, one after the other,
// so that a change of the machine's speed meets both.
const chunk = 1 << 12

// items makes dst the e-mail addresses numbered from on. They lie in one string, so that the
// garbage collector has nothing to do with the outcome.
func items(dst []string, name string, from int) {
	var b []byte
	ends := make([]int, len(dst))
	for i := range dst {
		b = append(strconv.AppendInt(append(b, name...), int64(from+i), 10), "@example.com"...)
		ends[i] = len(b)
	}
	all, start := string(b), 0
	for i, end := range ends {
		dst[i], start = all[start:end], end
	}
}

// duel is two filters of one size and rate.
type duel struct {
	n    int
	ours *bloom.Local
	peer *peer.BloomFilter

	strings            []string
	rounds             int
	oursTime, peerTime time.Duration
	found              [2]int
}

func newDuel(b *testing.B, n int) *duel {
	g, err := bloom.Config{Capacity: uint64(n), FPRate: 0.01}.Geometry()
	if err != nil {
		b.Fatal(err)
	}
	return &duel{
		n: n, ours: bloom.NewLocal(g), peer: peer.NewWithEstimates(uint(n), 0.01),
		strings: make([]string, chunk),
	}
}

// turn times both, one after the other; who goes first changes.
func (d *duel) turn(ours, peer func()) {
	turns := []func(){ours, peer}
	sums := []*time.Duration{&d.oursTime, &d.peerTime}
	d.rounds++
	for i := range turns {
		who := (i + d.rounds) % 2
		start := time.Now()
		turns[who]()
		*sums[who] += time.Since(start)
	}
}

func (d *duel) fill() {
	for from := 0; from+chunk <= d.n; from += chunk {
		items(d.strings, "user", from)
		d.turn(func() {
			for _, s := range d.strings {
				d.ours.Add(s)
			}
		}, func() {
			for _, s := range d.strings {
				d.peer.AddString(s)
			}
		})
	}
}

func (d *duel) lookUp(name string, round int) {
	items(d.strings, name, round*7919%(d.n/chunk)*chunk)
	d.turn(func() {
		for _, s := range d.strings {
			if d.ours.Exists(s) {
				d.found[0]++
			}
		}
	}, func() {
		for _, s := range d.strings {
			if d.peer.TestString(s) {
				d.found[1]++
			}
		}
	})
}

// report prints nanoseconds an item, and how many times as fast the Local is.
func (d *duel) report(b *testing.B) {
	each := float64(d.rounds * chunk)
	b.ReportMetric(0, "ns/op") // of a whole round, and so of no use
	b.ReportMetric(float64(d.oursTime.Nanoseconds())/each, "ns/item")
	b.ReportMetric(float64(d.peerTime.Nanoseconds())/each, "peer-ns/item")
	b.ReportMetric(float64(d.peerTime)/float64(d.oursTime), "times-as-fast")
}

func (d *duel) reset() { d.rounds, d.oursTime, d.peerTime, d.found = 0, 0, 0, [2]int{} }

// BenchmarkLocal has a bloom.Local and a filter of github.com/bits-and-blooms/bloom/v3 do the
// same, in turns.
func BenchmarkLocal(b *testing.B) {
	sizes := []int{1_000_000, 30_000_000}
	if testing.Short() {
		sizes = []int{100_000}
	}
	for _, n := range sizes {
		var d *duel
		b.Run(fmt.Sprintf("n=%d/op=add", n), func(b *testing.B) {
			for first := true; b.Loop(); first = false {
				next := newDuel(b, n)
				if !first {
					next.rounds, next.oursTime, next.peerTime = d.rounds, d.oursTime, d.peerTime
				}
				d = next
				d.fill()
			}
			d.report(b)
		})
		if d == nil { // -bench chose the look-ups alone
			d = newDuel(b, n)
			d.fill()
		}
		for _, op := range []struct{ name, items string }{{"found", "user"}, {"absent", "other"}} {
			b.Run(fmt.Sprintf("n=%d/op=%s", n, op.name), func(b *testing.B) {
				d.reset()
				for i := 0; b.Loop(); i++ {
					d.lookUp(op.items, i)
				}
				d.report(b)
				d.check(b, op.name)
			})
		}
	}
}

// check sees to it that both did the work: all or about 1 in 100 were found.
func (d *duel) check(b *testing.B, op string) {
	asked := float64(d.rounds * chunk)
	for i, n := range d.found {
		share := float64(n) / asked
		if op == "found" && share != 1 || op == "absent" && (share > 0.02 || share == 0) {
			b.Errorf("filter %d found %v of the items", i, share)
		}
	}
}
