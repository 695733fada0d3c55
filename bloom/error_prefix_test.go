package bloom_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestErrorsNameOnePackage: an error's text names a package once, at its
// beginning, however many errors it is made of. errors.Is finds each.
func TestErrorsNameOnePackage(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c := t.Context(), once(s)
	f, elsewhere := handle(t, c, small()), handleAt(t, s.Client(), "b", small())
	mustExist := small()
	mustExist.MustExist = true
	for name, tt := range map[string]struct {
		reply string // of the server, instead of its own
		call  func(context.Context) error
		want  error
	}{
		"a short TTL": {"", func(ctx context.Context) error {
			_, err := f.Expire(ctx, time.Microsecond)
			return err
		}, upstash.ErrArgument},
		"a nil source": {"", func(ctx context.Context) error { return bloom.Union(ctx, f, nil) }, upstash.ErrArgument},
		"many sources": {"", func(ctx context.Context) error {
			return bloom.Union(ctx, f, slices.Repeat([]*bloom.Filter{f}, 1001)...)
		}, upstash.ErrArgument},
		"two clients": {"", func(ctx context.Context) error {
			_, err := bloom.ExistsIn(ctx, "a", f, elsewhere)
			return err
		}, upstash.ErrArgument},
		"no clients": {"", func(context.Context) error {
			_, err := bloom.NewSharded(nil, key, bloom.ShardedConfig{Capacity: 100, FPRate: 0.01, Shards: 2})
			return err
		}, upstash.ErrArgument},
		"a Mirror of a read-only client": {"", func(context.Context) error {
			_, err := bloom.NewMirror(handle(t, s.ReadOnlyClient(), small()), bloom.MirrorConfig{})
			return err
		}, upstash.ErrReadOnly},
		"no filter, in a batch": {"", func(ctx context.Context) error {
			_, err := handle(t, c, mustExist).AddAll(ctx, []string{"a", "b"})
			return err
		}, bloom.ErrNotFound},
		"no permission, in a batch": {"NOPERM no", func(ctx context.Context) error {
			_, err := f.AddAll(ctx, []string{"a", "b"})
			return err
		}, upstash.ErrNoPermission},
		"no permission, in one of several filters": {"NOPERM no", func(ctx context.Context) error {
			_, err := bloom.AddIn(ctx, "a", f)
			return err
		}, upstash.ErrNoPermission},
		"a record too large": {"ERR max single record size exceeded", func(ctx context.Context) error {
			_, err := f.Add(ctx, "a")
			return err
		}, upstash.ErrRecordTooLarge},
		"a full database, asked": {"OOM command not allowed", func(ctx context.Context) error {
			_, err := f.Exists(ctx, "a")
			return err
		}, upstash.ErrOutOfMemory},
	} {
		if tt.reply != "" {
			s.Inject(upstashtest.ErrorObject(tt.reply))
		}
		err := tt.call(ctx)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want an error that is %q", name, err, tt.want)
			continue
		}
		text := err.Error()
		if n := strings.Count(text, "bloom: ") + strings.Count(text, "upstash: "); n != 1 ||
			!strings.HasPrefix(text, "bloom: ") && !strings.HasPrefix(text, "upstash: ") {
			t.Errorf("%s: %q names a package %d times, want once, at its beginning", name, text, n)
		}
	}
}
