package upstash_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// local starts a server in this process: the examples need no account.
func local() *upstashtest.Server {
	server, err := upstashtest.Start()
	if err != nil {
		panic(err)
	}
	return server
}

func ExampleNew() {
	server := local()
	defer server.Close()

	client, err := upstash.New(server.URL, server.Token)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	reply, err := client.Do(context.Background(), upstash.Cmd("PING"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Text())

	_, err = upstash.New("redis://x.upstash.io:6379", server.Token)
	fmt.Println(errors.Is(err, upstash.ErrArgument))
	// Output:
	// PONG <nil>
	// true
}

// Example is the program of the package's doc.
func Example() {
	server := local()
	defer server.Close()
	os.Setenv("UPSTASH_REDIS_REST_URL", server.URL)
	os.Setenv("UPSTASH_REDIS_REST_TOKEN", server.Token)
	defer os.Unsetenv("UPSTASH_REDIS_REST_URL")
	defer os.Unsetenv("UPSTASH_REDIS_REST_TOKEN")

	greet := func(ctx context.Context) error {
		client, err := upstash.FromEnv() // UPSTASH_REDIS_REST_URL and _TOKEN
		if err != nil {
			return err
		}
		defer client.Close()
		reply, err := client.Do(ctx, upstash.Cmd("SET", "greeting", "hello", "EX", "100"))
		if err != nil {
			return err
		}
		fmt.Println(reply.Text())
		return nil
	}
	fmt.Println(greet(context.Background()))
	// Output:
	// OK <nil>
	// <nil>
}

func ExampleFromEnv() {
	server := local()
	defer server.Close()
	os.Setenv("UPSTASH_REDIS_REST_URL", server.URL)
	os.Setenv("UPSTASH_REDIS_REST_TOKEN", server.Token)
	defer os.Unsetenv("UPSTASH_REDIS_REST_URL")
	defer os.Unsetenv("UPSTASH_REDIS_REST_TOKEN")

	client, err := upstash.FromEnv(upstash.WithRetry(2))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	_, err = client.Do(context.Background(), upstash.Cmd("SET", "greeting", "hello"))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleClient_Do() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()
	ctx := context.Background()

	if _, err := client.Do(ctx, upstash.Cmd("SET", "greeting", "hello", "EX", "100")); err != nil {
		fmt.Println(err)
		return
	}
	reply, err := client.Do(ctx, upstash.Cmd("GET", "greeting"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Text())

	_, err = client.Do(ctx, upstash.Cmd("INCR", "greeting"))
	fmt.Println(err)
	// Output:
	// hello <nil>
	// upstash: INCR: ERR value is not an integer or out of range (HTTP status 400)
}

// The client does not know this command. After an attempt of unknown outcome it
// repeats the command only if the program allows it.
func ExampleCmd() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()

	touch := upstash.Cmd("TOUCH", "a", "b").Repeatable(true)
	fmt.Println(touch)
	reply, err := client.Do(context.Background(), touch)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Int64())
	// Output:
	// upstash.Command(TOUCH)
	// 0 <nil>
}

func ExampleWithReadOnly() {
	server := local()
	defer server.Close()

	client, err := upstash.New(server.URL, server.ReadOnlyToken, upstash.WithReadOnly())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ctx := context.Background()
	fmt.Println(client.BitField(ctx, upstash.NewBitField("flags").Get("u8", 0)))
	_, err = client.Del(ctx, "flags")
	fmt.Println(err)
	fmt.Println("requests:", server.Stats().Requests)
	// Output:
	// [{0 true}] <nil>
	// upstash: DEL: the client is read-only: make one without WithReadOnly and with a full token; the command did not run
	// requests: 1
}
