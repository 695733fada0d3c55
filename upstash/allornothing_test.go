package upstash_test

import (
	"testing"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// An error of a script may come after its first write; of one that is said to
// fail before it, it means that nothing was done. An attempt whose reply was
// lost stays in doubt.
func TestAllOrNothing(t *testing.T) {
	s := upstashtest.NewServer(t)
	c := s.Client(upstash.WithBackoff(0, 0))
	script := upstash.Cmd("EVAL", "return redis.error_reply('ERR no')", "0")
	do := func(cmd upstash.Command, want bool) {
		t.Helper()
		if _, err := c.Do(t.Context(), cmd); err == nil || upstash.SafeToRetry(err) != want {
			t.Errorf("%v: safe to retry is not %v", err, want)
		}
	}
	do(script, false)
	do(script.AllOrNothing(), true)
	s.Inject(upstashtest.Drop(upstashtest.AfterExec))
	do(script.AllOrNothing().Repeatable(true), false)
}
