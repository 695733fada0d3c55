package recording_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/testkit/faketest"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/recording"
)

// TestEachKindIsReplayed makes filters of each type in several steps, in a test
// that is recorded and then replayed.
func TestEachKindIsReplayed(t *testing.T) {
	s := upstashtest.NewServer(t)
	replayFilled(t, s, func(c *upstash.Client) (*bloom.Filter, error) {
		return bloom.New(c, "filter", bloom.Config{Capacity: 10, FPRate: 0.01})
	}, func(f *bloom.Filter) (any, error) {
		result, err := f.Load(t.Context(), slices.Values([]string{"a", "b", "c"}))
		if err != nil {
			return nil, err
		}
		copied, err := f.Snapshot(t.Context())
		if err != nil {
			return nil, err
		}
		return result.NewBits, f.Replace(t.Context(), copied)
	})
	hour := bloom.WindowConfig{Capacity: 10, FPRate: 0.01, Span: time.Hour}
	replayFilled(t, s, func(c *upstash.Client) (*bloom.Window, error) {
		return bloom.NewWindow(c, "window", hour)
	}, nil)
	hour.ExpireIdle = true
	replayFilled(t, s, func(c *upstash.Client) (*bloom.Window, error) {
		return bloom.NewWindow(c, "idle", hour)
	}, nil)
	replayFilled(t, s, func(c *upstash.Client) (*bloom.Scalable, error) {
		return bloom.NewScalable(c, "scalable", bloom.ScalableConfig{Capacity: 1000, FPRate: 0.01})
	}, nil)
	replayFilled(t, s, func(c *upstash.Client) (*bloom.Cuckoo, error) {
		return bloom.NewCuckoo(c, "cuckoo", bloom.CuckooConfig{Capacity: 1000, FPRate: 0.01})
	}, func(f *bloom.Cuckoo) (any, error) { return f.Remove(t.Context(), "a") })
	replayFilled(t, s, func(c *upstash.Client) (*bloom.Sharded, error) {
		f, err := bloom.NewSharded([]*upstash.Client{c}, "sharded", bloom.ShardedConfig{
			Capacity: 100, FPRate: 0.01, Shards: 2,
		})
		if err == nil {
			door.SetBatch(f, 0, 1) // its requests have an order
		}
		return f, err
	}, nil)
}

// A fillable is what the types have in common.
type fillable interface {
	Create(ctx context.Context) (bool, error)
	Add(ctx context.Context, item string) (bool, error)
	AddAll(ctx context.Context, items []string) ([]bool, error)
	Exists(ctx context.Context, item string) (bool, error)
	Delete(ctx context.Context) (bool, error)
}

// replayFilled creates a filter, uses it by several handles, deletes it, and adds
// to it again: in a test that is recorded, and then in a replay. more uses it
// further, unless it is nil.
func replayFilled[F fillable](t *testing.T, s *upstashtest.Server, open func(*upstash.Client) (F, error),
	more func(F) (saw any, _ error),
) {
	t.Helper()
	recordThenReplay(t, s.URL, s.Token, func(c *upstash.Client) string {
		var saw []any
		note := func(v any, err error) {
			if saw = append(saw, v); err != nil {
				t.Errorf("call %d: %v", len(saw), err)
			}
		}
		for _, begin := range []string{"create", "add"} {
			for n := range 3 {
				f, err := open(c)
				if err != nil {
					t.Fatal(err)
				}
				if _, always := any(f).(*bloom.Sharded); always || begin == "create" {
					note(f.Create(t.Context()))
				}
				note(f.Add(t.Context(), fmt.Sprint("item-", n)))
				note(f.AddAll(t.Context(), []string{"x", fmt.Sprint("y", n)}))
				note(f.Exists(t.Context(), "item-0"))
				if more != nil {
					note(more(f))
				}
				if n == 2 {
					note(f.Delete(t.Context()))
				}
			}
		}
		return fmt.Sprint(saw...)
	})
}

// TestOtherNumbersMustBeEqual changes numbers that only look like birth
// numbers, and uses two birth numbers instead of one.
func TestOtherNumbersMustBeEqual(t *testing.T) {
	const header = "4787273627347463"
	birth, other, third := recording.Birth(), recording.Birth(), recording.Birth()
	add := func(key, header, birth string) upstash.Command {
		return upstash.Cmd("BITFIELD", key, "OVERFLOW", "FAIL",
			"INCRBY", "u53", "0", header, "INCRBY", "u53", "64", birth)
	}
	const refused = "is not in the recording"
	for name, tt := range map[string]struct {
		made []upstash.Command
		want string // of the failure, or ""
	}{
		"the same":       {[]upstash.Command{add("k", header, other), add("l", header, other)}, ""},
		"two instead":    {[]upstash.Command{add("k", header, other), add("l", header, third)}, refused},
		"not drawn":      {[]upstash.Command{add("k", header, "7777777777777777")}, refused},
		"another header": {[]upstash.Command{add("k", other, other)}, refused},
		// The birth number is not the difference.
		"another key": {
			[]upstash.Command{upstash.Cmd("SET", "k", "v"), add("m", header, other)},
			`want: "BITFIELD","k"`,
		},
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
			if name == "another key" {
				recorded = append([]upstash.Command{upstash.Cmd("SET", "k", "v")}, recorded...)
			}
			faketest.Run(func(tb testing.TB) {
				send(recording.Record(tb, file, server.URL, server.Token), recorded...)
			}).WantFailures(t)
			fake := faketest.Run(func(tb testing.TB) {
				send(recording.Replay(tb, file), tt.made...)
			})
			got := strings.Join(fake.Failures, "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("failures %q, want %q", got, tt.want)
			}
		})
	}
}

// TestRawCommandsAreToldApart replays one raw command in place of another. Only
// their paths differ, which hold all arguments but the last. The path of the
// database's URL is not part of them.
func TestRawCommandsAreToldApart(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"result":"OK"}`)
	}))
	defer server.Close()
	var files [][]byte
	for _, base := range []string{"", "/data%2Fbase/x//"} {
		file := t.TempDir() + "/recording.json"
		send := func(c *upstash.Client, command string) {
			_, _ = c.Do(t.Context(), upstash.RawCmd(command, []byte("x"), "a key"))
		}
		faketest.Run(func(tb testing.TB) {
			send(recording.Record(tb, file, server.URL+base, "token-secret"), "SET")
		}).WantFailures(t)
		faketest.Run(func(tb testing.TB) { send(recording.Replay(tb, file), "SET") }).WantFailures(t)
		other := faketest.Run(func(tb testing.TB) { send(recording.Replay(tb, file), "APPEND") })
		if !strings.Contains(strings.Join(other.Failures, "\n"), "is not in the recording") {
			t.Errorf("base %q: APPEND in place of SET: failures %q, want \"is not in the recording\"", base, other.Failures)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, data)
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Errorf("recordings of two paths of the database's URL differ, want equal ones:\n%s\n%s", files[0], files[1])
	}
}
