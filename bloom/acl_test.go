package bloom_test

import (
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
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
