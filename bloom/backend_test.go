package bloom_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// key is where the tests keep their filter.
const key = "seen:webhooks"

// eachBackend runs a test against the database in memory and against a Redis.
func eachBackend(t *testing.T, test func(t *testing.T, s *upstashtest.Server)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, upstashtest.NewServer(t)) })
	t.Run("redis", func(t *testing.T) {
		test(t, upstashtest.NewServer(t, upstashtest.WithRedis(testenv.Redis(t))))
	})
}

// impatient makes a client that does not pause between its attempts.
func impatient(s *upstashtest.Server, opts ...upstash.Option) *upstash.Client {
	return s.Client(append([]upstash.Option{upstash.WithBackoff(0, 0)}, opts...)...)
}

// once makes a client without retries.
func once(s *upstashtest.Server) *upstash.Client { return s.Client(upstash.WithRetry(0)) }

// small is a filter of 10,759 bits: four bits an item, in two words.
func small() bloom.Config { return bloom.Config{Capacity: 1000, FPRate: 0.01} }

// sparse is one in which a false positive would be a surprise: 10^-13 at 1,000
// items.
func sparse() bloom.Config { return bloom.Config{Bits: 53 * 20_000, Hashes: 10} }

// sparseOf is sparse in a layout. A bare one has independent bits.
func sparseOf(l bloom.Layout) bloom.Config {
	cfg := sparse()
	if cfg.Layout = l; l == bloom.LayoutBare {
		cfg.Scheme = bloom.SchemeXXH3
	}
	return cfg
}

func handle(t *testing.T, c *upstash.Client, cfg bloom.Config) *bloom.Filter {
	t.Helper()
	f, err := bloom.New(c, key, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

func numbered(prefix string, n int) []string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return items
}

// do runs a command behind the client's back.
func do(t *testing.T, s *upstashtest.Server, args ...string) any {
	t.Helper()
	v, err := s.Exec(args...)
	if err != nil {
		t.Fatalf("%v: %v", args[0], err)
	}
	return v
}

// stored is the string at key, or "" if there is none.
func stored(t *testing.T, s *upstashtest.Server) string {
	t.Helper()
	v, _ := do(t, s, "GET", key).(string)
	return v
}

// pttl is the remaining time of key, -1 for none and -2 for no key.
func pttl(t *testing.T, s *upstashtest.Server) time.Duration {
	t.Helper()
	n := do(t, s, "PTTL", key).(int64)
	if n < 0 {
		return time.Duration(n)
	}
	return time.Duration(n) * time.Millisecond
}

// wantTTL accepts a remaining time of up to a minute less.
func wantTTL(t *testing.T, s *upstashtest.Server, want time.Duration) {
	t.Helper()
	if got := pttl(t, s); got > want || got < want-time.Minute || got <= 0 {
		t.Errorf("TTL %v, want %v", got, want)
	}
}

func wantNoTTL(t *testing.T, s *upstashtest.Server) {
	t.Helper()
	if got := pttl(t, s); got != -1 {
		t.Errorf("TTL %v, want none", got)
	}
}

// add adds an item and wants an answer.
func add(t *testing.T, f *bloom.Filter, item string, want bool) {
	t.Helper()
	if added, err := f.Add(t.Context(), item); err != nil || added != want {
		t.Fatalf("Add = %v, %v, want %v", added, err, want)
	}
}

// exists looks an item up and wants an answer.
func exists(t *testing.T, f *bloom.Filter, item string, want bool) {
	t.Helper()
	if found, err := f.Exists(t.Context(), item); err != nil || found != want {
		t.Fatalf("Exists = %v, %v, want %v", found, err, want)
	}
}

// count is how many answers are true.
func count(answers []bool) int {
	n := 0
	for _, a := range answers {
		if a {
			n++
		}
	}
	return n
}
