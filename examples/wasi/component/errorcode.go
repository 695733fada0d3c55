//go:build wasip1

package main

import "github.com/upbloom/upbloom/examples/wasi/component/errorcode"

// errorCode returns the error for the error-code at a byte offset of the
// result.
func errorCode(offset uintptr) error {
	code, detail := int(ret8(offset)), ""
	if code == errorcode.Internal && ret8(offset+8) == 1 {
		detail = string(retBytes(offset + 12))
	}
	return errorcode.Error(code, detail)
}
