package main

import (
	"fmt"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Redis takes no more for a string than calc says, however the filter was made.
// The sizes are on both sides of 1 MiB, and some just above a power of two,
// which the allocator rounds up most.
func TestRedisBytes(t *testing.T) {
	s := upstashtest.NewServer(t, upstashtest.WithRedis(testenv.Redis(t)))
	client, ctx := s.Client(), t.Context()
	for _, bits := range []uint64{8_000, 1 << 20, 8*(1<<20) - 400, 8 * (1 << 20), 10_747_000, 8*(1<<22) + 8_000, 1 << 26} {
		key := fmt.Sprint("of:", bits)
		f, err := bloom.New(client, key, bloom.Config{Bits: bits, Hashes: 4, Scheme: bloom.SchemeXXH3})
		if err != nil {
			t.Fatal(err)
		}
		size := f.Geometry().Bytes(bloom.LayoutHeaded)
		for _, by := range []struct {
			name string
			call func() error
		}{
			{"Create", func() error { _, err := f.Create(ctx); return err }},
			{"Add", func() error { _, err := f.Add(ctx, "a"); return err }},
			{"Load", func() error { _, err := f.Load(ctx, func(yield func(string) bool) { yield("a") }); return err }},
		} {
			if err := by.call(); err != nil {
				t.Fatal(by.name, err)
			}
			reply, err := s.Exec("MEMORY", "USAGE", key)
			used, ok := reply.(int64)
			if err != nil || !ok {
				t.Fatal(reply, err)
			}
			const entry = 200 // the key and its place in the table of keys
			if used > int64(redisBytes(size))+entry {
				t.Errorf("%d bytes made by %s: Redis takes %d, want at most %d", size, by.name, used, redisBytes(size))
			}
			t.Logf("%10d bytes made by %-6s: Redis takes %10d, at most %10d", size, by.name, used, redisBytes(size))
			if _, err := f.Delete(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}
