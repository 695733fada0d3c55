package upstash_test

import (
	"context"
	"fmt"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

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
