package upstash_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Any bytes arrive as they are, under any key that fits into a path.
func TestRawBodyCarriesAnyBytes(t *testing.T) {
	ctx := context.Background()
	c := upstashtest.NewServer(t).Client()
	body := make([]byte, 100_000)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(body)
	for _, key := range []string{
		"k", "a/b", "a b+c&d=e?f#g", "naïve-ключ-🔑", `"quoted"\`, "..a", "%2F", "a//b/../c",
	} {
		reply, err := c.Do(ctx, upstash.RawCmd("SETEX", body, key, "60"))
		if err != nil {
			t.Fatalf("key %q: %v", key, err)
		}
		if text, err := reply.Text(); err != nil || text != "OK" {
			t.Fatalf("key %q: %q, %v", key, text, err)
		}
		got, err := c.Do(ctx, upstash.Cmd("GET", key).Binary())
		if err != nil {
			t.Fatal(err)
		}
		if stored, err := got.Bytes(); err != nil || !bytes.Equal(stored, body) {
			t.Errorf("key %q: %d other bytes are stored (%v)", key, len(stored), err)
		}
	}
}

func TestRawBodyRefusesWhatAPathCannotCarry(t *testing.T) {
	ctx := context.Background()
	s := upstashtest.NewServer(t)
	for _, key := range []string{"", ".", "..", "\xff"} {
		_, err := s.Client().Do(ctx, upstash.RawCmd("SETEX", []byte("v"), key, "60"))
		if !errors.Is(err, upstash.ErrArgument) {
			t.Errorf("key %q: %v, want ErrArgument", key, err)
		}
	}
	raw := upstash.RawCmd("SETEX", []byte("v"), "key", "60")
	if _, err := s.Client().Pipeline(ctx, raw); !errors.Is(err, upstash.ErrArgument) {
		t.Errorf("in a pipeline: %v, want ErrArgument", err)
	}
	if n := s.Stats().Requests; n != 0 {
		t.Errorf("%d requests were sent, want 0", n)
	}
}

// TestRawCmdWithoutABody: an empty body is refused. A server would take it for
// no argument at all, and run another command than the intended one.
func TestRawCmdWithoutABody(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := s.Client()
	for _, body := range [][]byte{nil, {}} {
		// Without its last argument it is a whole command, which sets key to
		// "60".
		_, err := c.Do(t.Context(), upstash.RawCmd("SET", body, "key", "60"))
		if !errors.Is(err, upstash.ErrArgument) {
			t.Errorf("%v, want ErrArgument", err)
		}
	}
	if n := s.Stats().Requests; n != 0 {
		t.Errorf("%d requests were sent, want 0", n)
	}
}
