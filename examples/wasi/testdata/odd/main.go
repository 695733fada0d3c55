//go:build wasip1

// Command odd is a reactor that misbehaves as its id asks.
package main

import "unsafe"

var input [64]byte

//go:wasmexport room
func room(uint32) unsafe.Pointer { return unsafe.Pointer(&input) }

//go:wasmexport seen
func seen(n, _ uint32) int32 {
	switch string(input[:n]) {
	case "spin":
		for spins := true; spins; {
			spins = input[0] == 's'
		}
	case "three":
		return 3
	case "minus two":
		return -2
	case "panic":
		panic("as asked")
	}
	return 0
}

//go:wasmexport message
func message() uint64 { return 0 }

func main() {}
