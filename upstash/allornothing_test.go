package upstash_test

import (
	"testing"

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
	do := func(cmd upstash.Command, want bool) {
		t.Helper()
		if _, err := c.Do(t.Context(), cmd); err == nil || upstash.SafeToRetry(err) != want {
			t.Errorf("SafeToRetry(%v) = %v, want %v", err, !want, want)
		}
	}
	do(script, false)
	do(script.AllOrNothing(), true)
	s.Inject(upstashtest.Drop(upstashtest.AfterExec))
	do(script.AllOrNothing().Repeatable(true), false)
}
