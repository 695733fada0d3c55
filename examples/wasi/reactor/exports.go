//go:build wasip1

package main

import (
	"context"
	"time"
	"unsafe"
)

// The host writes an id to input and reads an error's text from output. Both
// are allocated by the guest, so the host needs no allocator.
var (
	input  = make([]byte, 1) // an empty id has an address too
	output []byte
)

// maxID is the length of the longest id in bytes. A wasm memory never shrinks:
// without a limit, a long id would keep its memory as long as the guest lives.
const maxID = 1 << 20

// room returns the address of n bytes for an id, valid until the next call. It
// returns 0 if n is more than maxID.
//
//go:wasmexport room
func room(n uint32) unsafe.Pointer {
	if n > maxID {
		return nil
	}
	if int(n) > cap(input) {
		input = make([]byte, n)
	}
	return unsafe.Pointer(unsafe.SliceData(input[:cap(input)]))
}

// seenExport adds the id in the n bytes at room, and returns isNew, isSeen,
// isUncertain or failed. millis is how long that may take, by the host's clock.
//
//go:wasmexport seen
func seenExport(n, millis uint32) int32 {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(millis)*time.Millisecond)
	defer cancel()
	giveUp = cancel
	verdict, err := seen(ctx, string(input[:cap(input)][:n]))
	if err != nil {
		output = append(output[:0], err.Error()...)
	}
	return verdict
}

// giveUp ends the context of the running call of seen.
var giveUp = func() {}

// message returns the last error's text: its address in the upper half, its
// length in the lower.
//
//go:wasmexport message
func message() uint64 {
	address := uintptr(unsafe.Pointer(unsafe.SliceData(output)))
	return uint64(address)<<32 | uint64(len(output))
}
