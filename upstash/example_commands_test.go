package upstash_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A BITFIELD is one command, however many operations it has. With OVERFLOW FAIL
// an increment is null if it does not fit.
func ExampleNewBitField() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()

	b := upstash.NewBitField("counters").
		Set("u8", 0, 250).
		Overflow(upstash.Fail).
		IncrBy("u8", 0, 5).
		IncrBy("u8", 0, 1).
		Get("u4", 4)
	answers, err := client.BitField(context.Background(), b)
	fmt.Println(answers, err)
	fmt.Println(b.Len(), "operations in", b.Size(), "bytes")
	// Output:
	// [{0 true} {255 true} {0 false} {15 true}] <nil>
	// 4 operations in 121 bytes
}

// Bytes that are not UTF-8 come back unchanged only with Binary.
func ExampleCommand_Binary() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()
	ctx := context.Background()

	_, _ = client.BitField(ctx, upstash.NewBitField("b").Set("u8", 0, 255))
	get := upstash.Cmd("GET", "b")
	reply, _ := client.Do(ctx, get)
	_, err := reply.Bytes()
	fmt.Println(err)
	reply, _ = client.Do(ctx, get.Binary())
	fmt.Println(reply.Bytes())
	// Output:
	// upstash: GET: unexpected response: bytes that are not UTF-8 were replaced: send the command with Binary() (HTTP status 200)
	// [255] <nil>
}

// The client does not repeat an INCR if it may have run. A program can allow it
// if it counts only roughly.
func ExampleCommand_Repeatable() {
	server := local()
	defer server.Close()
	client := server.Client(upstash.WithBackoff(time.Millisecond, time.Millisecond))
	defer client.Close()
	ctx := context.Background()
	incr := upstash.Cmd("INCR", "visits")

	server.Inject(upstashtest.Drop(upstashtest.AfterExec)) // executed, its answer lost
	_, err := client.Do(ctx, incr)
	fmt.Println(err != nil, upstash.SafeToRetry(err))

	server.Inject(upstashtest.Drop(upstashtest.AfterExec))
	reply, err := client.Do(ctx, incr.Repeatable(true))
	fmt.Println(err, reply.MaybeRepeated())
	fmt.Println(reply.Int64())
	// Output:
	// true false
	// <nil> true
	// 3 <nil>
}

func ExampleReply_Array() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()
	ctx := context.Background()

	_, _ = client.Do(ctx, upstash.Cmd("SET", "a", "1"))
	reply, err := client.Do(ctx, upstash.Cmd("MGET", "a", "none"))
	if err != nil {
		fmt.Println(err)
		return
	}
	values, err := reply.Array()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range values {
		if v.IsNil() {
			fmt.Println("nothing")
			continue
		}
		fmt.Println(v.Text())
	}
	// Output:
	// 1 <nil>
	// nothing
}

func ExampleReply_Map() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()
	ctx := context.Background()

	_, _ = client.Do(ctx, upstash.Cmd("HSET", "user:7", "name", "Ada", "visits", "3"))
	reply, err := client.Do(ctx, upstash.Cmd("HGETALL", "user:7"))
	if err != nil {
		fmt.Println(err)
		return
	}
	user, err := reply.Map()
	fmt.Println(user["name"], user["visits"], err)
	// Output: Ada 3 <nil>
}

// Decode reads JSON that was stored as text.
func ExampleReply_Decode() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()
	ctx := context.Background()

	_, _ = client.Do(ctx, upstash.Cmd("SET", "user:7", `{"name":"Ada","visits":3}`))
	reply, err := client.Do(ctx, upstash.Cmd("GET", "user:7"))
	if err != nil {
		fmt.Println(err)
		return
	}
	var user struct {
		Name   string
		Visits int
	}
	err = reply.Decode(&user)
	fmt.Println(user, err)
	// Output:
	// {Ada 3} <nil>
}

