//go:build !xxh3

package main

import "hash/fnv"

const hashName = "fnv"

func digest(item string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(item))
	return h.Sum64()
}
