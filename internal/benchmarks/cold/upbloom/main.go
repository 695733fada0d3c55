// Command upbloom adds one item and ends. Its size and its run time are
// compared with those of the command plain next to it.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/upbloom/upbloom/bloom"
	"github.com/upbloom/upbloom/upstash"
)

func main() {
	c, err := upstash.FromEnv()
	if err != nil {
		log.Fatal(err)
	}
	f, err := bloom.New(c, "cold:upbloom", bloom.Config{Capacity: 1_000_000, FPRate: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	isNew, err := f.Add(context.Background(), "user-123@example.com")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(isNew)
}
