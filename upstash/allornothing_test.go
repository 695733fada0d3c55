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
