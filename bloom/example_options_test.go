package bloom_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// A worker records what it has done. It does not ask whether that was recorded
// before, so an uncertain answer is as good as any.
func ExampleInFilter() {
	server, err := upstashtest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	done, _ := bloom.New(server.Client(), "done", bloom.Config{Capacity: 1000, FPRate: 0.01})
	_, _ = done.Add(context.Background(), "job-1")

	server.Inject(upstashtest.Drop(upstashtest.AfterExec)) // executed, its answer lost
	_, err = done.Add(context.Background(), "job-2")
	fmt.Println(errors.Is(err, bloom.ErrUncertain), bloom.InFilter(err))
	// Output: true true
}

// A secret seed is not in the filter: whoever opens the filter must know it.
func ExampleOpen_seed() {
	client, stop := database()
	defer stop()
	ctx := context.Background()

	const secret = 0x5eed
	f, _ := bloom.New(client, "seen", bloom.Config{Capacity: 1000, FPRate: 0.01, Seed: secret})
	_, _ = f.Create(ctx)

	_, err := bloom.Open(ctx, client, "seen")
	var mismatch *bloom.MismatchError
	fmt.Println(errors.As(err, &mismatch) && mismatch.OtherSeed)

	reader, err := bloom.Open(ctx, client, "seen", bloom.Config{Seed: secret})
	fmt.Println(reader.Geometry(), err)
	// Output:
	// true
	// 10,759 bits (1.3 KiB), k=4, blocked, seeded <nil>
}

// A function that only asks needs no more than a read-only token.
func ExampleOpen_readOnly() {
	server, err := upstashtest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	ctx := context.Background()
	f, _ := bloom.New(server.Client(), "usernames", bloom.Config{Capacity: 1000, FPRate: 0.01})
	_, _ = f.Add(ctx, "ann")

	client, err := upstash.New(server.URL, server.ReadOnlyToken, upstash.WithReadOnly())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	reader, err := bloom.Open(ctx, client, "usernames")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reader.Exists(ctx, "ann"))
	_, err = reader.Add(ctx, "bob")
	fmt.Println(err)
	// Output:
	// true <nil>
	// upstash: the client is read-only: make one without WithReadOnly and with a full token
}
