//go:build js && wasm

// Command manycalls makes 11,000 calls. After the first 1,000 and after the
// last it prints how many bytes of memory it and its host hold.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"syscall/js"
	"time"

	"github.com/upbloom/upbloom/upstash"
)

func main() {
	c, err := upstash.FromEnv()
	for i := 1; i <= 11_000 && err == nil; i++ {
		_, err = c.Do(context.Background(), upstash.Cmd("SET", "key", fmt.Sprint(i)))
		if i == 1_000 || i == 11_000 {
			// The host frees a value once Go's finalizer for it has run.
			for range 3 {
				runtime.GC()
				time.Sleep(10 * time.Millisecond)
			}
			fmt.Println(js.Global().Call("guestMemory").Int(), js.Global().Call("hostMemory").Int())
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
