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

// reads returns the calls of a read-only client, each on a new handle.
func reads(t *testing.T, c *upstash.Client, cfg bloom.Config) map[string]func() error {
	ops := operationsOf(t, handle(t, c, cfg))
	delete(ops, "Add")
	delete(ops, "AddAll")
	delete(ops, "Create")
	ops["Open"] = func() error { _, err := bloom.Open(t.Context(), c, key); return err }
	return ops
}

func TestReadOnlyClient(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, cfg := range []bloom.Config{small(), expiring(time.Hour)} {
			s.FlushAll()
			add(t, handle(t, s.Client(), cfg), "a", true)
			var commands []string
			s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
				commands = append(commands, r.Commands[0])
				return upstashtest.Fault{}
			})
			c := s.ReadOnlyClient()
			for name, read := range reads(t, c, cfg) {
				s.ResetStats()
				if err := read(); err != nil || s.Stats().Requests != 1 {
					t.Errorf("%s: %v, %d requests, want 1", name, err, s.Stats().Requests)
				}
			}
			for _, name := range commands {
				if name != "BITFIELD_RO" {
					t.Errorf("sent %s, want BITFIELD_RO", name)
				}
			}
			f := handle(t, c, cfg)
			exists(t, f, "a", true)
			exists(t, f, "b", false)

			s.ResetStats()
			writes := operationsOf(t, f)
			writes["Delete"] = func() error { _, err := f.Delete(t.Context()); return err }
			writes["Expire"] = func() error { _, err := f.Expire(t.Context(), time.Hour); return err }
			writes["Persist"] = func() error { _, err := f.Persist(t.Context()); return err }
			writes["Rename"] = func() error { return f.Rename(t.Context(), "other") }
			for name := range reads(t, c, cfg) {
				delete(writes, name)
			}
			for name, write := range writes {
				if err := write(); !errors.Is(err, upstash.ErrReadOnly) || !upstash.SafeToRetry(err) {
					t.Errorf("%s: %v, want ErrReadOnly", name, err)
				}
			}
			if n := s.Stats().Requests; len(writes) != 7 || n != 0 {
				t.Errorf("%d requests for %d writes, want 0 for 7", n, len(writes))
			}
			s.InjectFunc(nil)
		}
	})
}

// A client with a read-only token, but without the option, asks twice. It
// trusts a "yes", but a "no" may come from a lagging replica.
func TestReadOnlyTokenWithoutTheOption(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for _, cfg := range []bloom.Config{small(), expiring(time.Hour)} {
			s.FlushAll()
			add(t, handle(t, s.Client(), cfg), "a", true)
			client := func() *upstash.Client {
				c, err := upstash.New(s.URL, s.ReadOnlyToken)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				return c
			}
			for name := range reads(t, client(), cfg) {
				c := client()
				err := reads(t, c, cfg)[name]()
				if name == "ExistsAll" { // one of its items is not in the filter
					if !lacksPermission(err) {
						t.Errorf("%s: %v, want ErrNoPermission", name, err)
					}
				} else if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			c := client()
			f := handle(t, c, cfg)
			var server *upstash.Error
			if _, err := f.Add(t.Context(), "b"); !errors.As(err, &server) || !upstash.SafeToRetry(err) {
				t.Errorf("the first Add: %v, want the server's refusal", err)
			}
			exists(t, f, "a", true)
			if found, err := f.Exists(t.Context(), "b"); found || !lacksPermission(err) {
				t.Errorf("Exists of another item = %v, %v, want ErrNoPermission", found, err)
			}
		}
	})
}

