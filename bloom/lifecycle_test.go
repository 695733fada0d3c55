package bloom_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

func TestRename(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, c := t.Context(), s.Client()
		f := handle(t, c, expiring(time.Hour))
		if err := f.Rename(ctx, "other"); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("missing: %v, want ErrNotFound", err)
		}
		add(t, f, "a", true)
		before := stored(t, s)
		do(t, s, "SET", "other", "precious")
		if err := f.Rename(ctx, ""); err == nil {
			t.Error("to an empty key: no error")
		}
		for _, to := range []string{"other", key} {
			if err := f.Rename(ctx, to); !errors.Is(err, bloom.ErrKeyExists) {
				t.Errorf("to %q: %v, want ErrKeyExists", to, err)
			}
		}
		if stored(t, s) != before || do(t, s, "GET", "other") != "precious" {
			t.Error("a refused Rename changed something")
		}
		if err := f.Rename(ctx, "free"); err != nil {
			t.Fatal(err)
		}
		if got := do(t, s, "GET", "free"); got != before {
			t.Errorf("moved %q, want %q", got, before)
		}
		if ms := do(t, s, "PTTL", "free").(int64); ms <= 0 || ms > time.Hour.Milliseconds() {
			t.Errorf("the TTL became %d ms", ms)
		}
		moved, err := bloom.Open(ctx, c, "free")
		if err != nil {
			t.Fatal(err)
		}
		exists(t, moved, "a", true)
		if _, err := f.Exists(ctx, "a"); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("the old handle: %v, want ErrNotFound", err)
		}
		add(t, f, "a", true)
		wantTTL(t, s, time.Hour)
	})
}

// A Rename of unknown outcome is not repeated, because another client may use
// the other key by now.
func TestRenameIsNotRepeated(t *testing.T) {
	s := upstashtest.NewServer(t)
	f := handle(t, impatient(s), small())
	add(t, f, "a", true)
	s.Inject(upstashtest.Drop(upstashtest.AfterExec))
	s.ResetStats()
	if err := f.Rename(t.Context(), "free"); err == nil || upstash.SafeToRetry(err) {
		t.Errorf("Rename: %v, want an error that is not safe to retry", err)
	}
	if n := s.Stats().Requests; n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// If the first attempt of a Persist lost its answer, the second one finds no
// TTL. Nobody knows whether there was one.
func TestPersistAfterALostAnswer(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, impatient(s), expiring(time.Hour))
		add(t, f, "a", true)
		s.Inject(upstashtest.Drop(upstashtest.AfterExec))
		if had, err := f.Persist(t.Context()); had || !errors.Is(err, upstash.ErrUncertain) || upstash.SafeToRetry(err) {
			t.Errorf("Persist = %v, %v, want ErrUncertain", had, err)
		}
		wantNoTTL(t, s)
		if had, err := f.Persist(t.Context()); had || err != nil {
			t.Errorf("Persist again = %v, %v, want false", had, err)
		}
	})
}

func TestDelete(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, impatient(s), small())
		if deleted, err := f.Delete(t.Context()); err != nil || deleted {
			t.Errorf("missing: Delete = %v, %v, want false", deleted, err)
		}
		add(t, f, "a", true)
		if deleted, err := f.Delete(t.Context()); err != nil || !deleted {
			t.Errorf("Delete = %v, %v, want true", deleted, err)
		}
		if _, err := f.Exists(t.Context(), "a"); !errors.Is(err, bloom.ErrNotFound) {
			t.Errorf("Exists: %v, want ErrNotFound", err)
		}
		add(t, f, "a", true)
		s.Inject(upstashtest.Drop(upstashtest.AfterExec))
		if deleted, err := f.Delete(t.Context()); err == nil || deleted || upstash.SafeToRetry(err) {
			t.Errorf("no answer: Delete = %v, %v, want an error that is not safe to retry", deleted, err)
		}
	})
}

func TestExpireAndPersist(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		ctx, f := t.Context(), handle(t, s.Client(), small())
		want := func(name string, want bool) func(bool, error) {
			return func(got bool, err error) {
				t.Helper()
				if err != nil || got != want {
					t.Errorf("%s = %v, %v, want %v", name, got, err, want)
				}
			}
		}
		want("Expire, missing", false)(f.Expire(ctx, time.Hour))
		want("Persist, missing", false)(f.Persist(ctx))
		add(t, f, "a", true)
		want("Persist, no TTL", false)(f.Persist(ctx))
		want("Expire", true)(f.Expire(ctx, time.Hour))
		wantTTL(t, s, time.Hour)
		want("Expire, again", true)(f.Expire(ctx, 90*time.Second+500*time.Millisecond))
		wantTTL(t, s, 90*time.Second+500*time.Millisecond)
		want("Persist", true)(f.Persist(ctx))
		wantNoTTL(t, s)
		if _, err := f.Expire(ctx, time.Microsecond); !errors.Is(err, upstash.ErrArgument) {
			t.Errorf("a microsecond: %v, want ErrArgument: it would delete the filter", err)
		}
		exists(t, f, "a", true)
	})
}

