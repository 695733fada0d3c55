package upstash_test

import (
	"context"
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
