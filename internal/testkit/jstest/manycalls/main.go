//go:build js && wasm

// Command manycalls makes 11,000 calls and prints the bytes of memory that it
// and its host hold, after the first 1,000 and after all.
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
			// What Go no longer holds, its host lets go when finalizers have
			// run.
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
