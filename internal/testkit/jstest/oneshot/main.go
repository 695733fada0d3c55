//go:build js && wasm

// Command oneshot sends one command that its deadline ends, and ends itself at
// once: an instance of a Worker in small.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

func main() {
	c, err := upstash.FromEnv()
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		_, err = c.Do(ctx, upstash.Cmd("PING"))
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		fmt.Println(err)
		os.Exit(1)
	}
}
