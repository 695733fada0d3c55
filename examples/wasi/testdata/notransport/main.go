// Command notransport makes a client without WithTransport, and prints the
// result of its first call.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/upbloom/upbloom/upstash"
)

func main() {
	attempts := 0
	c, err := upstash.New("https://db.example.com", "token",
		upstash.WithObserver(func(context.Context, upstash.Event) { attempts++ }))
	if err == nil {
		_, err = c.Do(context.Background(), upstash.Cmd("PING"))
	}
	fmt.Printf("%t %t %d %v", errors.Is(err, upstash.ErrNoTransport), upstash.SafeToRetry(err), attempts, err)
}
