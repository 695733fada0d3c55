package upstashtest

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upbloom/upbloom/internal/door"
	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
)

// TestBitfieldCopiesOnce runs 7,000 SETs on a string of 1.2 MB. A copy for each
// of them would take 8 GB.
func TestBitfieldCopiesOnce(t *testing.T) {
	const size, ops = 1_200_000, 7_000
	s := NewServer(t)
	exec(t, s, "SETRANGE", "k", strconv.Itoa(size-1), "x")
	args := []string{"BITFIELD", "k"}
	for i := range ops {
		args = append(args, "SET", "u1", strconv.Itoa(i*(size/ops)*8), "1")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	exec(t, s, args...)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 5*size {
		t.Errorf("BITFIELD of a string of %d bytes: %d bytes allocated, want at most 5 times its length", size, n)
	}
	if n := exec(t, s, "BITCOUNT", "k"); n != int64(ops+4) { // 4 of the "x"
		t.Errorf("BITCOUNT: %v bits are set, want %d", n, ops+4)
	}
}

// TestStoredKeysLetGoOfRequests sends a large argument beside a key that stays.
func TestStoredKeysLetGoOfRequests(t *testing.T) {
	const requests, size = 16, 256 << 10
	s := NewServer(t)
	large := strings.Repeat("x", size)
	before := heap()
	for i := range requests {
		key := strconv.Itoa(i)
		do(t, s, call{path: "/pipeline", body: `[["BITFIELD","f` + key + `","SET","u1","0","1"],` +
			`["SET","s` + key + `","v"],["SADD","m` + key + `","v"],["ECHO","` + large + `"]]`})
		do(t, s, call{body: `["BITFIELD","f` + key + `","GET","u1","` + large + `"]`}) // refused
		do(t, s, call{body: `["HSETNX","h` + key + `","f","` + large + `"]`})
		do(t, s, call{body: `["HDEL","h` + key + `","f"]`})
		do(t, s, call{body: `["MSET","a` + key + `","v","b` + key + `","` + large + `"]`})
		do(t, s, call{body: `["DEL","b` + key + `"]`})
	}
	if kept := heap() - before; kept > requests*size/2 {
		t.Errorf("%d bytes are kept after %d requests of about %d, want less than half of those", kept, requests, size)
	}
	runtime.KeepAlive(s)
}

// heap returns the number of bytes in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestClientFollowsFastForward: a client's idea of the server's time moves too,
// whether it was learned or is still its own clock.
func TestClientFollowsFastForward(t *testing.T) {
	s := NewServer(t)
	learned, fresh := s.Client(), s.ReadOnlyClient()
	before, err := learned.ServerTime(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []time.Duration{5 * time.Minute, 100 * time.Hour} {
		s.FastForward(by)
		before = before.Add(by)
		after, err := learned.ServerTime(t.Context())
		if d := after.Sub(before); err != nil || d.Abs() > time.Hour {
			t.Errorf("FastForward(%v) at %v: ServerTime is %v off, %v, want at most 1h", by, before, d, err)
		}
		own, known := door.KnownServerTime(fresh)
		if d := own.Sub(before); known || d.Abs() > time.Hour {
			t.Errorf("FastForward(%v): door.KnownServerTime of a client that has not asked is %v off, known %v,"+
				" want at most 1h and false", by, d, known)
		}
	}
}

// A test of a Mirror makes the server before its bubble, whose clock begins in
// the year 2000.
func TestFastForwardInABubble(t *testing.T) {
	s := NewServer(t)
	exec(t, s, "SET", "a", "x", "EX", "360000")
	synctest.Test(t, func(t *testing.T) {
		before := serverTime(t, s)
		s.FastForward(time.Hour)
		time.Sleep(1000 * time.Hour)
		s.FastForward(time.Hour)
		if passed := serverTime(t, s).Sub(before); passed < 2*time.Hour || passed > 50*time.Hour {
			t.Errorf("TIME went on by %v, want two hours", passed)
		}
	})
	if v, _ := exec(t, s, "TTL", "a").(int64); v <= 180000 || v > 360000-7200 {
		t.Errorf("a TTL of 360,000 s is %v after two hours", v)
	}
}

// TestTimeToLive checks that keys expire by the clock and by FastForward. The
// times are hours: a pause of the machine does not change the outcome.
func TestTimeToLive(t *testing.T) {
	s := NewServer(t)
	exec(t, s, "SET", "a", "x")
	exec(t, s, "EXPIRE", "a", "7200")
	exec(t, s, "BITFIELD", "a", "SET", "u8", "#3", "1") // keeps it
	if v, _ := exec(t, s, "TTL", "a").(int64); v <= 3600 || v > 7200 {
		t.Errorf("TTL after a BITFIELD: %v, want more than 3600 and at most 7200", v)
	}
	before := serverTime(t, s)
	s.FastForward(time.Hour)
	wantExec(t, s, int64(1), "EXISTS", "a")
	if passed := serverTime(t, s).Sub(before); passed < 59*time.Minute || passed > 2*time.Hour {
		t.Errorf("TIME went on by %v, want an hour", passed)
	}
	s.FastForward(time.Hour)
	wantExec(t, s, int64(-2), "TTL", "a")
	exec(t, s, "SET", "b", "x", "PX", "1")
	waitFor(t, func() bool {
		v, _ := s.Exec("BITFIELD_RO", "b", "GET", "u8", "0")
		return fmt.Sprint(v) == "[0]"
	})
}

func serverTime(t *testing.T, s *Server) time.Time {
	t.Helper()
	now, err := s.Client().ServerTime(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// TestConcurrentTransactions: no transaction sees the commands of an unfinished
// one.
func TestConcurrentTransactions(t *testing.T) {
	const clients, rounds = 8, 20
	const body = `[["INCR","n"],["BITFIELD","f","INCRBY","u32","0","1"],["DECR","n"]]`
	s := NewServer(t)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range rounds {
				got, err := try(t, s, call{path: "/multi-exec", body: body})
				if err != nil || !strings.HasPrefix(got.body, `[{"result":1},`) ||
					!strings.HasSuffix(got.body, `,{"result":0}]`) {
					t.Errorf("a transaction: %s, %v, want 1 first and 0 last: another client came between", got.body, err)
				}
			}
		})
	}
	wg.Wait()
	counted := fmt.Sprint(exec(t, s, "BITFIELD", "f", "GET", "u32", "0"))
	if counted != fmt.Sprintf("[%d]", clients*rounds) {
		t.Errorf("GET of the counter: %s, want [%d]", counted, clients*rounds)
	}
	if n := s.Stats(); n.Requests != clients*rounds || n.Commands != 3*clients*rounds {
		t.Errorf("%+v, want %d requests with 3 commands each", n, clients*rounds)
	}
}

func TestExec(t *testing.T) {
	s := filled(t)
	for _, tt := range []struct {
		args []string
		want any
		err  string
	}{
		{args: []string{"SET", "a", "b"}, want: "OK"},
		{args: []string{"GET", "raw"}, want: "a\xff\xfeb"},
		{args: []string{"GET", "none"}},
		{args: []string{"BITFIELD", "s", "GET", "u8", "0"}, want: []any{int64(102)}},
		{args: []string{"INCR", "l"}, err: string(database.ErrWrongType)},
		{args: []string{"MULTI"}, err: fmt.Sprintf(notOverREST, "MULTI")},
		{err: "ERR empty command"},
	} {
		got, err := s.Exec(tt.args...)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) || text != tt.err {
			t.Errorf("%q: %v, %q; want %v, %q", tt.args, got, text, tt.want, tt.err)
		}
	}
}

