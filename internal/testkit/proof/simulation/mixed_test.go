package simulation

import (
	"errors"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/proof"
)

// TestSeedsOfMixedKinds is TestSeeds for calls that concern filters of several
// kinds: one seed of it for eight of the others. TestSeeds runs one again with
// -simulation.types=mixed.
func TestSeedsOfMixedKinds(t *testing.T) {
	for n := range max(1, *seeds/8) {
		s := *first + uint64(n)
		r, err := runSeedOf(t, s, []string{"mixed"}, 0, false)
		if err != nil && !errors.Is(err, proof.ErrUndecided) {
			t.Fatalf("seed %d: %v\n%v\nagain: go test ./internal/testkit/proof/simulation"+
				" -run TestSeeds$ -v -simulation.types=mixed -simulation.seed=%d", s, err, r, s)
		}
	}
}
