package bloom_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// refuseScripts makes the server refuse EVAL, as if the token may not run it.
func refuseScripts(s *upstashtest.Server) {
	s.InjectFunc(func(_ int64, q upstashtest.RequestInfo) upstashtest.Fault {
		if strings.HasPrefix(q.Commands[0], "EVAL") {
			return upstashtest.NoPermission(q.Commands[0])
		}
		return upstashtest.Fault{}
	})
}

// A token that may not run EVAL looks items up, but adds nothing.
func TestScalableWithoutScripts(t *testing.T) {
	s := upstashtest.NewServer(t)
	ctx, f := t.Context(), scalable(t, s.Client(), growing())
	noError(t, errorOf(f.Add(ctx, "a")))
	refuseScripts(s)
	for name, err := range map[string]error{
		"Add": errorOf(f.Add(ctx, "b")), "AddAll": errorOf(f.AddAll(ctx, []string{"b", "c"})),
	} {
		if !errors.Is(err, upstash.ErrNoPermission) || bloom.InFilter(err) || !upstash.SafeToRetry(err) ||
			!strings.Contains(err.Error(), "a Scalable adds by a script: use a token that may run EVAL") {
			t.Errorf("%s: %v, want one that says what the token lacks", name, err)
		}
	}
	found, err := f.ExistsAll(ctx, []string{"a", "b", "c"})
	if err != nil || !found[0] || count(found) != 1 {
		t.Errorf("found %v, %v, want the first", found, err)
	}
}

// The items are in, but the user may not run PEXPIRE, in the script or after it.
// The next Add tries again.
func TestScalableTTLRefused(t *testing.T) {
	addr := testenv.Redis(t)
	s := upstashtest.NewServer(t, upstashtest.WithRedis(addr))
	cfg := growing()
	cfg.TTL = time.Hour
	f := scalable(t, s.Client(), cfg)
	if _, err := f.Exists(t.Context(), "a"); !errors.Is(err, bloom.ErrNotFound) {
		t.Fatal(err)
	}
	may := func(rule string) { // also for the server's own user, by which scripts run
		for line := range strings.Lines(testenv.Ask(t, addr, "ACL USERS")) {
			if user := strings.TrimSpace(line); !strings.ContainsAny(user[:1], "*$") {
				if reply := testenv.Ask(t, addr, "ACL SETUSER "+user+" "+rule); reply != "+OK\r\n" {
					t.Fatalf("ACL SETUSER: got %q, want +OK", reply)
				}
			}
		}
	}
	may("-pexpire")
	for _, isNew := range []bool{true, false} {
		added, err := f.Add(t.Context(), "a")
		if added != isNew || !errors.Is(err, bloom.ErrNoTTL) || !bloom.InFilter(err) {
			t.Errorf("Add = %v, %v, want %v and ErrNoTTL", added, err, isNew)
		}
	}
	may("+pexpire")
	add(t, f, "a", false)
	wantTTL(t, s, time.Hour)
}
