package systemtest

import (
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// In a global database a lagging replica may answer a read. With the sync token
// the answer includes this client's own writes.
func TestReadYourWrites(t *testing.T) {
	ctx := t.Context()
	header := func(c *upstash.Client) upstash.NullInt64 {
		t.Helper()
		answers, err := c.BitField(ctx, upstash.NewBitField("seen").Get("u53", 0).ReadOnly())
		if err != nil {
			t.Fatal(err)
		}
		return answers[0]
	}
	for name, c := range map[string]struct {
		opts  []upstash.Option
		stale bool
	}{
		"with the token":    {nil, false},
		"without the token": {[]upstash.Option{upstash.WithoutSyncToken()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := upstashtest.NewServer(t)
			server.SetReplicaLag(math.MaxInt)
			client := server.Client(c.opts...)
			f, err := bloom.New(client, "seen", bloom.Config{Capacity: 100, FPRate: 0.01})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Add(ctx, "a"); err != nil {
				t.Fatal(err)
			}
			if got := header(client); (got.Int64 == 0) != c.stale {
				t.Errorf("the header is %d, stale should be %v", got.Int64, c.stale)
			}
			// A filter asks the primary, with or without a token.
			if found, err := f.Exists(ctx, "a"); err != nil || !found {
				t.Errorf("Exists = %v, %v, want true", found, err)
			}
			server.CatchUp()
			if got := header(client); got.Int64 == 0 {
				t.Error("the replica has caught up, but the header is still 0")
			}
		})
	}
}

// Many goroutines share the token of one client.
func TestReadYourWritesConcurrently(t *testing.T) {
	server := upstashtest.NewServer(t)
	server.SetReplicaLag(math.MaxInt)
	client := server.Client()
	var running sync.WaitGroup
	for g := range 8 {
		running.Go(func() {
			for i := range 25 {
				key, want := fmt.Sprintf("k%d", g), fmt.Sprint(i)
				if _, err := client.Do(t.Context(), upstash.Cmd("SET", key, want)); err != nil {
					t.Error(err)
					return
				}
				reply, err := client.Do(t.Context(), upstash.Cmd("GET", key))
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := reply.Text(); err != nil || got != want {
					t.Errorf("%s is %q, %v, after it was set to %q", key, got, err, want)
					return
				}
			}
		})
	}
	running.Wait()
}
