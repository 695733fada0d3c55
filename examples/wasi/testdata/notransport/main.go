// Command notransport makes a client without WithTransport, and one with that of
// httptransport.New(nil), and prints the result of the first call of each.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/upbloom/upbloom/upstash"
	"github.com/upbloom/upbloom/upstash/httptransport"
)

func main() {
	for _, over := range []upstash.Option{nil, upstash.WithTransport(httptransport.New(nil))} {
		attempts := 0
		c, err := upstash.New("https://db.example.com", "token", over,
			upstash.WithObserver(func(context.Context, upstash.Event) { attempts++ }))
		if err == nil {
			_, err = c.Do(context.Background(), upstash.Cmd("PING"))
		}
		fmt.Printf("%t %t %d %v\n", errors.Is(err, upstash.ErrNoTransport), upstash.SafeToRetry(err), attempts, err)
	}
}