// No constructor returns a handle without a client, with a key that cannot be
// sent, or of a wrong Config.
func TestNewRefuses(t *testing.T) {
	const n, p = 1000, 0.01
	for name, make := range map[string]constructor{
		"New":         constructorOf(bloom.New, bloom.Config{Capacity: n, FPRate: p}),
		"NewWindow":   constructorOf(bloom.NewWindow, bloom.WindowConfig{Capacity: n, FPRate: p, Span: time.Hour}),
		"NewScalable": constructorOf(bloom.NewScalable, bloom.ScalableConfig{Capacity: n, FPRate: p}),
		"NewCuckoo":   constructorOf(bloom.NewCuckoo, bloom.CuckooConfig{Capacity: n, FPRate: p}),
		"NewSharded":  constructorOf(onOne, bloom.ShardedConfig{Capacity: n, FPRate: p, Shards: 2}),
	} {
		t.Run(name, func(t *testing.T) {
			c := upstashtest.NewServer(t).Client()
			if made, err := make(c, key, true); !made || err != nil {
				t.Errorf("a good Config: a handle %t, %v", made, err)
			}
			var bad *bloom.ConfigError
			if made, err := make(c, key, false); made || !errors.As(err, &bad) {
				t.Errorf("a zero Config: a handle %t, %v, want a ConfigError", made, err)
			}
			for says, with := range map[string]struct {
				client *upstash.Client
				key    string
			}{
				"client is nil": {nil, key}, "key is empty": {c, ""}, "not valid UTF-8": {c, "\xff"},
			} {
				made, err := make(with.client, with.key, true)
				if made || err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("a handle %t, %v, want an error that says %q", made, err, says)
				}
			}
		})
	}
}

func onOne(c *upstash.Client, key string, cfg bloom.ShardedConfig) (*bloom.Sharded, error) {
	return bloom.NewSharded([]*upstash.Client{c}, key, cfg)
}

// A constructor makes a handle of a good Config or of the zero one.
type constructor func(c *upstash.Client, key string, good bool) (made bool, err error)

func constructorOf[C, T any](make func(*upstash.Client, string, C) (*T, error), good C) constructor {
	return func(c *upstash.Client, key string, ok bool) (bool, error) {
		var cfg C
		if ok {
			cfg = good
		}
		made, err := make(c, key, cfg)
		return made != nil, err
	}
}

// Items are hashed, not sent, so they can be any bytes.
func TestAnyBytesAreAnItem(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		f := handle(t, s.Client(), sparse())
		for _, item := range []string{"", "\x00", "\xff\xfe", "\"\\\n", "日本", string(make([]byte, 1<<20))} {
			add(t, f, item, true)
			add(t, f, item, false)
			exists(t, f, item, true)
		}
	})
}

// Expire, Persist, Rename and Delete leave anything else at the key alone.
func TestOrdersLeaveOtherDataAlone(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *upstashtest.Server) {
		for what, put := range map[string]func(){
			"another filter": func() { add(t, handle(t, s.Client(), sparse()), "theirs", true) },
			"text":           func() { do(t, s, "SET", key, "some text of theirs") },
			"a list":         func() { do(t, s, "RPUSH", key, "theirs") },
		} {
			for name, order := range map[string]func(f *bloom.Filter) error{
				"Expire":  func(f *bloom.Filter) error { _, err := f.Expire(t.Context(), time.Hour); return err },
				"Persist": func(f *bloom.Filter) error { _, err := f.Persist(t.Context()); return err },
				"Rename":  func(f *bloom.Filter) error { return f.Rename(t.Context(), "other") },
				"Delete":  func(f *bloom.Filter) error { _, err := f.Delete(t.Context()); return err },
			} {
				s.FlushAll()
				put()
				do(t, s, "EXPIRE", key, "600")
				look := func() any {
					if do(t, s, "TYPE", key) == "list" {
						return do(t, s, "LINDEX", key, "0")
					}
					return stored(t, s)
				}
				before := look()
				if err := order(handle(t, s.Client(), small())); !isRefusal(err) {
					t.Errorf("%s of %s: %v, want a refusal", name, what, err)
				}
				if look() != before || do(t, s, "EXISTS", "other") != int64(0) {
					t.Errorf("%s changed %s", name, what)
				}
				wantTTL(t, s, 10*time.Minute)
			}
		}
	})
}
