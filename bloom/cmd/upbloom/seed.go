package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"strconv"

	"github.com/urfave/cli/v3"
)

// secret is the JSON of seed.
type secret struct {
	Seed string `json:"seed"` // decimal: JSON's readers round such numbers
}

func (a *app) seedCommand() *cli.Command {
	return &cli.Command{
		Name: "seed", Usage: "print a new secret seed", ArgsUsage: " ",
		Action: a.taking(0, 0, func(context.Context, *cli.Command, []string) error {
			var b [8]byte
			n := uint64(0)
			for n == 0 { // the usual one
				_, _ = rand.Read(b[:])
				n = binary.BigEndian.Uint64(b[:])
			}
			text := strconv.FormatUint(n, 10)
			return a.print(secret{text}, text)
		}),
	}
}
