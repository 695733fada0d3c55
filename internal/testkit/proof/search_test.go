package proof

import (
	"errors"
	"testing"

	"github.com/anishathalye/porcupine"
)

// puzzle is a Subject whose state is the set of steps done.
type puzzle struct{ Subject }

func (puzzle) Initial() any          { return 0 }
func (puzzle) Hash(state any) uint64 { return uint64(state.(int)) }

// piece is a step that does its bits. It is right only after those it wants.
type piece struct{ bits, wants int }

func (piece) Part() int { return 0 }

func (p piece) Next(before any) (any, bool) {
	return before.(int) | p.bits, before.(int)&p.wants == p.wants
}

// TestSearch looks for an order of steps that begin and end together.
func TestSearch(t *testing.T) {
	for _, tt := range []struct {
		name         string
		pieces, want int // all begin together; the step after them wants want
		limit        int
		err          error
	}{
		{"an order", 12, 1<<12 - 1, 1000, nil},
		{"none", 4, 1 << 4, 1000, errNoOrder},
		{"too many to try", 12, 1 << 12, 1000, ErrUndecided},
		{"none, of many", 12, 1 << 12, 1 << 20, errNoOrder},
	} {
		var steps []porcupine.Operation
		for i := range tt.pieces {
			steps = append(steps, porcupine.Operation{Input: piece{bits: 1 << i}, Return: 1})
		}
		steps = append(steps, porcupine.Operation{Input: piece{wants: tt.want}, Call: 2, Return: 3})
		s := search{of: puzzle{}, limit: tt.limit}
		if err := s.run(steps); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.err)
		}
	}
}
