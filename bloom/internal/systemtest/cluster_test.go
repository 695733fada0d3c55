package systemtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/bloomtest"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A Redis in cluster mode refuses what uses several keys at once, unless the key
// has a tag. Nothing was done then, and nothing is left behind.
func TestCluster(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithRedis(testenv.RedisCluster(t)))
	c := s.Client()
	for key, refused := range map[string]bool{"f": true, "{x}:f": false} {
		f, moved := bloomtest.HandleAt(t, c, key, bloomtest.Middling()), window(t, c, key+":moved")
		bloomtest.MustAdd(t, f, bloomtest.Numbered("item", 100)...)
		bloomtest.MustAdd(t, moved, "a")
		bloomtest.MustAdd(t, window(t, c, key+":window"), "a")
		answers, err := bloom.AddIn(t.Context(), "b", f, bloomtest.HandleAt(t, c, "other", bloomtest.Middling()))
		bloomtest.NoError(t, errors.Join(err, answers[0].Err, answers[1].Err))
		_, err = bloom.InspectAll(t.Context(), c, []string{key, "other", key + ":window"})
		bloomtest.NoError(t, err)
		local, err := f.Snapshot(t.Context(), bloomtest.InParts())
		bloomtest.NoError(t, err)
		backup, err := bloom.TakeBackup(t.Context(), c, key)
		bloomtest.NoError(t, err)

		for name, move := range map[string]func(context.Context) error{
			"Load": func(ctx context.Context) error {
				return bloomtest.ErrorOf(f.Load(ctx, bloomtest.Mails(0, 10), bloomtest.InParts()))
			},
			"Merge":   func(ctx context.Context) error { return bloomtest.ErrorOf(f.Merge(ctx, local, bloomtest.InParts())) },
			"Replace": func(ctx context.Context) error { return f.Replace(ctx, local, bloomtest.InParts()) },
			"Restore": func(ctx context.Context) error {
				return bloomtest.ErrorOf(backup.Restore(ctx, c, key+":again", 0, bloomtest.InParts()))
			},
			"Rename": func(ctx context.Context) error { return moved.Rename(ctx, key+":to") },
			"TakeBackup": func(ctx context.Context) error {
				return bloomtest.ErrorOf(bloom.TakeBackup(ctx, c, key+":window", bloomtest.Parts(100, 1)))
			},
		} {
			before := bloomtest.Do(t, s, "DBSIZE")
			err := move(t.Context())
			if !refused {
				bloomtest.NoError(t, err)
				continue
			}
			if server, is := errors.AsType[*upstash.Error](err); !is || server.Code() != "CROSSSLOT" ||
				!upstash.SafeToRetry(err) || !strings.Contains(err.Error(), "{x}:seen") {
				t.Errorf("%s: %v, want CROSSSLOT, safe to retry, with the remedy", name, err)
			}
			if after := bloomtest.Do(t, s, "DBSIZE"); after != before {
				t.Errorf("%s: %v keys, and %v before", name, after, before)
			}
		}
		bloomtest.Exists(t, f, "item-7", true)
		if refused {
			bloomtest.Exists(t, f, bloomtest.Mail(7), false)
		}
	}
}

func window(t *testing.T, c *upstash.Client, key string) *bloom.Window {
	t.Helper()
	w, err := bloom.NewWindow(c, key, bloom.WindowConfig{Capacity: 1000, FPRate: 0.01, Span: time.Hour})
	bloomtest.NoError(t, err)
	return w
}
