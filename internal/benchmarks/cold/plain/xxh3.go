//go:build xxh3

package main

import "github.com/zeebo/xxh3"

const hashName = "xxh3"

func digest(item string) uint64 { return xxh3.HashString(item) }
