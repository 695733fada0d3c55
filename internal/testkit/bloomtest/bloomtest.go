// Package bloomtest is the common ground of package bloom's tests: filters of
// known sizes and checks of their answers, access to the database, transports
// which watch or replace the network, and a second encoder of the format.
package bloomtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/errtext"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Key is the key of the tests' filter.
const Key = "seen:webhooks"

// EachBackend runs a test with the database in memory and with a Redis.
func EachBackend(t *testing.T, test func(t *testing.T, s *upstashtest.Server)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, upstashtest.NewServer(t)) })
	t.Run("redis", func(t *testing.T) {
		test(t, upstashtest.NewServer(t, upstashtest.WithRedis(testenv.Redis(t))))
	})
}

// Impatient makes a client without pauses between its attempts.
func Impatient(s *upstashtest.Server, opts ...upstash.Option) *upstash.Client {
	return s.Client(append([]upstash.Option{upstash.WithBackoff(0, 0)}, opts...)...)
}

// Once makes a client without retries.
func Once(s *upstashtest.Server) *upstash.Client { return s.Client(upstash.WithRetry(0)) }

// Small is a filter of 10,759 bits: four bits an item, in two words.
func Small() bloom.Config { return bloom.Config{Capacity: 1000, FPRate: 0.01} }

// Sparse is a filter in which a false positive would be a surprise: 10^-13 at
// 1,000 items.
func Sparse() bloom.Config { return bloom.Config{Bits: 53 * 20_000, Hashes: 10} }

// SparseOf is Sparse in layout l. A bare one uses SchemeXXH3.
func SparseOf(l bloom.Layout) bloom.Config {
	cfg := Sparse()
	cfg.Layout = l
	if l == bloom.LayoutBare {
		cfg.Scheme = bloom.SchemeXXH3
	}
	return cfg
}

// Handle makes a handle of the filter at Key.
func Handle(t *testing.T, c *upstash.Client, cfg bloom.Config) *bloom.Filter {
	t.Helper()
	return HandleAt(t, c, Key, cfg)
}

// Numbered returns n items: prefix-0 to prefix-(n-1).
func Numbered(prefix string, n int) []string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return items
}

// Add adds an item and checks the answer.
func Add(t *testing.T, f Set, item string, want bool) {
	t.Helper()
	if added, err := f.Add(t.Context(), item); err != nil || added != want {
		t.Errorf("Add(%.40q) = %v, %v, want %v", item, added, err, want)
	}
}

// Exists looks an item up and checks the answer.
func Exists(t *testing.T, f Set, item string, want bool) {
	t.Helper()
	if found, err := f.Exists(t.Context(), item); err != nil || found != want {
		t.Errorf("Exists(%.40q) = %v, %v, want %v", item, found, err, want)
	}
}

// Create makes a filter and checks the answer.
func Create(t *testing.T, f Adder, want bool) {
	t.Helper()
	if created, err := f.Create(t.Context()); err != nil || created != want {
		t.Fatalf("Create = %v, %v, want %v", created, err, want)
	}
}

