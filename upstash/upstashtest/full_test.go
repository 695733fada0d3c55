package upstashtest

import (
	"testing"
	"time"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest/internal/database"
)

// TestSetFull checks what a full database answers, and that a Redis answers the
// same.
func TestSetFull(t *testing.T) {
	const (
		full    = `{"error":"` + string(database.ErrFull) + `"}`
		aborted = `{"error":"` + string(errExecAbort) + `"}`
	)
	check := func(t *testing.T, s *Server, fill func()) {
		if _, err := s.Exec("SET", "k", "v", "EX", "900"); err != nil {
			t.Fatal(err)
		}
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
		if got := do(t, s, call{body: `["SET","k","w"]`}); got.body != `{"result":"OK"}` {
			t.Errorf("SET in a freed database: %s", got.body)
		}
	})
	t.Run("regions", func(t *testing.T) {
		s := NewServer(t)
		s.SetReplicaLag(1)
		s.SetFull(true)
		do(t, s, call{body: `["EVAL","return redis.pcall('SET','k','v').err","0"]`})
		s.SetFull(false)
		s.CatchUp()
		if got := do(t, s, call{body: `["GET","k"]`}); got.body != `{"result":null}` {
			t.Errorf("the region has made a write that was refused: %s", got.body)
		}
	})
	t.Run("redis", func(t *testing.T) {
		addr := testenv.Redis(t)
		check(t, NewServer(t, WithRedis(addr)), func() {
			redis, err := database.DialRedis(addr, database.Limits{MaxRecord: 100, Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer redis.Close()
			if r := redis.Do([]string{"CONFIG", "SET", "maxmemory", "1"}); r != database.Status("OK") {
				t.Fatal(r)
			}
		})
	})
}
