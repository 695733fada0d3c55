package systemtest

import (
	"errors"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestRequestsAndCommands counts at the server what each call costs. Each step
// builds on those before it.
func TestRequestsAndCommands(t *testing.T) {
	bloomtest.EachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		thousand := bloomtest.Numbered("item", 1000)
		expiring := bloomtest.Small()
		expiring.TTL = time.Hour
		other := bloomtest.Small()
		other.Capacity = 500

		f := bloomtest.Handle(t, c, bloomtest.Small())
		first, second := bloomtest.Handle(t, c, expiring), bloomtest.Handle(t, c, expiring)
		addOne := func(f *bloom.Filter) func() error {
			return func() error { _, err := f.Add(ctx, "item-1"); return err }
		}
		addAll := func(f *bloom.Filter, items []string) func() error {
			return func() error { _, err := f.AddAll(ctx, items); return err }
		}
		existsAll := func(items []string) func() error {
			return func() error { _, err := f.ExistsAll(ctx, items); return err }
		}
		create := func(f *bloom.Filter) func() error {
			return func() error { _, err := f.Create(ctx); return err }
		}
		for _, step := range []struct {
			name               string
			requests, commands int64
			do                 func() error
		}{
			{"New", 0, 0, func() error { _, err := bloom.New(c, bloomtest.Key, bloomtest.Small()); return err }},
			{"Exists, no filter", 1, 1, func() error {
				if _, err := f.Exists(ctx, "item-1"); !errors.Is(err, bloom.ErrNotFound) {
					return err
				}
				return nil
			}},
			{"the very first Add", 1, 1, addOne(f)},
			{"Add", 1, 1, addOne(f)},
			{"Exists", 1, 1, func() error { _, err := f.Exists(ctx, "item-1"); return err }},
			{"AddAll(1000)", 1, 1, addAll(f, thousand)},
			{"ExistsAll(1000)", 1, 1, existsAll(thousand)},
			{"AddAll(none)", 0, 0, addAll(f, nil)},
			{"ExistsAll(none)", 0, 0, existsAll([]string{})},
			{"Create, existing", 1, 1, create(f)},
			{"Create, another's", 1, 1, func() error {
				var m *bloom.MismatchError
				if _, err := bloomtest.Handle(t, c, other).Create(ctx); !errors.As(err, &m) {
					return err
				}
				return nil
			}},
			{"Open", 1, 2, func() error { _, err := bloom.Open(ctx, c, bloomtest.Key); return err }},
			{"Cardinality", 1, 2, func() error { _, err := f.Cardinality(ctx); return err }},
			{"Stats", 1, 4, func() error { _, err := f.Stats(ctx); return err }},
			{"Expire", 1, 1, func() error { _, err := f.Expire(ctx, time.Hour); return err }},
			{"Persist", 1, 1, func() error { _, err := f.Persist(ctx); return err }},
			{"Delete", 1, 1, func() error { _, err := f.Delete(ctx); return err }},

			{"the very first Add with a TTL", 2, 2, addOne(first)},
			{"a later Add with a TTL", 1, 1, addOne(first)},
			{"a later AddAll with a TTL", 1, 1, addAll(first, thousand)},
			{"the first AddAll of another handle", 1, 1, addAll(second, thousand)},
			{"its later Add", 1, 1, addOne(second)},
			{"Delete by another", 1, 1, func() error { _, err := f.Delete(ctx); return err }},
			{"Add, evicted, with a TTL", 2, 2, addOne(second)},
			{"the Add after it", 1, 1, addOne(second)},
			{"Rename", 1, 1, func() error { return second.Rename(ctx, "elsewhere") }},
			{"Create, missing", 1, 1, create(f)},
			{"Delete", 1, 1, func() error { _, err := f.Delete(ctx); return err }},
			{"Create, missing, with a TTL", 1, 1, create(second)},
		} {
			s.ResetStats()
			if err := step.do(); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			if n := s.Stats(); n.Requests != step.requests || n.Commands != step.commands {
				t.Errorf("%s: %d requests, %d commands, want %d, %d",
					step.name, n.Requests, n.Commands, step.requests, step.commands)
			}
		}
	})
}