// A read-only client of another kind writes nothing either.
func TestReadOnlyClientOfKinds(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, c, items := t.Context(), s.ReadOnlyClient(), []string{"a", "b"}
	w, err := bloom.NewWindow(c, key, bloom.WindowConfig{Capacity: 100, FPRate: 0.01, Span: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	g := scalable(t, c, growing())
	k := cuckoo(t, c, bloom.CuckooConfig{Capacity: 100, FPRate: 0.01})
	f := handle(t, c, small())
	for name, write := range map[string]func() error{
		"Window.Create":    func() error { _, err := w.Create(ctx); return err },
		"Window.Add":       func() error { _, err := w.Add(ctx, "a"); return err },
		"Window.AddAll":    func() error { _, err := w.AddAll(ctx, items); return err },
		"Window.Delete":    func() error { _, err := w.Delete(ctx); return err },
		"Scalable.Create":  func() error { _, err := g.Create(ctx); return err },
		"Scalable.Add":     func() error { _, err := g.Add(ctx, "a"); return err },
		"Scalable.AddAll":  func() error { _, err := g.AddAll(ctx, items); return err },
		"Cuckoo.Create":    func() error { _, err := k.Create(ctx); return err },
		"Cuckoo.Add":       func() error { _, err := k.Add(ctx, "a"); return err },
		"Cuckoo.Remove":    func() error { _, err := k.Remove(ctx, "a"); return err },
		"Cuckoo.RemoveAll": func() error { _, err := k.RemoveAll(ctx, items); return err },
		"Filter.Replace":   func() error { return f.Replace(ctx, bloom.NewLocal(f.Geometry())) },
		"Filter.AddSeq":    func() error { _, err := f.AddSeq(ctx, slices.Values(items)); return err },
	} {
		if err := write(); !errors.Is(err, upstash.ErrReadOnly) || !upstash.SafeToRetry(err) {
			t.Errorf("%s: %v, want ErrReadOnly", name, err)
		}
	}
	if n := s.Stats().Requests; n != 0 {
		t.Errorf("%d requests, want none", n)
	}
}

// A Window has no Reads: its look-ups go to the primary, and those of a read-only
// client to the nearest region.
func TestWindowLookUpsGoToThePrimary(t *testing.T) {
	s := upstashtest.NewServer(t)
	wantAdd(t, window(t, s.Client(), day()), "a", true)
	for want, c := range map[string]*upstash.Client{"BITFIELD": s.Client(), "BITFIELD_RO": s.ReadOnlyClient()} {
		if _, err := c.ServerTime(t.Context()); err != nil {
			t.Fatal(err)
		}
		var commands []string
		s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
			commands = append(commands, r.Commands...)
			return upstashtest.Fault{}
		})
		w := window(t, c, day())
		wantExists(t, w, "a", true)
		if _, err := w.ExistsAll(t.Context(), []string{"a", "b"}); err != nil {
			t.Fatal(err)
		}
		if s.InjectFunc(nil); !slices.Equal(commands, []string{want, want}) {
			t.Errorf("sent %v, want %s twice", commands, want)
		}
	}
}

// lacksPermission reports whether an error is the refusal of a token, and not
// that of a client made with WithReadOnly.
func lacksPermission(err error) bool {
	return errors.Is(err, upstash.ErrNoPermission) && !errors.Is(err, upstash.ErrReadOnly) &&
		upstash.SafeToRetry(err)
}

// The error of a "no" that may be out of date names the type's own config, and
// for a Window none.
func TestReadOnlyTokenNamesTheConfig(t *testing.T) {
	s := upstashtest.NewServer(t)
	reader, err := upstash.New(s.URL, s.ReadOnlyToken)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	spread := shards(2)
	windows := bloom.WindowConfig{Capacity: 100, FPRate: 0.01, Span: time.Hour}
	table := bloom.CuckooConfig{Capacity: 100, FPRate: 0.01}
	for _, kind := range []struct {
		field string // after WithReadOnly
		of    func(c *upstash.Client) finder
	}{
		{" or Config.Reads", func(c *upstash.Client) finder { return handle(t, c, small()) }},
		{" or ShardedConfig.Reads", func(c *upstash.Client) finder { return sharded(t, spread, c) }},
		{" or ScalableConfig.Reads", func(c *upstash.Client) finder { return scalable(t, c, growing()) }},
		{" or CuckooConfig.Reads", func(c *upstash.Client) finder { return cuckoo(t, c, table) }},
		{"", func(c *upstash.Client) finder {
			w, err := bloom.NewWindow(c, key, windows)
			if err != nil {
				t.Fatal(err)
			}
			return w
		}},
	} {
		s.FlushAll()
		if _, err := kind.of(s.Client()).Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := kind.of(reader).Exists(t.Context(), "a")
		if !lacksPermission(err) || !strings.HasSuffix(err.Error(), " upstash.WithReadOnly"+kind.field) {
			t.Errorf("%v, want ErrNoPermission that ends with WithReadOnly%s", err, kind.field)
		}
	}
}

type finder interface {
	Create(ctx context.Context) (bool, error)
	Exists(ctx context.Context, item string) (bool, error)
}
