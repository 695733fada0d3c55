//go:build js && wasm

// Command oneshot sends one command, prints how that ended, and exits at once,
// like an instance of a Worker.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall/js"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

func main() {
	// This uses no timer of Go's runtime, which could remain set in the host.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var opts []upstash.Option
	switch os.Getenv("UPBLOOM_ONESHOT") {
	case "timeout":
		opts = append(opts, upstash.WithTimeout(20*time.Millisecond), upstash.WithRetry(0))
	case "cancel": // in the pause asked for by the server
		over := js.FuncOf(func(js.Value, []js.Value) any {
			cancel()
			return nil
		})
		defer over.Release()
		js.Global().Call("setTimeout", over, 100)
	}
	c, err := upstash.FromEnv(opts...)
	if err == nil {
		_, err = c.Do(ctx, upstash.Cmd("PING"))
	}
	switch {
	case err == nil:
		fmt.Println("answered")
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Println("timeout")
	case errors.Is(err, context.Canceled):
		fmt.Println("canceled")
	default:
		fmt.Println(err)
	}
}
