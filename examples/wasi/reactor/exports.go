//go:build wasip1

package main

import (
	"context"
	"time"
	"unsafe"
)

// input and output are where the host writes an id and reads an error's text.
// They are the guest's memory, so that the host needs no allocator.
var input, output []byte

// room gives the address of n bytes to write to, valid until the next call.
//
//go:wasmexport room
func room(n uint32) unsafe.Pointer {
	if int(n) > cap(input) {
		input = make([]byte, n)
	}
	return unsafe.Pointer(unsafe.SliceData(input[:cap(input)]))
}

// seenExport adds the id in the n bytes at room and tells what it was. The
// host passes how long that may take, since its clock is the one that counts.
//
//go:wasmexport seen
func seenExport(n, millis uint32) int32 {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(millis)*time.Millisecond)
	defer cancel()
	verdict, err := seen(ctx, string(input[:cap(input)][:n]))
	if err != nil {
		output = append(output[:0], err.Error()...)
	}
	return verdict
}

// message gives the last error's text: its address in the upper half, its
// length in the lower.
//
//go:wasmexport message
func message() uint64 {
	address := uintptr(unsafe.Pointer(unsafe.SliceData(output)))
	return uint64(address)<<32 | uint64(len(output))
}
