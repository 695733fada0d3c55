package bloom_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

var scriptCalls = regexp.MustCompile(`call\('([A-Z_]+)'`)

// TestCommandsOfATokenTable: COSTS.md says which commands a call sends to a server that
// knows none of its scripts, and which these may call.
func TestCommandsOfATokenTable(t *testing.T) {
	page, err := os.ReadFile("COSTS.md")
	if err != nil {
		t.Fatal(err)
	}
	ttl, near, must := small(), small(), small()
	ttl.TTL, near.ReadsNearest, must.MustExist = time.Hour, true, true
	both := []string{"a", "b"}
	var s *upstashtest.Server
	for _, tt := range []struct {
		row  string
		made bool
		call func(context.Context, *upstash.Client) error
	}{
		{"`Filter`: `Add`, `AddAll`", false, func(ctx context.Context, c *upstash.Client) error {
			return errorOf(handle(t, c, small()).AddAll(ctx, both))
		}},
		{"`Exists`, `ExistsAll`", true, func(ctx context.Context, c *upstash.Client) error {
			return errorOf(handle(t, c, small()).ExistsAll(ctx, both))
		}},
		{"the same with `ReadsNearest` or `WithReadOnly`", true, func(ctx context.Context, c *upstash.Client) error {
			return errorOf(handle(t, c, near).ExistsAll(ctx, both))
		}},
		{"`Add` with `MustExist`", true, func(ctx context.Context, c *upstash.Client) error {
			return errorOf(handle(t, c, must).Add(ctx, "a"))
		}},
		{"`Add` with a `TTL`, beside the first row", false, func(ctx context.Context, c *upstash.Client) error {
			return errorOf(handle(t, c, ttl).Add(ctx, "a"))
		}},
		{"`Create`", false, func(ctx context.Context, c *upstash.Client) error {
			return errorOf(handle(t, c, ttl).Create(ctx))
		}},
		{"`Open`", true, func(ctx context.Context, c *upstash.Client) error { return errorOf(bloom.Open(ctx, c, key)) }},
		{"`Stats`, `Inspect`", true, func(ctx context.Context, c *upstash.Client) error {
			return errorOf(handle(t, c, small()).Stats(ctx))
		}},
		{"`Load`, `Merge`", true, func(ctx context.Context, c *upstash.Client) error {
			return errorOf(handle(t, c, small()).Load(ctx, mails(0, 9)))
		}},
		{"`Replace`", true, func(ctx context.Context, c *upstash.Client) error {
			f := handle(t, c, small())
			return f.Replace(ctx, localOf(f, 0, 9))
		}},
		{"`Snapshot`, `TakeBackup`", true, func(ctx context.Context, c *upstash.Client) error {
			return errorOf(bloom.TakeBackup(ctx, c, key))
		}},
		{"`Expire`, `Persist`", true, func(ctx context.Context, c *upstash.Client) error {
			f := handle(t, c, small())
			if err := errorOf(f.Expire(ctx, time.Hour)); err != nil {
				return err
			}
			return errorOf(f.Persist(ctx))
		}},
		{"`Delete`", true, func(ctx context.Context, c *upstash.Client) error {
			return errorOf(handle(t, c, small()).Delete(ctx))
		}},
		{"a `Mirror` of a `Filter`, beside its `Exists`", true, func(ctx context.Context, c *upstash.Client) error {
			m := newMirror(t, handle(t, c, small()), bloom.MirrorConfig{MaxStale: time.Minute})
			noError(t, m.Refresh(ctx))
			return m.Refresh(ctx)
		}},
		{"`Window`: `Add`, `Exists`", false, func(ctx context.Context, c *upstash.Client) error {
			f := window(t, c, bloom.WindowConfig{Capacity: 1_000, FPRate: 0.01, Span: time.Hour})
			noError(t, errorOf(f.Add(ctx, "a")))
			s.FastForward(2 * time.Hour) // panes have to be cleared
			noError(t, errorOf(f.Add(ctx, "a")))
			return errorOf(f.Exists(ctx, "a"))
		}},
		{"`Scalable`: `Add`, `Exists`", false, func(ctx context.Context, c *upstash.Client) error {
			f := scalable(t, c, growing())
			noError(t, errorOf(f.Add(ctx, "a")))
			return errorOf(f.Exists(ctx, "a"))
		}},
		{"`Cuckoo`: `Add`, `Exists`, `Remove`", false, func(ctx context.Context, c *upstash.Client) error {
			f := cuckoo(t, c, table1000())
			noError(t, errorOf(f.Add(ctx, "a")))
			noError(t, errorOf(f.Exists(ctx, "a")))
			return errorOf(f.Remove(ctx, "a"))
		}},
	} {
		s = upstashtest.NewServer(t)
		c := s.Client()
		if tt.made {
			noError(t, errorOf(handle(t, c, small()).Add(t.Context(), "a")))
		}
		sent, called := make(map[string]bool), make(map[string]bool)
		s.DenyFunc(func(command []string) bool {
			sent[strings.ToUpper(command[0])] = true
			for _, m := range scriptCalls.FindAllStringSubmatch(strings.Join(command, " "), -1) {
				called[m[1]] = true
			}
			return false
		})
		noError(t, tt.call(t.Context(), c))
		list := func(names map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(names)), ", ") }
		row := "| " + tt.row + " | " + list(sent) + " | " + list(called) + " |\n"
		if !strings.Contains(string(page), row) {
			t.Errorf("COSTS.md lacks\n%s", row)
		}
	}
}