// NoError ends the test if there is an error.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// WantError checks that an error is the wanted one.
func WantError(t testing.TB, err, want error) {
	t.Helper()
	Texts.Add(err)
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

// WantMismatch checks that an error says that another filter is at the key.
func WantMismatch(t testing.TB, err error) {
	t.Helper()
	Texts.Add(err)
	if _, is := errors.AsType[*bloom.MismatchError](err); !is {
		t.Errorf("got %v, want a MismatchError", err)
	}
}

// ErrorOf returns the error of a call, without its answer.
func ErrorOf[T any](_ T, err error) error {
	Texts.Add(err)
	return err
}

// Texts checks the text of each error that this package sees: a TestMain runs its
// tests by it.
var Texts errtext.Collector

// Count returns the number of true answers.
func Count(answers []bool) int {
	n := 0
	for _, a := range answers {
		if a {
			n++
		}
	}
	return n
}

// MustAdd adds items, whether they are new or not.
func MustAdd(t *testing.T, f Set, items ...string) {
	t.Helper()
	NoError(t, ErrorOf(f.AddAll(t.Context(), items)))
}

// HandleAt makes a handle of the filter at another key.
func HandleAt(t *testing.T, c *upstash.Client, key string, cfg bloom.Config) *bloom.Filter {
	t.Helper()
	f, err := bloom.New(c, key, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A Call is a call of a plain filter, without its answer.
type Call func(ctx context.Context, f *bloom.Filter) error

// The calls that read a filter, those that add to it, and those about its key.
var (
	Reads = map[string]Call{
		"Exists":      about((*bloom.Filter).Exists, "a"),
		"ExistsAll":   about((*bloom.Filter).ExistsAll, []string{"a", "b"}),
		"ExistsIn":    func(ctx context.Context, f *bloom.Filter) error { return ErrorOf(bloom.ExistsIn(ctx, "a", f)) },
		"Cardinality": bare((*bloom.Filter).Cardinality),
		"Stats":       bare((*bloom.Filter).Stats),
	}
	Adds = map[string]Call{
		"Add":    about((*bloom.Filter).Add, "a"),
		"AddAll": about((*bloom.Filter).AddAll, []string{"a", "b"}),
		"AddIn":  func(ctx context.Context, f *bloom.Filter) error { return ErrorOf(bloom.AddIn(ctx, "a", f)) },
	}
	Orders = map[string]Call{
		"Create":  bare((*bloom.Filter).Create),
		"Expire":  about((*bloom.Filter).Expire, time.Hour),
		"Persist": bare((*bloom.Filter).Persist),
		"Rename":  func(ctx context.Context, f *bloom.Filter) error { return f.Rename(ctx, "elsewhere") },
		"Delete":  bare((*bloom.Filter).Delete),
	}
)

// bare is a method without arguments as a Call, and about one with an argument.
func bare[T any](method func(*bloom.Filter, context.Context) (T, error)) Call {
	return func(ctx context.Context, f *bloom.Filter) error { return ErrorOf(method(f, ctx)) }
}

func about[A, T any](method func(*bloom.Filter, context.Context, A) (T, error), arg A) Call {
	return func(ctx context.Context, f *bloom.Filter) error { return ErrorOf(method(f, ctx, arg)) }
}

// Calls returns all calls of several maps.
func Calls(of ...map[string]Call) map[string]Call {
	all := make(map[string]Call)
	for _, calls := range of {
		maps.Copy(all, calls)
	}
	return all
}

// IsRefusal reports whether err says that the key holds other data.
func IsRefusal(err error) bool {
	Texts.Add(err)
	var m *bloom.MismatchError
	return errors.As(err, &m) || errors.Is(err, bloom.ErrNotFilter)
}

// Expiring is Small with a TTL.
func Expiring(ttl time.Duration) bloom.Config {
	cfg := Small()
	cfg.TTL = ttl
	return cfg
}

// A Set has the methods common to the handles of all types, and to a Mirror.
type Set interface {
	Add(ctx context.Context, item string) (bool, error)
	AddAll(ctx context.Context, items []string) ([]bool, error)
	Exists(ctx context.Context, item string) (bool, error)
	ExistsAll(ctx context.Context, items []string) ([]bool, error)
}

// An Adder is a handle: it can make its filter.
type Adder interface {
	Set
	Create(ctx context.Context) (bool, error)
}

// NewOf calls the constructor of a Config's type.
func NewOf(c *upstash.Client, key string, cfg any) (made any, err error) {
	switch cfg := cfg.(type) {
	case bloom.Config:
		return bloom.New(c, key, cfg)
	case bloom.WindowConfig:
		return bloom.NewWindow(c, key, cfg)
	case bloom.ScalableConfig:
		return bloom.NewScalable(c, key, cfg)
	case bloom.CuckooConfig:
		return bloom.NewCuckoo(c, key, cfg)
	case bloom.ShardedConfig:
		return bloom.NewSharded([]*upstash.Client{c}, key, cfg)
	}
	return nil, fmt.Errorf("no constructor of %T", cfg)
}

// Made is a handle of a Config's type.
func Made(t *testing.T, c *upstash.Client, key string, cfg any) Adder {
	t.Helper()
	f, err := NewOf(c, key, cfg)
	NoError(t, err)
	return f.(Adder)
}

// Mirror makes a Mirror of a filter.
func Mirror(t testing.TB, of bloom.Mirrorable, cfg bloom.MirrorConfig) *bloom.Mirror {
	t.Helper()
	m, err := bloom.NewMirror(of, cfg)
	NoError(t, err)
	return m
}

// Costs checks the requests and the billed commands of a step at the server.
func Costs(t *testing.T, s *upstashtest.Server, step string, requests, billed int64, do func() error) {
	t.Helper()
	s.ResetStats()
	if err := do(); err != nil {
		t.Fatalf("%s: %v", step, err)
	}
	if n := s.Stats(); n.Requests != requests || n.Billed != billed {
		t.Errorf("%s: %d requests, %d billed commands, want %d, %d", step, n.Requests, n.Billed, requests, billed)
	}
}

// WantRequests checks how many requests the server has counted.
func WantRequests(t *testing.T, s *upstashtest.Server, want int64) {
	t.Helper()
	if n := s.Stats().Requests; n != want {
		t.Errorf("%d requests, want %d", n, want)
	}
}
