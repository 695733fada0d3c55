//go:build !js

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "wasm runs inside the page: go run ./examples/playground")
	os.Exit(1)
}
