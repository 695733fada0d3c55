package upstash_test

import (
	"context"
	"fmt"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

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
	now, err := client.BitField(ctx, b.Reset("filter").GetBits(128, []uint64{3, 4}).ReadOnly())
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

func ExampleClient_BitCountRange() {
	server := local()
	defer server.Close()
	client := server.Client()
	defer client.Close()
	ctx := context.Background()

	if _, err := client.Do(ctx, upstash.Cmd("SET", "k", "Hello World")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(client.BitCountRange(ctx, "k", 4, 8, upstash.Byte))
	fmt.Println(client.BitCountRange(ctx, "k", 32, 71, upstash.Bit))
	// Output:
	// 22 <nil>
	// 22 <nil>
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
