package bloom_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Whichever answer is lost, its request is repeated. Only a Load may not know
// then whether its upload was taken.
func TestShardedAfterALostAnswer(t *testing.T) {
	for name, op := range map[string]func(f *bloom.Sharded) error{
		"Create": func(f *bloom.Sharded) error {
			_, err := f.Create(t.Context())
			return err
		},
		"Load": func(f *bloom.Sharded) error {
			_, err := f.Load(t.Context(), mails(0, 50))
			return err
		},
		"LoadShard": func(f *bloom.Sharded) error {
			_, err := f.LoadShard(t.Context(), 0, mails(0, 50))
			return err
		},
		"Stats": func(f *bloom.Sharded) error {
			_, err := f.Stats(t.Context())
			return err
		},
		"ExistsAll": func(f *bloom.Sharded) error {
			_, err := f.ExistsAll(t.Context(), []string{"a", "b", "c"})
			return err
		},
	} {
		for _, fault := range []upstashtest.Fault{
			upstashtest.Drop(upstashtest.AfterExec), upstashtest.Drop(upstashtest.BeforeExec),
		} {
			for lost, of := int64(1), int64(1); lost <= of; lost++ {
				s := [2]*upstashtest.Server{upstashtest.NewServer(t), upstashtest.NewServer(t)}
				f := sharded(t, shards(4), s[0].Client(), s[1].Client())
				if name != "Create" {
					create(t, f, true)
				}
				s[0].ResetStats()
				during(s[0], lost, func() upstashtest.Fault { return fault })
				err := op(f)
				if strings.HasPrefix(name, "Load") && errors.Is(err, bloom.ErrUncertain) {
					err = nil
				}
				if err != nil {
					t.Errorf("%s, %v of request %d: %v", name, fault, lost, err)
				}
				of = s[0].Stats().Requests - 1 // without the repeated one
			}
		}
	}
}
