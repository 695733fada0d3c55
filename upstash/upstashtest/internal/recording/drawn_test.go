package recording_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/faketest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/recording"
)

// TestBirthNumbersAreReplayed makes filters in all ways. A replay draws other
// birth numbers, and its client sees those in the answers. Two recordings make
// the same file.
func TestBirthNumbersAreReplayed(t *testing.T) {
	server := upstashtest.NewServer(t)
	steps := func(c *upstash.Client) string {
		f, err := bloom.New(c, "made", bloom.Config{Capacity: 1000, FPRate: 0.01, TTL: time.Hour})
		if err != nil {
			return err.Error()
		}
		created, createErr := f.Create(t.Context())
		g, err := bloom.New(c, "added", bloom.Config{Capacity: 1000, FPRate: 0.01, TTL: time.Hour})
		if err != nil {
			return err.Error()
		}
		one, addErr := g.Add(t.Context(), "a")
		many, allErr := g.AddAll(t.Context(), []string{"a", "b"})
		local, snapErr := g.Snapshot(t.Context())
		return fmt.Sprint(created, createErr, one, addErr, many, allErr, local != nil, snapErr)
	}
	first := recordThenReplay(t, server.URL, server.Token, steps)
	server.FlushAll()
	if second := recordThenReplay(t, server.URL, server.Token, steps); !bytes.Equal(first, second) {
		t.Errorf("recorded again, got\n%s\nwant\n%s", second, first)
	}
}

// TestOtherNumbersMustBeEqual changes numbers that only look like birth
// numbers, and uses two birth numbers instead of one.
func TestOtherNumbersMustBeEqual(t *testing.T) {
	const header, birth = "4787273627347463", "6674581760340884"
	add := func(key, header, birth string) upstash.Command {
		return upstash.Cmd("BITFIELD", key, "OVERFLOW", "FAIL",
			"INCRBY", "u53", "0", header, "INCRBY", "u53", "64", birth)
	}
	const other = "5555555555555555"
	const refused = "is not in the recording"
	for name, tt := range map[string]struct {
		made []upstash.Command
		want string // of the failure, or ""
	}{
		"the same":       {[]upstash.Command{add("k", header, birth), add("l", header, birth)}, ""},
		"drawn anew":     {[]upstash.Command{add("k", header, other), add("l", header, other)}, ""},
		"two instead":    {[]upstash.Command{add("k", header, birth), add("l", header, other)}, refused},
		"another header": {[]upstash.Command{add("k", other, birth)}, refused},
		"an item":        {[]upstash.Command{upstash.Cmd("SET", "k", other)}, refused},
	} {
		t.Run(name, func(t *testing.T) {
			server := upstashtest.NewServer(t)
			file := t.TempDir() + "/recording.json"
			send := func(c *upstash.Client, cmds ...upstash.Command) {
				for _, cmd := range cmds {
					if _, err := c.Do(t.Context(), cmd); err != nil {
						return // it is in the log
					}
				}
			}
			recorded := []upstash.Command{add("k", header, birth), add("l", header, birth)}
			if name == "an item" {
				recorded = []upstash.Command{upstash.Cmd("SET", "k", birth)}
			}
			faketest.Run(func(tb testing.TB) {
				send(recording.Record(tb, file, server.URL, server.Token), recorded...)
			}).WantFailures(t)
			fake := faketest.Run(func(tb testing.TB) { send(recording.Replay(tb, file), tt.made...) })
			got := strings.Join(fake.Failures, "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("failures %q, want %q", got, tt.want)
			}
		})
	}
}
