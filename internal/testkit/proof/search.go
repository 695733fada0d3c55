package proof

import "github.com/anishathalye/porcupine"

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
		n := 0
		if p, ok := o.Input.(*step); ok {
			n = p.part
		}
		for len(parts) <= n {
			left := s.limit
			s.parts, parts = append(s.parts, &left), append(parts, nil)
		}
		o.Input = limited{o.Input.(Step), s.parts[n]}
		parts[n] = append(parts[n], o)
	}
	return parts
}
