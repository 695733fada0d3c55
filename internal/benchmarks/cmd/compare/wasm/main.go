// Command wasm makes calls of a filter for MILLIS milliseconds. The answer to
// each is what it reads from its standard input. It prints how many calls it
// made and how many nanoseconds they took. OP is Add or Exists, and ITEMS is
// the number of items in a call. It is built for WebAssembly, and for the
// machine itself.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

type canned []byte

func (c canned) RoundTrip(_ context.Context, _ *upstash.Request, resp *upstash.Response) error {
	resp.StatusCode = 200
	resp.Body = append(resp.Body, c...)
	return nil
}

func number(name string) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		log.Fatal(err)
	}
	return n
}

func main() {
	answer, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	c, err := upstash.New("http://127.0.0.1:1", "token", upstash.WithTransport(canned(answer)))
	if err != nil {
		log.Fatal(err)
	}
	f, err := bloom.New(c, "wasm", bloom.Config{Capacity: 1_000_000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	items := make([]string, number("ITEMS"))
	for i := range items {
		items[i] = "user-" + strconv.Itoa(i) + "@example.com"
	}
	ctx, add := context.Background(), os.Getenv("OP") == "Add"
	call := func() error {
		_, err := f.Exists(ctx, items[0])
		return err
	}
	switch {
	case add && len(items) > 1:
		call = func() error { _, err := f.AddAll(ctx, items); return err }
	case add:
		call = func() error { _, err := f.Add(ctx, items[0]); return err }
	case len(items) > 1:
		call = func() error { _, err := f.ExistsAll(ctx, items); return err }
	}
	limit, n := time.Duration(number("MILLIS"))*time.Millisecond, 0
	start := time.Now()
	for time.Since(start) < limit || n == 0 {
		if err := call(); err != nil {
			log.Fatal(err)
		}
		n++
	}
	fmt.Println(n, time.Since(start).Nanoseconds())
}
