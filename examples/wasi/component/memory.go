//go:build wasip1

package main

import "unsafe"

// A component's host asks the guest for memory through cabi_realloc. It does so
// in two situations, and both forbid Go's allocator.
//
// The first is the preview 1 adapter, which keeps its state in 128 KiB of our
// memory. It asks at the first system call. Go's runtime makes that while it
// starts and has no heap yet. If cabi_realloc were not exported, the adapter
// would grow the memory itself, and Go's heap would grow over it. So it gets an
// array, which needs neither heap nor runtime.
//
// The second is a call of ours that returns a list. The host calls us in the
// middle of our own call. A garbage collection or a switch to another goroutine
// is better avoided there. So the list goes to a second array, and the next
// such call overwrites it.
var (
	adapterRoom [192 << 10]byte
	adapterUsed uintptr

	listRoom [128 << 10]byte
	listUsed uintptr
	inList   bool
)

// maxRead is the most to read from a stream at a time, in bytes. It leaves half
// of listRoom for alignment and for response headers.
const maxRead = len(listRoom) / 2

//go:wasmexport cabi_realloc
func cabiRealloc(_ unsafe.Pointer, _, align, size uint32) unsafe.Pointer {
	if inList {
		return bump(listRoom[:], &listUsed, uintptr(align), uintptr(size))
	}
	return bump(adapterRoom[:], &adapterUsed, uintptr(align), uintptr(size))
}

// bump takes size bytes from room. It traps if the room is used up, because the
// host, which calls it, expects no failure.
func bump(room []byte, used *uintptr, align, size uintptr) unsafe.Pointer {
	base := uintptr(unsafe.Pointer(unsafe.SliceData(room)))
	start := (base+*used+align-1)&^(align-1) - base
	if start+size > uintptr(len(room)) {
		panic("cabi_realloc: the host's answer is longer than the array for it")
	}
	*used = start + size
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(room)), start)
}

// list makes a host call whose result is a list. The list stays valid until the
// next such call.
func list(call func()) {
	listUsed, inList = 0, true
	call()
	inList = false
}

// retArea is for results too large for one value, written by the host. One is
// enough: a host call blocks every goroutine of the guest, and each result is
// read before the next call is made. 7 words hold the largest in use,
// option<result<result<incoming-response, error-code>>>.
var retArea [7]uint64

func ret() unsafe.Pointer { return unsafe.Pointer(&retArea) }

// ret8 and ret32 read the result at a byte offset.
func ret8(offset uintptr) byte    { return *(*byte)(unsafe.Add(ret(), offset)) }
func ret32(offset uintptr) uint32 { return *(*uint32)(unsafe.Add(ret(), offset)) }
func ret64(offset uintptr) uint64 { return *(*uint64)(unsafe.Add(ret(), offset)) }

// retBytes reads the list<u8> or string at a byte offset. The bytes lie in
// listRoom.
func retBytes(offset uintptr) []byte { return listed(ret32(offset), ret32(offset+4)) }

// listed returns the part of listRoom at the host's address and length.
func listed(address, n uint32) []byte {
	if n == 0 {
		return nil
	}
	start := uintptr(address) - uintptr(unsafe.Pointer(&listRoom))
	return listRoom[start:][:n]
}
