package bloom_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
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
	if _, err := f.Add(ctx, "a"); err != nil {
		t.Fatal(err)
	}
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
	redis, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	answers := bufio.NewReader(redis)
	ask := func(command string) string {
		_, err := fmt.Fprint(redis, command+"\r\n")
		line, err2 := answers.ReadString('\n')
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(line)
	}
	if _, err := f.Exists(t.Context(), "a"); !errors.Is(err, bloom.ErrNotFound) {
		t.Fatal(err)
	}
	var users []string // the server has its own, by which scripts run
	lines := 0
	if _, err := fmt.Sscanf(ask("ACL USERS"), "*%d", &lines); err != nil {
		t.Fatal(err)
	}
	for range 2 * lines {
		line, err := answers.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(line, "$") {
			users = append(users, strings.TrimSpace(line))
		}
	}
	may := func(rule string) {
		for _, user := range users {
			if answer := ask("ACL SETUSER " + user + " " + rule); answer != "+OK" {
				t.Fatalf("ACL: %s", answer)
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
	if added, err := f.Add(t.Context(), "a"); added || err != nil {
		t.Errorf("Add = %v, %v, want false", added, err)
	}
	wantTTL(t, s, time.Hour)
}
