package upstash_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A script can fail after its first write. With AllOrNothing, an error means
// the script changed nothing. After a lost reply, even such a script may have
// run.
func TestAllOrNothing(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := s.Client(upstash.WithBackoff(0, 0))
	script := upstash.Cmd("EVAL", "return redis.error_reply('ERR no')", "0")
	_, asItIs := c.Do(t.Context(), script)
	_, declared := c.Do(t.Context(), script.AllOrNothing())
	s.Inject(upstashtest.Drop(upstashtest.AfterExec))
	_, lost := c.Do(t.Context(), script.AllOrNothing().Repeatable(true))
	if asItIs == nil || upstash.SafeToRetry(asItIs) {
		t.Errorf("as it is: SafeToRetry(%v) is true", asItIs)
	}
	if !upstash.SafeToRetry(declared) {
		t.Errorf("AllOrNothing: SafeToRetry(%v) is false", declared)
	}
	if lost == nil || upstash.SafeToRetry(lost) {
		t.Errorf("AllOrNothing, after a lost reply: SafeToRetry(%v) is true", lost)
	}
}

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

// A path carries no empty argument and no dots. A server would take an empty body
// for no argument at all, and run another command than the intended one: without
// its last argument this SET sets key to "60".
func TestRawCmdRefuses(t *testing.T) {
	s := upstashtest.NewServer(t)
	c, v := s.Client(), []byte("v")
	for name, cmd := range map[string]upstash.Command{
		"no key":        upstash.RawCmd("SETEX", v, "", "60"),
		"a dot":         upstash.RawCmd("SETEX", v, ".", "60"),
		"dots":          upstash.RawCmd("SETEX", v, "..", "60"),
		"no UTF-8":      upstash.RawCmd("SETEX", v, "\xff", "60"),
		"no body":       upstash.RawCmd("SET", nil, "key", "60"),
		"an empty body": upstash.RawCmd("SET", []byte{}, "key", "60"),
	} {
		if _, err := c.Do(t.Context(), cmd); !errors.Is(err, upstash.ErrArgument) {
			t.Errorf("%s: %v, want ErrArgument", name, err)
		}
	}
	if _, err := c.Pipeline(t.Context(), upstash.RawCmd("SETEX", v, "key", "60")); !errors.Is(err, upstash.ErrArgument) {
		t.Errorf("in a pipeline: %v, want ErrArgument", err)
	}
	if n := s.Stats().Requests; n != 0 {
		t.Errorf("%d requests were sent, want 0", n)
	}
}

// TestSafeToRetryIsTrueOfTheDatabase compares each error with what is stored. A
// write whose error is safe to retry must have left nothing behind.
func TestSafeToRetryIsTrueOfTheDatabase(t *testing.T) {
	t.Parallel() // its calls mostly wait for timeouts
	first := func(r []upstash.Reply, err error) error {
		if err == nil {
			err = r[0].Err()
		}
		return err
	}
	for name, send := range map[string]func(*upstash.Client, upstash.Command) error{
		"Do": func(c *upstash.Client, cmd upstash.Command) error {
			_, err := c.Do(context.Background(), cmd)
			return err
		},
		"Pipeline": func(c *upstash.Client, cmd upstash.Command) error {
			return first(c.Pipeline(context.Background(), cmd))
		},
		"MultiExec": func(c *upstash.Client, cmd upstash.Command) error {
			return first(c.MultiExec(context.Background(), cmd))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := upstashtest.NewServer(t)
			c := s.Client(upstash.WithBackoff(0, time.Millisecond), upstash.WithTimeout(200*time.Millisecond))
			defer c.Close()
			reader := s.Client() // with time enough on any machine
			defer reader.Close()
			left := 0
			for i, fault := range append(upstashtest.EveryFault(), upstashtest.NoPermission("SET")) {
				if fault == upstashtest.RateLimit(time.Second) && !testenv.Long() {
					continue // waits a second, and is RateLimit(0) otherwise
				}
				key := fmt.Sprint("k", i) // its own: some faults execute late
				s.Inject(fault)
				err := send(c, upstash.Cmd("SET", key, "v"))
				reply, readErr := reader.Do(t.Context(), upstash.Cmd("EXISTS", key))
				n, intErr := reply.Int64()
				if readErr != nil || intErr != nil {
					t.Fatal(fault, readErr, intErr)
				}
				if err != nil && n == 1 {
					left++
				}
				if n == 1 && upstash.SafeToRetry(err) {
					t.Errorf("%v: safe to retry, but the write is there: %v", fault, err)
				}
			}
			if left == 0 {
				t.Error("no fault left a write behind an error: nothing was tested")
			}
		})
	}
}
