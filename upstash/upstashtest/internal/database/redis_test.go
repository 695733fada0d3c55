package database

import (
	"bufio"
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
)

// TestCloseRemovesTheUsers looks at the users of a Redis before and after Close.
func TestCloseRemovesTheUsers(t *testing.T) {
	addr := testenv.Redis(t)
	r, err := DialRedis(addr, testLimits)
	if err != nil {
		t.Fatal(err)
	}
	check := func(want bool) {
		t.Helper()
		users := testenv.Ask(t, addr, "ACL USERS")
		for _, user := range []string{r.users.all, r.users.reader} {
			if user == "" || strings.Contains(users, user) != want {
				t.Errorf("the users are %q, want %q among them: %v", users, user, want)
			}
		}
	}
	check(true)
	_ = r.Close() // Interrupt has closed its connection
	check(false)
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
