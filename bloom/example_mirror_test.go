package bloom_test

import (
	"context"
	"fmt"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A block list, asked for each request that a process serves: it may be ten
// seconds old, and costs a few commands in that time.
func ExampleMirror() {
	ctx := context.Background()
	server, err := upstashtest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	client := server.Client()
	defer client.Close()

	blocked, err := bloom.New(client, "blocked", bloom.Config{Capacity: 10_000, FPRate: 0.0001})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := blocked.AddAll(ctx, []string{"203.0.113.7", "203.0.113.9"}); err != nil {
		fmt.Println(err)
		return
	}
	near, err := bloom.NewMirror(blocked, bloom.MirrorConfig{MaxStale: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	server.ResetStats()
	for i := range 100 {
		address := fmt.Sprintf("203.0.113.%d", i)
		stop, err := near.Exists(ctx, address)
		if err != nil {
			fmt.Println(err)
			return
		}
		if stop {
			fmt.Println(address, "is blocked")
		}
	}
	fmt.Println(near.Stats().Saved, "look-ups,", server.Stats().Requests, "requests")
	// Output:
	// 203.0.113.7 is blocked
	// 203.0.113.9 is blocked
	// 100 look-ups, 2 requests
}
