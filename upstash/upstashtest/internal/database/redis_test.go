package database

import (
	"bufio"
	"bytes"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// TestCloseRemovesTheUsers looks at the users of a Redis before and after Close, also
// if a connection was lost between.
func TestCloseRemovesTheUsers(t *testing.T) {
	addr := testenv.Redis(t)
	before := testenv.Ask(t, addr, "ACL USERS")
	r, err := DialRedis(addr, testLimits)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := r.Do([]string{"EVAL_RO", "return 1", "0"}); got != int64(1) {
			t.Errorf("got %v, want 1", got)
		}
		users := testenv.Ask(t, addr, "ACL USERS")
		if r.users.all == "" || !strings.Contains(users, r.users.all) || !strings.Contains(users, r.users.reader) {
			t.Errorf("the users are %q, want %q among them", users, r.users)
		}
		loseConnections(t, addr)
	}
	_ = r.Close() // Interrupt has closed its connection
	if after := testenv.Ask(t, addr, "ACL USERS"); after != before {
		t.Errorf("the users are %q, want %q", after, before)
	}
}

// loseConnections closes all connections, and waits until that is noticed by the
// next use.
func loseConnections(t *testing.T, addr string) {
	t.Helper()
	testenv.Ask(t, addr, "CLIENT KILL TYPE normal SKIPME yes")
	time.Sleep(2 * idleLimit)
}

// occupied runs f while a script keeps a Redis busy.
func occupied(t *testing.T, addr string, f func()) {
	t.Helper()
	testenv.Ask(t, addr, "CONFIG SET lua-time-limit 1")
	var running sync.WaitGroup
	running.Go(func() { testenv.Ask(t, addr, `EVAL "while true do end" 0`) })
	untilBusy(t, addr)
	f()
	testenv.Ask(t, addr, "SCRIPT KILL")
	running.Wait()
}

// TestCloseEndsAScript: a script that would never end does not keep Redis busy after
// Close, and its users do not stay.
func TestCloseEndsAScript(t *testing.T) {
	addr := testenv.Redis(t)
	before := testenv.Ask(t, addr, "ACL USERS")
	testenv.Ask(t, addr, "CONFIG SET lua-time-limit 1")
	r, err := DialRedis(addr, testLimits)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if got, ok := r.Do([]string{"EVAL", "while true do end", "0"}).(Lost); !ok {
			t.Errorf("got %v, want no answer", got)
		}
	})
	untilBusy(t, addr)
	r.Interrupt()
	running.Wait()
	_ = r.Close()
	if after := testenv.Ask(t, addr, "ACL USERS"); after != before {
		t.Errorf("the users are %q, want %q", after, before)
	}
}

// untilBusy waits until Redis is busy with a script.
func untilBusy(t *testing.T, addr string) {
	t.Helper()
	for !strings.HasPrefix(testenv.Ask(t, addr, "PING"), "-BUSY") {
		time.Sleep(time.Millisecond)
	}
}

// TestUsersOfANewConnection: a Redis that was started anew has the users before the
// first script, and if it could not make them at once.
func TestUsersOfANewConnection(t *testing.T) {
	addr := testenv.Redis(t)
	r, err := DialRedis(addr, testLimits)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.ForReader(true)
	for _, busy := range []bool{false, true} {
		testenv.Ask(t, addr, "ACL DELUSER "+r.users.all+" "+r.users.reader) // as a new start does
		loseConnections(t, addr)
		if busy {
			occupied(t, addr, func() {
				if got, ok := r.Do([]string{"ECHO", "a"}).(Failure); !ok || !strings.HasPrefix(string(got), "BUSY ") {
					t.Errorf("no script: %v", got)
				}
				if got, ok := r.Do([]string{"EVAL_RO", "return 1", "0"}).(Lost); !ok {
					t.Errorf("without users: %v", got)
				}
			})
		}
		if got, ok := r.Do([]string{"EVAL_RO", "return redis.call('KEYS', '*')", "0"}).(Failure); !ok {
			t.Errorf("KEYS in a script of a read-only token: %v", got)
		}
		if got := r.Do([]string{"EVAL_RO", "return 1", "0"}); got != int64(1) {
			t.Errorf("another script: %v", got)
		}
	}
	if f := r.Table().Vet([]string{"EVAL_RO", "x", "0"}, true); f != "" {
		t.Error(f)
	}
}

// TestRedisWithoutUsers refuses a read-only token's scripts if Redis makes no
// users.
func TestRedisWithoutUsers(t *testing.T) {
	addr := testenv.Redis(t)
	if got := testenv.Ask(t, addr, "ACL SETUSER default -acl|setuser"); got != "+OK\r\n" {
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

// TestReadReply reads what WriteRESP writes, and what no Redis writes.
func TestReadReply(t *testing.T) {
	for _, want := range []Reply{
		nil, int64(0), int64(-9223372036854775808), Status(""), Status("OK"), Bulk(""), Bulk("a\r\nb"),
		Array{},
		Failure("ERR " + strings.Repeat("x", 100)),
		Array{int64(1), nil, Array{Bulk("a"), Failure("ERR b")}, Status("c")},
	} {
		var text bytes.Buffer
		WriteRESP(&text, want)
		r := bufio.NewReaderSize(strings.NewReader(text.String()), 16) // shorter than a line
		if got, err := readReply(r); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %v, %v; want %v", text.String(), got, err, want)
		}
		if rest, err := r.ReadByte(); err == nil {
			t.Errorf("readReply of %q: %q is left, want nothing", text.String(), rest)
		}
	}
	for _, text := range []string{
		"", "\r\n", "\n", "+OK\n", "+OK", ":\r\n", ":1x\r\n", "$3\r\nab", "$3\r\nabc", "$99999999999\r\n",
		"*2\r\n:1\r\n", "!1\r\n:1\r\n", "(1\r\n:1\r\n", "HTTP/1.1 400 Bad Request\r\n",
	} {
		if got, err := readReply(bufio.NewReader(strings.NewReader(text))); err == nil {
			t.Errorf("readReply of %q: got %v, want an error", text, got)
		}
	}
}