// ExpireCmd is EXPIRE, or PEXPIRE for parts of a second, to be sent along
// with other commands.
func ExampleExpireCmd() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()

	replies, err := client.MultiExec(context.Background(),
		upstash.Cmd("INCR", "visits"), upstash.ExpireCmd("visits", time.Minute, "NX"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(replies[0].Int64())
	fmt.Println(replies[1].Int64())
	// Output:
	// 1 <nil>
	// 1 <nil>
}

// One attempt of at most two seconds, and no second one.
func ExampleWithRetry() {
	server := local()
	defer server.Close()
	client := server.Client(upstash.WithRetry(0), upstash.WithTimeout(2*time.Second))
	defer client.Close()

	server.Inject(upstashtest.RateLimit(time.Second))
	_, err := client.Do(context.Background(), upstash.Cmd("GET", "a"))
	fmt.Println(errors.Is(err, upstash.ErrRateLimited), upstash.SafeToRetry(err))
	// Output: true true
}

func ExampleClient_BitField() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()

	// One command: set bit 9, read bit 7, count a visit but never past 3.
	answers, err := client.BitField(context.Background(), upstash.NewBitField("page").
		Set("u1", 9, 1).
		Get("u1", 7).
		Overflow(upstash.Fail).IncrBy("u2", 64, 3).IncrBy("u2", 64, 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range answers {
		fmt.Println(a.Int64, a.Valid)
	}
	// Output:
	// 0 true
	// 0 true
	// 3 true
	// 0 false
}

func ExampleBitField_SetBits() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()
	ctx := context.Background()

	b := upstash.NewBitField("filter").SetBits(128, []uint64{3, 77, 1024})
	old, err := client.BitField(ctx, b)
	fmt.Println(old, err)

	// Reset keeps the memory for the next command.
	now, err := client.BitField(ctx, b.Reset("filter").GetWords("u1", 128, []uint64{3, 4}).ReadOnly())
	fmt.Println(now, err)
	// Output:
	// [{0 true} {0 true} {0 true}] <nil>
	// [{1 true} {0 true}] <nil>
}

func ExampleClient_BitCount() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()
	ctx := context.Background()

	if _, err := client.Do(ctx, upstash.Cmd("SET", "k", "Hello World")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(client.BitCount(ctx, "k"))
	// Output: 43 <nil>
}

func ExampleClient_Expire() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()
	ctx := context.Background()

	fmt.Println(client.Expire(ctx, "session", time.Hour))
	if _, err := client.Do(ctx, upstash.Cmd("SET", "session", "ann")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(client.Expire(ctx, "session", time.Hour))
	server.FastForward(2 * time.Hour)
	ttl, err := client.TTL(ctx, "session")
	fmt.Println(ttl == upstash.NoKey, err)
	// Output:
	// false <nil>
	// true <nil>
	// true <nil>
}

func ExampleClient_TTL() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()
	ctx := context.Background()

	if _, err := client.Do(ctx, upstash.Cmd("SET", "session", "ann")); err != nil {
		fmt.Println(err)
		return
	}
	ttl, err := client.TTL(ctx, "session")
	fmt.Println(ttl == upstash.NoExpiry, err)

	if _, err := client.Expire(ctx, "session", time.Hour); err != nil {
		fmt.Println(err)
		return
	}
	ttl, err = client.TTL(ctx, "session")
	fmt.Println(ttl.Round(time.Minute), err)
	// Output:
	// true <nil>
	// 1h0m0s <nil>
}

func ExampleClient_Persist() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()
	ctx := context.Background()

	if _, err := client.Do(ctx, upstash.Cmd("SET", "session", "ann", "EX", "60")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(client.Persist(ctx, "session"))
	fmt.Println(client.Persist(ctx, "session"))
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleClient_Del() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()
	ctx := context.Background()

	if _, err := client.Do(ctx, upstash.Cmd("MSET", "a", "1", "b", "2")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(client.Del(ctx, "a", "b", "no-such-key"))
	// Output: 2 <nil>
}

// A key may come twice: collect them if that matters.
func ExampleClient_Scan() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()
	ctx := context.Background()

	_, _ = client.Do(ctx, upstash.Cmd("MSET", "user:ann", "1", "user:bob", "2", "visits", "9"))
	users := make(map[string]bool)
	for key, err := range client.Scan(ctx, "user:*") {
		if err != nil {
			fmt.Println(err)
			return
		}
		users[key] = true
	}
	fmt.Println(users)
	// Output: map[user:ann:true user:bob:true]
}

// A failing command stops none of the others.
func ExampleClient_Pipeline() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()

	replies, err := client.Pipeline(context.Background(),
		upstash.Cmd("SET", "name", "ann"),
		upstash.Cmd("INCR", "name"),
		upstash.Cmd("GET", "name"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range replies {
		if err := r.Err(); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(r.Text())
	}
	stats := server.Stats()
	fmt.Println(stats.Requests, "request,", stats.Commands, "commands")
	// Output:
	// OK <nil>
	// upstash: INCR: ERR value is not an integer or out of range (HTTP status 200)
	// ann <nil>
	// 1 request, 3 commands
}

// A counter that expires an hour after its first count, however often it is
// counted up.
func ExampleClient_MultiExec() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()
	ctx := context.Background()

	for range 2 {
		replies, err := client.MultiExec(ctx,
			upstash.Cmd("INCR", "hits"),
			upstash.ExpireCmd("hits", time.Hour, "NX"))
		if err != nil {
			fmt.Println(err)
			return
		}
		hits, _ := replies[0].Int64()
		begun, err := replies[1].Int64()
		fmt.Println(hits, begun == 1, err)
	}
	// Output:
	// 1 true <nil>
	// 2 false <nil>
}

// A script reads and writes in one atomic step. The second call sends its SHA-1
// in place of its text.
func ExampleScript() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()
	ctx := context.Background()

	take := upstash.NewScript(`local left = tonumber(redis.call('GET', KEYS[1]) or '0')
if left < tonumber(ARGV[1]) then return -1 end
return redis.call('DECRBY', KEYS[1], ARGV[1])`)
	if _, err := client.Do(ctx, upstash.Cmd("SET", "seats", "5")); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		reply, err := client.Do(ctx, take.Cmd([]string{"seats"}, "3"))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(reply.Int64())
	}
	// Output:
	// 2 <nil>
	// -1 <nil>
}
