package main

import (
	"errors"
	"os"
	"strconv"
)

// secretSeed returns UPBLOOM_SEED, which upbloom seed makes. Whoever sends events may
// choose their ids: with the usual seed anybody can compute a few that make another
// one look seen. Only a test server goes without.
func secretSeed(demo bool) (uint64, error) {
	text := os.Getenv("UPBLOOM_SEED")
	if text == "" {
		if demo {
			return 0, nil
		}
		return 0, errors.New("set UPBLOOM_SEED to a secret number: upbloom seed makes one")
	}
	seed, err := strconv.ParseUint(text, 0, 64)
	if err != nil || seed == 0 {
		return 0, errors.New("UPBLOOM_SEED must be a number from 1 to 2^64-1") // err has the secret
	}
	return seed, nil
}