// TestSetFull checks what a full database answers, and that a Redis answers the
// same.
func TestSetFull(t *testing.T) {
	const (
		full    = `{"error":"` + string(database.ErrFull) + `"}`
		aborted = `{"error":"` + string(errExecAbort) + `"}`
	)
	check := func(t *testing.T, s *Server, fill func()) {
		exec(t, s, "SET", "k", "v", "EX", "900")
		fill()
		for _, tt := range []struct {
			path, body string
			status     int
			want       string
		}{
			{"/", `["SET","k","w"]`, 400, full},
			{"/", `["bitfield","k","GET","u8","0"]`, 400, full},
			{"/", `["BITFIELD_RO","k","GET","u8","0"]`, 200, `{"result":[118]}`},
			{"/", `["GET","k"]`, 200, `{"result":"v"}`},
			{"/", `["PERSIST","k"]`, 200, `{"result":1}`},
			{"/", `["SET","k"]`, 400, `{"error":"ERR wrong number of arguments for 'set' command"}`},
			{"/pipeline", `[["SET","k","w"],["GET","k"]]`, 200, `[` + full + `,{"result":"v"}]`},
			{"/multi-exec", `[["GET","k"]]`, 400, aborted},
			{"/", `["EVAL","return redis.pcall('SET','k','w').err","0"]`, 200, `{"result":"` + string(database.ErrFull) + `"}`},
			{"/", `["EVAL","redis.call('DEL','k') return redis.call('SET','k','w')","0"]`, 200, `{"result":"OK"}`},
			{"/", `["RENAME","k","l"]`, 200, `{"result":"OK"}`},
			{"/", `["DEL","l"]`, 200, `{"result":1}`},
		} {
			if got := do(t, s, call{path: tt.path, body: tt.body}); got.status != tt.status || got.body != tt.want {
				t.Errorf("%s: %d %s, want %d %s", tt.body, got.status, got.body, tt.status, tt.want)
			}
		}
	}
	t.Run("memory", func(t *testing.T) {
		s := NewServer(t)
		check(t, s, func() { s.ResetStats(); s.SetFull(true) })
		if got := s.Stats(); got.Commands != 8 {
			t.Errorf("%d commands counted, want the 8 that were not refused", got.Commands)
		}
		if v, err := s.Exec("SET", "k", "v"); v != "OK" || err != nil {
			t.Errorf("Exec(SET) = %v, %v, want OK", v, err)
		}
		s.SetFull(false)
		wantBody(t, s, call{body: `["SET","k","w"]`}, `{"result":"OK"}`)
	})
	t.Run("regions", func(t *testing.T) {
		s := NewServer(t)
		s.SetReplicaLag(1)
		s.SetFull(true)
		do(t, s, call{body: `["EVAL","return redis.pcall('SET','k','v').err","0"]`})
		s.SetFull(false)
		s.CatchUp()
		wantBody(t, s, call{body: `["GET","k"]`}, `{"result":null}`)
	})
	t.Run("redis", func(t *testing.T) {
		addr := testenv.Redis(t)
		check(t, NewServer(t, WithRedis(addr)), func() {
			if r := testenv.Ask(t, addr, "CONFIG SET maxmemory 1"); r != "+OK\r\n" {
				t.Fatal(r)
			}
		})
	})
}
