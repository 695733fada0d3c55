package upstash_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

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
