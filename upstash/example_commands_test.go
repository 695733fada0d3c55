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
		GetIndex("u4", 1)
	answers, err := client.BitField(context.Background(), b)
	fmt.Println(answers, err)
	fmt.Println(b.Len(), "operations in", b.Size(), "bytes")
	// Output:
	// [{0 true} {255 true} {0 false} {15 true}] <nil>
	// 4 operations in 122 bytes
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
	fmt.Println(upstash.RetryAfter(err), upstash.SafeToRetry(err))
	// Output: 1s true
}
