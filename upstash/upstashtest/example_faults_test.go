package upstashtest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// Whatever is wrong with an answer, the client returns an error, and no value
// that the server did not send.
func ExampleServer_Inject_wrongAnswers() {
	s, _ := start()
	defer s.Close()
	c := s.Client(upstash.WithRetry(0), upstash.WithMaxResponse(1000))
	defer c.Close()
	for _, fault := range []upstashtest.Fault{
		upstashtest.ErrorObject("ERR no database"),
		upstashtest.NotJSON(upstashtest.AfterExec),
		upstashtest.WrongType(),
		upstashtest.ShortResult(),
		upstashtest.LongResult(),
		upstashtest.CutBody(5),
		upstashtest.HugeBody(10_000),
		upstashtest.Redirect("https://elsewhere.example.com"),
	} {
		s.Inject(fault)
		n, err := c.BitField(context.Background(), upstash.NewBitField("bits").Get("u1", 7))
		fmt.Println(fault, len(n), err != nil, errors.Is(err, upstash.ErrBadResponse))
	}
	// Output:
	// error-object 0 true false
	// not-json-after-exec 0 true true
	// wrong-type 0 true true
	// short-result 0 true true
	// long-result 0 true true
	// cut-body 0 true false
	// huge-body 0 true false
	// redirect 0 true false
}

// The answers of a batch are as many as its commands, or it is an error.
func ExampleServer_Inject_batches() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	for _, fault := range []upstashtest.Fault{upstashtest.ShortBatch(), upstashtest.LongBatch()} {
		s.Inject(fault)
		replies, err := c.Pipeline(context.Background(), upstash.Cmd("INCR", "a"), upstash.Cmd("INCR", "b"))
		fmt.Println(fault, len(replies), errors.Is(err, upstash.ErrBadResponse))
	}
	// Output:
	// short-batch 0 true
	// long-batch 0 true
}

// Redis evicts a filter just before a look-up. With MustExist that is an error,
// and not a "no".
func ExampleEvict() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	ctx := context.Background()
	seen, err := bloom.New(c, "seen", bloom.Config{Capacity: 1000, FPRate: 0.01, MustExist: true})
	if err != nil {
		panic(err)
	}
	if _, err := seen.Create(ctx); err != nil {
		panic(err)
	}
	s.Inject(upstashtest.Evict())
	found, err := seen.Exists(ctx, "a")
	fmt.Println(found, errors.Is(err, bloom.ErrNotFound))
	// Output: false true
}

// A full database refuses a look-up, unless the client only reads.
func ExampleServer_SetFull() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	ctx := context.Background()
	cfg := bloom.Config{Capacity: 1000, FPRate: 0.01}
	seen, err := bloom.New(c, "seen", cfg)
	if err != nil {
		panic(err)
	}
	if _, err := seen.Add(ctx, "a"); err != nil {
		panic(err)
	}
	s.SetFull(true)
	_, err = seen.Exists(ctx, "a")
	fmt.Println(errors.Is(err, upstash.ErrOutOfMemory))

	reader := s.Client(upstash.WithReadOnly())
	defer reader.Close()
	seen, err = bloom.New(reader, "seen", cfg)
	if err != nil {
		panic(err)
	}
	fmt.Println(seen.Exists(ctx, "a"))
	// Output:
	// true
	// true <nil>
}

// The cases of a test begin with an empty database.
func ExampleServer_FlushAll() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	for _, name := range []string{"first", "second"} {
		s.FlushAll()
		reply, err := c.Do(context.Background(), upstash.Cmd("INCR", "visits"))
		if err != nil {
			panic(err)
		}
		n, err := reply.Int64()
		fmt.Println(name, n, err)
	}
	// Output:
	// first 1 <nil>
	// second 1 <nil>
}

// A request that is too long is refused, and nothing of it ran.
func ExampleWithMaxRequest() {
	s, c := start(upstashtest.WithMaxRequest(1000))
	defer s.Close()
	defer c.Close()
	_, err := c.Do(context.Background(), upstash.Cmd("SET", "k", string(make([]byte, 1000))))
	fmt.Println(errors.Is(err, upstash.ErrRequestTooLarge), upstash.SafeToRetry(err))
	// Output: true true
}

// Transactions that write are lost on the way, and nothing else is.
func ExampleRequestInfo() {
	s, _ := start()
	defer s.Close()
	s.InjectFunc(func(_ int64, r upstashtest.RequestInfo) upstashtest.Fault {
		if r.Form == "multi-exec" && r.Writes {
			return upstashtest.Drop(upstashtest.BeforeExec)
		}
		return upstashtest.Fault{}
	})
	c := s.Client(upstash.WithRetry(0))
	defer c.Close()
	ctx := context.Background()
	_, err := c.MultiExec(ctx, upstash.Cmd("GET", "k"))
	fmt.Println("reads:", err)
	_, err = c.MultiExec(ctx, upstash.Cmd("INCR", "k"))
	fmt.Println("writes:", err != nil)
	// Output:
	// reads: <nil>
	// writes: true
}

// A script is billed, and so are the commands that it calls.
func ExampleStats() {
	s, c := start()
	defer s.Close()
	defer c.Close()
	script := "redis.call('SET', KEYS[1], 1) return redis.call('GET', KEYS[1])"
	_, err := c.Do(context.Background(), upstash.Cmd("EVAL", script, "1", "k"))
	n := s.Stats()
	fmt.Println(err, n.Commands, "command,", n.Called, "called,", n.Billed, "billed")
	fmt.Println(n.BytesIn, "bytes in,", n.BytesOut, "out")
	// Output:
	// <nil> 1 command, 2 called, 3 billed
	// 82 bytes in, 14 out
}
