package database

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Redis is a real Redis behind the server: one connection, used by one
// command at a time.
type Redis struct {
	addr string
	conn redis.Conn
}

func DialRedis(addr string) (*Redis, error) {
	r := &Redis{addr: addr}
	return r, r.dial()
}

func (r *Redis) dial() error {
	conn, err := redis.Dial("tcp", r.addr, redis.DialConnectTimeout(5*time.Second))
	if err != nil {
		return fmt.Errorf("no Redis at %s: %w", r.addr, err)
	}
	r.conn = conn
	return nil
}

// revive dials anew where an earlier command lost the connection.
func (r *Redis) revive() error {
	if r.conn.Err() == nil {
		return nil
	}
	_ = r.conn.Close()
	return r.dial()
}

func (r *Redis) Do(args []string) Reply {
	if err := r.revive(); err != nil {
		return lost(err)
	}
	return fromRedigo(r.conn.Do(args[0], anys(args[1:])...))
}

// Multi sends MULTI, the commands and EXEC in one write. EXEC's reply is the
// transaction's: EXECABORT where Redis refused to queue a command.
func (r *Redis) Multi(cmds [][]string) Reply {
	if err := r.revive(); err != nil {
		return lost(err)
	}
	if err := r.conn.Send("MULTI"); err != nil {
		return lost(err)
	}
	for _, c := range cmds {
		if err := r.conn.Send(c[0], anys(c[1:])...); err != nil {
			return lost(err)
		}
	}
	if err := r.conn.Send("EXEC"); err != nil {
		return lost(err)
	}
	if err := r.conn.Flush(); err != nil {
		return lost(err)
	}
	var last Reply
	for range len(cmds) + 2 { // OK, QUEUED for each, and the replies
		last = fromRedigo(r.conn.Receive())
	}
	return last
}

func (r *Redis) Flush() error {
	_, err := r.conn.Do("FLUSHDB")
	return err
}

func (r *Redis) FastForward(time.Duration) error {
	return errors.New("a real Redis cannot be fast-forwarded: use the default backend, " +
		"or short times to live")
}

func (r *Redis) Close() error { return r.conn.Close() }

// fromRedigo converts a reply. Errors inside an array are part of it; of those
// that stand alone, Redis' own are replies and all others a lost connection.
func fromRedigo(v any, err error) Reply {
	if err != nil {
		var e redis.Error
		if errors.As(err, &e) {
			return Failure(e)
		}
		return lost(err)
	}
	switch v := v.(type) {
	case int64:
		return v
	case string:
		return Status(v)
	case []byte:
		return Bulk(v)
	case redis.Error:
		return Failure(v)
	case []any:
		out := make(Array, len(v))
		for i := range v {
			out[i] = fromRedigo(v[i], nil)
		}
		return out
	}
	return nil
}

const LostPrefix = "ERR the Redis behind the server: "

// lost is the reply where the connection to Redis broke: the command may have
// been executed, so it must not look like a refusal.
func lost(err error) Failure { return Failure(LostPrefix + err.Error()) }

func IsLost(r Reply) bool {
	f, ok := r.(Failure)
	return ok && strings.HasPrefix(string(f), LostPrefix)
}

func anys(args []string) []any {
	out := make([]any, len(args))
	for i, a := range args {
		out[i] = a
	}
	return out
}
