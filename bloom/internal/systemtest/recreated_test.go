package systemtest

import (
	"errors"
	"slices"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestAddAllWhoseKeyChanges changes the key before one of the requests of a
// batch, and checks the states of the items. Each request carries one item.
func TestAddAllWhoseKeyChanges(t *testing.T) {
	const unknown, notDone = bloom.ItemUnknown, bloom.ItemNotDone
	drop := upstashtest.Drop(upstashtest.AfterExec)
	for _, tt := range []struct {
		name   string
		faults []upstashtest.Fault
		at     int64 // the request before which the change happens, from 1
		change []string
		want   []bloom.ItemState
	}{
		// The second request makes a filter, just as the first did.
		{"it is deleted", nil, 2, []string{"DEL", bloomtest.Key}, []bloom.ItemState{unknown, unknown, notDone}},
		{
			"it is deleted, and the next answer is lost",
			[]upstashtest.Fault{{}, drop},
			2,
			[]string{"DEL", bloomtest.Key},
			[]bloom.ItemState{unknown, unknown, notDone},
		},
		// The first attempt went into the filter, where another client may have
		// seen it.
		{
			"other data comes after a lost answer",
			[]upstashtest.Fault{drop},
			2,
			[]string{"SET", bloomtest.Key, "other data"},
			[]bloom.ItemState{unknown, notDone, notDone},
		},
		{
			"a list comes after a lost answer",
			[]upstashtest.Fault{drop},
			2,
			[]string{"LPUSH", bloomtest.Key, "x"},
			[]bloom.ItemState{unknown, notDone, notDone},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
				s.InjectFunc(func(n int64, _ upstashtest.RequestInfo) (f upstashtest.Fault) {
					if n == tt.at {
						bloomtest.Do(t, s, "DEL", bloomtest.Key)
						bloomtest.Do(t, s, tt.change...)
					}
					if n <= int64(len(tt.faults)) {
						f = tt.faults[n-1]
					}
					return f
				})
				cfg := bloomtest.Small()
				cfg.BatchBytes, cfg.BatchParallel = 1, 1
				f := bloomtest.Handle(t, bloomtest.Impatient(s), cfg)
				_, err := f.AddAll(t.Context(), bloomtest.Numbered("item", 3))
				var batch *bloom.BatchError
				if !errors.As(err, &batch) || !slices.Equal(batch.Items, tt.want) {
					t.Fatalf("AddAll: %v, want states %v", err, tt.want)
				}
				if gone := tt.change[0] == "DEL"; gone != errors.Is(err, bloom.ErrRecreated) {
					t.Errorf("ErrRecreated: %v, want %v: %v", !gone, gone, err)
				}
			})
		})
	}
}

// TestAddAllOfAFilterThatMustExistAndVanishes deletes the filter between two
// requests. No item of the first is then certainly in, so all remain to be
// added.
func TestAddAllOfAFilterThatMustExistAndVanishes(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		cfg := bloomtest.Small()
		cfg.BatchBytes, cfg.BatchParallel, cfg.MustExist = 1, 1, true
		f := bloomtest.Handle(t, bloomtest.Once(s), cfg)
		if _, err := f.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Inject(upstashtest.Fault{}, upstashtest.Evict())
		items := bloomtest.Numbered("item", 3)
		_, err := f.AddAll(t.Context(), items)
		var batch *bloom.BatchError
		if !errors.As(err, &batch) || !errors.Is(err, bloom.ErrNotFound) {
			t.Fatalf("AddAll: %v, want a BatchError with ErrNotFound", err)
		}
		if rest := batch.Remaining(items); !slices.Equal(rest, items) {
			t.Errorf("%q remain of %q: %v", rest, items, batch.Items)
		}
	})
}
