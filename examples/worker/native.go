//go:build !js

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "worker runs inside a Cloudflare Worker: build it with build.sh")
	os.Exit(1)
}