// A script stops half way if the token may not run one of its commands. What is safe
// to retry has changed nothing; no filter gets another TTL than it should have,
// and no scratch key stays for ever.
func TestTokenThatLacksACommand(t *testing.T) {
	addr := testenv.Redis(t)
	s := upstashtest.NewServer(t, upstashtest.WithRedis(addr))
	ttl := small()
	ttl.TTL = 5 * time.Hour
	for name, op := range map[string]struct {
		before []bloom.Config // of the filter that is there, if any
		cfg    bloom.Config
		call   func(context.Context, *bloom.Filter) error
		left   time.Duration // the TTL afterwards
	}{
		"Create": {nil, ttl, func(ctx context.Context, f *bloom.Filter) error { return errorOf(f.Create(ctx)) }, ttl.TTL},
		"Load of a new one": {nil, small(), func(ctx context.Context, f *bloom.Filter) error {
			return errorOf(f.Load(ctx, mails(0, 9)))
		}, 0},
		"Load of a new one with a TTL": {nil, ttl, func(ctx context.Context, f *bloom.Filter) error {
			return errorOf(f.Load(ctx, mails(0, 9)))
		}, ttl.TTL},
		"Load": {[]bloom.Config{ttl}, ttl, func(ctx context.Context, f *bloom.Filter) error {
			return errorOf(f.Load(ctx, mails(0, 9)))
		}, ttl.TTL},
		"Replace": {[]bloom.Config{small()}, small(), func(ctx context.Context, f *bloom.Filter) error {
			return f.Replace(ctx, localOf(f, 0, 9))
		}, 0},
		"Replace with a TTL": {[]bloom.Config{ttl}, ttl, func(ctx context.Context, f *bloom.Filter) error {
			return f.Replace(ctx, localOf(f, 0, 9))
		}, ttl.TTL},
		"Expire": {[]bloom.Config{small()}, small(), func(ctx context.Context, f *bloom.Filter) error {
			return errorOf(f.Expire(ctx, ttl.TTL))
		}, ttl.TTL},
		"Persist": {[]bloom.Config{ttl}, ttl, func(ctx context.Context, f *bloom.Filter) error {
			return errorOf(f.Persist(ctx))
		}, 0},
		"Persist of one without a TTL": {[]bloom.Config{small()}, small(), func(ctx context.Context, f *bloom.Filter) error {
			return errorOf(f.Persist(ctx))
		}, 0},
		"Delete": {[]bloom.Config{ttl}, ttl, func(ctx context.Context, f *bloom.Filter) error {
			return errorOf(f.Delete(ctx))
		}, 0},
	} {
		for _, lacks := range strings.Fields("append bitcount bitfield bitfield_ro bitop del eval evalsha exists get persist" +
			" pexpire pttl rename set setbit setex strlen unlink") {
			ctx, c := t.Context(), s.Client(patient)
			s.FlushAll()
			for _, cfg := range op.before {
				create(t, handle(t, c, cfg), true)
			}
			state := func() string { return fmt.Sprint(do(t, s, "DUMP", key)) }
			left := func() time.Duration {
				ms := do(t, s, "PTTL", key).(int64)
				return (time.Duration(max(ms, 0)) * time.Millisecond).Round(time.Minute)
			}
			was, lived := state(), left()
			testenv.UsersMay(t, addr, "-"+lacks)
			err := op.call(ctx, handle(t, c, op.cfg))
			testenv.UsersMay(t, addr, "+"+lacks)
			what := name + " without " + lacks
			switch is := state(); {
			case upstash.SafeToRetry(err) && (is != was || left() != lived):
				t.Errorf("%s: %v says that nothing was changed, and it was; TTL %v, then %v", what, err, lived, left())
			case err == nil && is != "<nil>" && left() != op.left:
				t.Errorf("%s: no error, and the TTL is %v, not %v", what, left(), op.left)
			case is != was && was != "<nil>" && left() != lived && left() != op.left:
				t.Errorf("%s: %v, and the TTL is %v, not %v or %v", what, err, left(), lived, op.left)
			case is != "<nil>" && was == "<nil>" && left() != op.left && left() != 0:
				t.Errorf("%s: %v, and the TTL is %v, not %v", what, err, left(), op.left)
			}
			for _, k := range do(t, s, "KEYS", key+":*").([]any) {
				if do(t, s, "PTTL", k.(string)).(int64) < 0 {
					t.Errorf("%s: %v, and %s stays for ever", what, err, k)
				}
			}
			if strings.HasPrefix(name, "Persist") && err == nil {
				mustAdd(t, handle(t, c, ttl), "later")
				if left() != 0 {
					t.Errorf("%s: no error, and the next Add sets a TTL", what)
				}
			}
			if op.cfg.TTL > 0 && name == "Create" && do(t, s, "EXISTS", key).(int64) == 1 {
				mustAdd(t, handle(t, c, op.cfg), "later")
				wantTTL(t, s, op.cfg.TTL)
			}
		}
	}
}
