package upstash_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// What to do about an error of the server depends on its kind.
func ExampleError() {
	server := local()
	defer server.Close()
	advise := func(err error) string {
		switch {
		case errors.Is(err, upstash.ErrUnauthorized):
			return "check the token"
		case errors.Is(err, upstash.ErrQuota):
			return "wait for the next period"
		case errors.Is(err, upstash.ErrRateLimited):
			return "send fewer at a time"
		case errors.Is(err, upstash.ErrClosed):
			return "make a new client"
		}
		return "look at it"
	}
	ctx := context.Background()

	stranger, err := upstash.New(server.URL, "another-token")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = stranger.Do(ctx, upstash.Cmd("GET", "a"))
	fmt.Println(advise(err))
	_ = stranger.Close()
	_, err = stranger.Do(ctx, upstash.Cmd("GET", "a"))
	fmt.Println(advise(err))

	client := server.Client(upstash.WithRetry(0))
	defer client.Close()
	server.Inject(upstashtest.RateLimit(0))
	_, err = client.Do(ctx, upstash.Cmd("GET", "a"))
	fmt.Println(advise(err))
	server.Inject(upstashtest.CommandError("ERR max requests limit exceeded. Limit: 500000, Usage: 500007"))
	_, err = client.Do(ctx, upstash.Cmd("GET", "a"))
	fmt.Println(advise(err))
	// Output:
	// check the token
	// make a new client
	// send fewer at a time
	// wait for the next period
}

// A call failed without an error reply: here a proxy answers with text.
func ExampleCallError() {
	server := local()
	defer server.Close()
	client := server.Client(upstash.WithRetry(1), upstash.WithBackoff(0, time.Microsecond))
	defer client.Close()
	page := upstashtest.NotJSON(upstashtest.BeforeExec)
	server.Inject(page, page)

	_, err := client.Do(context.Background(), upstash.Cmd("GET", "a"))
	var failed *upstash.CallError
	if errors.As(err, &failed) {
		fmt.Println(failed.Command, "tried", failed.Attempts, "times, HTTP status", failed.StatusCode)
		fmt.Println(errors.Is(failed.Err, upstash.ErrBadResponse))
	}
	// Output:
	// GET tried 2 times, HTTP status 200
	// true
}

// A missing key is a null, and no error until it is read as a value.
func ExampleReply_IsNil() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()

	cmd := upstash.Cmd("get", "missing")
	reply, err := client.Do(context.Background(), cmd)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = reply.Text()
	fmt.Println(cmd.Name(), reply.IsNil(), errors.Is(err, upstash.ErrNil))
	// Output: GET true true
}

// Small counters in one string: the index counts fields of the type, and Sat lets
// a counter stay at its highest value.
func ExampleBitField_IncrByIndex() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()

	n, err := client.BitField(context.Background(), upstash.NewBitField("counters").
		SetIndex("u4", 3, 14).Overflow(upstash.Sat).
		IncrByIndex("u4", 3, 1).IncrByIndex("u4", 3, 1).
		Get("u1", upstash.MaxBitOffset)) // the last bit of 512 MiB
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range n {
		fmt.Print(v.Int64, " ")
	}
	// Output: 0 15 15 0
}

// A server that is down gets few requests, however many callers there are.
func ExampleWithRetryBudget() {
	server := local()
	defer server.Close()
	server.InjectFunc(func(int64, upstashtest.RequestInfo) upstashtest.Fault {
		return upstashtest.InternalError(upstashtest.BeforeExec)
	})
	client := server.Client(upstash.WithRetryBudget(10), upstash.WithBackoff(0, time.Microsecond))
	defer client.Close()
	for range 100 {
		_, _ = client.Do(context.Background(), upstash.Cmd("GET", "a"))
	}
	fmt.Println("requests for 100 calls:", server.Stats().Requests)
	// Output: requests for 100 calls: 110
}

// A server on a machine of one's own, in a trusted network.
func ExampleWithInsecureHTTP() {
	_, err := upstash.New("http://redis.internal:8079", "token")
	fmt.Println(errors.Is(err, upstash.ErrArgument))
	client, err := upstash.New("http://redis.internal:8079", "token", upstash.WithInsecureHTTP())
	fmt.Println(client != nil, err)
	// Output:
	// true
	// true <nil>
}
