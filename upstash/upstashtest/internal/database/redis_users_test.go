package database

import (
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// TestCloseRemovesTheUsers looks at the users of a Redis before and after Close.
func TestCloseRemovesTheUsers(t *testing.T) {
	addr := testenv.Redis(t)
	open := func() *Redis {
		r, err := DialRedis(addr, testLimits)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	observer, other := open(), open()
	defer observer.Close()
	for _, user := range []string{other.users.all, other.users.reader} {
		if users := show(observer.Do([]string{"ACL", "USERS"})); user == "" || !strings.Contains(users, user) {
			t.Fatalf("the users are %s, want %q among them", users, user)
		}
	}
	_ = other.Close() // Interrupt has closed its connection
	if users := show(observer.Do([]string{"ACL", "USERS"})); strings.Contains(users, other.users.all) ||
		strings.Contains(users, other.users.reader) {
		t.Errorf("after Close the users are %s, want none of the other server", users)
	}
}

// TestRedisWithoutUsers refuses a read-only token's scripts if Redis makes no
// users.
func TestRedisWithoutUsers(t *testing.T) {
	addr := testenv.Redis(t)
	r, err := DialRedis(addr, testLimits)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := r.Do([]string{"ACL", "SETUSER", "default", "-acl|setuser"}); got != Status("OK") {
		t.Fatal(got)
	}
	strict, err := DialRedis(addr, testLimits)
	if err != nil {
		t.Fatal(err)
	}
	defer strict.Close()
	for _, command := range []string{"EVAL_RO", "EVALSHA_RO", "FCALL_RO"} {
		if got := strict.Table().Vet([]string{command, "x", "0"}, true); got != NoPermission(command) {
			t.Errorf("%s: %q, want %q", command, got, NoPermission(command))
		}
	}
	if got := strict.Do([]string{"EVAL", "return 1", "0"}); got != int64(1) {
		t.Errorf("EVAL: %v, want 1", got)
	}
}
